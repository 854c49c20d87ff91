//! The calls into the HDF5 library that its Rust wrapper lacks; the only unsafe code of the reader.
//!
//! Every call holds the library's global lock. Bytes cross the border in the file's own type, so that decoding them is
//! [`Element`](super::element::Element)'s business, or as strings.

use std::ffi::{CStr, CString, c_char, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Once;

use hdf5_metno::plist::DatasetCreate;
use hdf5_metno::{Container, Dataset, Datatype, Error, File, Group, Result, from_id, h5check, sync::sync};
use hdf5_metno_sys::h5::{H5free_memory, HADDR_UNDEF, hbool_t, herr_t, hsize_t};
use hdf5_metno_sys::h5a::H5Aread;
use hdf5_metno_sys::h5d::{H5Dcreate2, H5Dget_create_plist, H5Dget_offset, H5Dread, H5Dwrite};
use hdf5_metno_sys::h5f::{H5F_ACC_RDONLY, H5F_ACC_TRUNC, H5Fcreate, H5Fopen};
use hdf5_metno_sys::h5i::{H5I_type_t, H5Idec_ref, hid_t};
use hdf5_metno_sys::h5p::{
    H5P_CLS_FILE_ACCESS, H5P_DEFAULT, H5Pcreate, H5Pget_chunk_opts, H5Pget_external_count, H5Pget_fill_value,
    H5Pget_filter2, H5Pget_nfilters, H5Pset_obj_track_times,
};
use hdf5_metno_sys::h5s::{H5S_ALL, H5S_seloper_t, H5Screate_simple, H5Sselect_hyperslab};
use hdf5_metno_sys::h5t::{
    H5T_NATIVE_DOUBLE, H5T_class_t, H5Tcopy, H5Tcreate, H5Tget_array_dims2, H5Tget_array_ndims, H5Tget_class,
    H5Tget_member_name, H5Tget_member_type, H5Tget_nmembers, H5Tget_super, H5Tinsert, H5Tis_variable_str,
    H5Treclaim,
};

use super::lzf;

unsafe extern "C" {
    // Not bound by the -sys crate (HDF5 1.14.6 has it).
    fn H5Pset_file_locking(fapl: hid_t, use_file_locking: hbool_t, ignore_when_disabled: hbool_t) -> herr_t;
}

/// An identifier that is released when it goes out of scope.
struct Scoped(hid_t);

impl Drop for Scoped {
    fn drop(&mut self) {
        // SAFETY: the identifier was returned to us by the library and is ours; the lock is held.
        sync(|| unsafe { H5Idec_ref(self.0) });
    }
}

pub(super) fn c_string(text: &[u8]) -> Result<CString> {
    CString::new(text).map_err(|_| Error::from("a name holds a NUL byte"))
}

/// Opens `path` for reading without a lock: other processes may hold one, and some network disks offer none.
pub(super) fn open(path: &Path) -> Result<File> {
    with_access(path, |name, access| unsafe { H5Fopen(name, H5F_ACC_RDONLY, access) })
}

/// Creates `path`, or empties it, in HDF5's oldest layout, which every version reads.
pub(super) fn create(path: &Path) -> Result<File> {
    with_access(path, |name, access| unsafe { H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access) })
}

fn with_access(path: &Path, call: impl FnOnce(*const c_char, hid_t) -> hid_t) -> Result<File> {
    let name = c_string(path.as_os_str().as_bytes())?;
    sync(|| {
        static REGISTERED: Once = Once::new();
        // Without it lzf-compressed files give an error of their own.
        REGISTERED.call_once(|| drop(lzf::register()));
        // SAFETY: plain calls with identifiers that live until the end of this closure.
        unsafe {
            let access = Scoped(h5check(H5Pcreate(*H5P_CLS_FILE_ACCESS))?);
            h5check(H5Pset_file_locking(access.0, 0, 1))?;
            from_id(h5check(call(name.as_ptr(), access.0))?)
        }
    })
}

/// The innermost sentence of HDF5's error stack, which names the real cause.
pub(super) fn reason(error: &Error) -> String {
    match error {
        Error::HDF5(stack) => match stack.clone().expand() {
            Ok(frames) => frames.last().map_or_else(|| error.to_string(), |frame| frame.desc().to_owned()),
            Err(_) => error.to_string(),
        },
        Error::Internal(message) => message.clone(),
    }
}

/// Whether `error` comes from a full disk or a used-up quota.
pub(super) fn is_disk_full(error: &Error) -> bool {
    // HDF5 tells the number of the system's error only in the text of its frames.
    let full = |text: &str| text.contains("errno = 28,") || text.contains("errno = 122,");
    match error {
        Error::HDF5(stack) => {
            stack.clone().expand().is_ok_and(|frames| frames.iter().any(|frame| full(frame.desc())))
        }
        Error::Internal(message) => full(message),
    }
}

/// The type `double` of this machine.
pub(super) fn native_double() -> Result<Datatype> {
    // SAFETY: a copy of a predefined type is ours.
    sync(|| unsafe { from_id(h5check(H5Tcopy(*H5T_NATIVE_DOUBLE))?) })
}

/// Reads all of a dataset or an attribute as bytes of `memory_type`.
pub(super) fn read_bytes(container: &Container, memory_type: &Datatype) -> Result<Vec<u8>> {
    let mut bytes = zeroed(container.size(), memory_type.size())?;
    // SAFETY: the buffer holds as many elements of `memory_type` as the dataset has.
    unsafe { read_into(container, memory_type.id(), H5S_ALL, H5S_ALL, bytes.as_mut_ptr().cast())? };
    Ok(bytes)
}

/// Reads `rows` rows from `first` of a dataset of one or more dimensions as bytes of `memory_type`.
pub(super) fn read_rows(
    dataset: &Dataset,
    memory_type: &Datatype,
    first: usize,
    rows: usize,
) -> Result<Vec<u8>> {
    let shape = dataset.shape();
    let mut start = vec![0 as hsize_t; shape.len()];
    let mut count: Vec<hsize_t> = shape.iter().map(|&length| length as hsize_t).collect();
    let (Some(first_start), Some(first_count)) = (start.first_mut(), count.first_mut()) else {
        return Err("a scalar has no rows".into());
    };
    (*first_start, *first_count) = (first as hsize_t, rows as hsize_t);
    let elements = shape[1..].iter().try_fold(rows, |product, &length| product.checked_mul(length));
    let mut bytes = zeroed(elements.ok_or("too many elements")?, memory_type.size())?;
    let space = dataset.space()?;
    sync(|| {
        // SAFETY: both selections have as many elements as the buffer; arrays are as long as the rank.
        unsafe {
            let memory = Scoped(h5check(H5Screate_simple(count.len() as i32, count.as_ptr(), ptr::null()))?);
            h5check(H5Sselect_hyperslab(
                space.id(),
                H5S_seloper_t::H5S_SELECT_SET,
                start.as_ptr(),
                ptr::null(),
                count.as_ptr(),
                ptr::null(),
            ))?;
            read_into(dataset, memory_type.id(), memory.0, space.id(), bytes.as_mut_ptr().cast())
        }
    })?;
    Ok(bytes)
}

/// A buffer of `count` elements of `size` bytes; an error, not an abort, when there is no memory for it.
fn zeroed(count: usize, size: usize) -> Result<Vec<u8>> {
    let length = count.checked_mul(size).ok_or("too many elements")?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| format!("no memory for {length} bytes"))?;
    bytes.resize(length, 0);
    Ok(bytes)
}

/// # Safety
/// `buffer` must have room for the selected elements of `memory_type`.
unsafe fn read_into(
    container: &Container,
    memory_type: hid_t,
    memory_space: hid_t,
    file_space: hid_t,
    buffer: *mut c_void,
) -> Result<()> {
    // SAFETY: as promised by the caller.
    sync(|| unsafe {
        h5check(if container.id_type() == H5I_type_t::H5I_ATTR {
            H5Aread(container.id(), memory_type, buffer)
        } else {
            H5Dread(container.id(), memory_type, memory_space, file_space, H5P_DEFAULT, buffer)
        })
    })?;
    Ok(())
}

/// Reads strings of fixed or variable length; bytes that are not UTF-8 are replaced.
///
/// `memory_type` is the type of the strings, or a compound type of one string field (see [`field_type`]).
pub(super) fn read_texts(
    container: &Container,
    memory_type: &Datatype,
    variable: bool,
) -> Result<Vec<String>> {
    let mut bytes = read_bytes(container, memory_type)?;
    let size = memory_type.size().max(1);
    if !variable {
        return Ok(bytes.chunks_exact(size).map(fixed_text).collect());
    }
    let pointer = |chunk: &[u8]| {
        let mut address = [0; size_of::<usize>()];
        address.copy_from_slice(&chunk[..size_of::<usize>()]);
        usize::from_ne_bytes(address) as *const c_char
    };
    let texts = bytes.chunks_exact(size).map(|chunk| match pointer(chunk) {
        text if text.is_null() => String::new(),
        // SAFETY: the library put a NUL-terminated string there, freed only below.
        text => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    });
    let texts = texts.collect();
    let space = container.space()?;
    // SAFETY: the buffer holds what the library allocated for these elements; nobody uses it afterwards.
    sync(|| unsafe {
        h5check(H5Treclaim(memory_type.id(), space.id(), H5P_DEFAULT, bytes.as_mut_ptr().cast()))
    })?;
    Ok(texts)
}

fn fixed_text(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Whether a string type has variable length.
pub(super) fn is_variable_text(datatype: &Datatype) -> bool {
    // SAFETY: a query of a live type.
    sync(|| unsafe { H5Tis_variable_str(datatype.id()) }) > 0
}

/// The fields of a compound type, in order.
pub(super) fn fields(datatype: &Datatype) -> Result<Vec<(String, Datatype)>> {
    sync(|| {
        // SAFETY: member indices are below the number of members; the name is copied, then given back.
        unsafe {
            let count = h5check(H5Tget_nmembers(datatype.id()))?;
            (0..count as c_uint)
                .map(|member| {
                    let name = H5Tget_member_name(datatype.id(), member);
                    if name.is_null() {
                        return Err("a field without a name".into());
                    }
                    let text = CStr::from_ptr(name).to_string_lossy().into_owned();
                    H5free_memory(name.cast());
                    Ok((text, from_id(h5check(H5Tget_member_type(datatype.id(), member))?)?))
                })
                .collect()
        }
    })
}

/// A compound type of the one field `name`: reading with it reads that field alone.
pub(super) fn field_type(name: &str, datatype: &Datatype) -> Result<Datatype> {
    let name = c_string(name.as_bytes())?;
    // SAFETY: the field fills the compound type exactly.
    sync(|| unsafe {
        let compound: Datatype = from_id(h5check(H5Tcreate(H5T_class_t::H5T_COMPOUND, datatype.size()))?)?;
        h5check(H5Tinsert(compound.id(), name.as_ptr(), 0, datatype.id()))?;
        Ok(compound)
    })
}

/// The base type and the lengths of an array type; any other type is its own base.
pub(super) fn array_parts(datatype: &Datatype) -> Result<(Datatype, Vec<usize>)> {
    // SAFETY: queries of a live type; the lengths are as many as the dimensions, which HDF5 limits to 32.
    sync(|| unsafe {
        if H5Tget_class(datatype.id()) != H5T_class_t::H5T_ARRAY {
            return Ok((datatype.clone(), Vec::new()));
        }
        let mut lengths = [0 as hsize_t; 32];
        h5check(H5Tget_array_dims2(datatype.id(), lengths.as_mut_ptr()))?;
        let dimensions = h5check(H5Tget_array_ndims(datatype.id()))? as usize;
        let lengths = lengths.iter().take(dimensions).map(|&length| length as usize).collect();
        Ok((from_id(h5check(H5Tget_super(datatype.id()))?)?, lengths))
    })
}

/// How datasets are created: without the time, so that equal contents are equal bytes.
pub(super) fn timeless() -> Result<DatasetCreate> {
    let create = DatasetCreate::try_new()?;
    // SAFETY: a plain call with an identifier that lives as long as `create`.
    sync(|| unsafe { h5check(H5Pset_obj_track_times(create.id(), 0)) })?;
    Ok(create)
}

/// Creates a contiguous dataset and fills it with `bytes`, which are of the dataset's own type.
pub(super) fn write_bytes(
    group: &Group,
    name: &str,
    datatype: &Datatype,
    shape: &[usize],
    bytes: &[u8],
) -> Result<Dataset> {
    let elements: usize = shape.iter().product();
    if elements * datatype.size() != bytes.len() {
        return Err("the bytes do not fill the dataset".into());
    }
    let name = c_string(name.as_bytes())?;
    let dims: Vec<hsize_t> = shape.iter().map(|&length| length as hsize_t).collect();
    let timeless = timeless()?;
    // SAFETY: the dimensions are as many as the rank, the bytes as many as the elements.
    sync(|| unsafe {
        let space = Scoped(h5check(H5Screate_simple(dims.len() as i32, dims.as_ptr(), ptr::null()))?);
        let default = H5P_DEFAULT;
        let (datatype_id, create) = (datatype.id(), timeless.id());
        let create = H5Dcreate2(group.id(), name.as_ptr(), datatype_id, space.0, default, create, default);
        let dataset: Dataset = from_id(h5check(create)?)?;
        h5check(H5Dwrite(dataset.id(), datatype.id(), H5S_ALL, H5S_ALL, default, bytes.as_ptr().cast()))?;
        Ok(dataset)
    })
}

/// What of a dataset's creation matters to someone who reads its bytes without the library.
pub(super) struct Creation {
    /// Identifiers of the filters, in the order they were applied.
    pub filters: Vec<i32>,
    /// One element of the dataset's type.
    pub fill: Vec<u8>,
    /// The bytes are in other files.
    pub external: bool,
    /// Chunks at the edges skip the filters (nobody does this, but HDF5 can).
    pub unfiltered_edges: bool,
}

/// Reads how `dataset`, whose type is `datatype`, was created.
pub(super) fn creation(dataset: &Dataset, datatype: &Datatype, chunked: bool) -> Result<Creation> {
    let mut fill = vec![0_u8; datatype.size()];
    // SAFETY: the fill buffer has the size of one element; null outputs are allowed where given.
    sync(|| unsafe {
        let list = Scoped(h5check(H5Dget_create_plist(dataset.id()))?);
        let count = h5check(H5Pget_nfilters(list.0))? as c_uint;
        let filter = |position| {
            let (mut flags, mut parameters, mut config) = (0, 0, 0);
            h5check(H5Pget_filter2(
                list.0,
                position,
                &mut flags,
                &mut parameters,
                ptr::null_mut(),
                0,
                ptr::null_mut(),
                &mut config,
            ))
        };
        let filters = (0..count).map(filter).collect::<Result<Vec<i32>>>()?;
        // Types of variable length are never read without the library.
        if chunked && H5Pget_fill_value(list.0, datatype.id(), fill.as_mut_ptr().cast()) < 0 {
            fill.fill(0);
        }
        let mut options = 0;
        if chunked {
            h5check(H5Pget_chunk_opts(list.0, &mut options))?;
        }
        let external = h5check(H5Pget_external_count(list.0))? > 0;
        Ok(Creation { filters, fill, external, unfiltered_edges: options != 0 })
    })
}

/// Where in the file the bytes of a contiguous dataset begin, if they have been allocated.
pub(super) fn offset(dataset: &Dataset) -> Option<u64> {
    // SAFETY: a query of a live dataset.
    let offset = sync(|| unsafe { H5Dget_offset(dataset.id()) });
    (offset != HADDR_UNDEF).then_some(offset)
}
