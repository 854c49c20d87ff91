//! A dataset of numbers that grows at its end while a file is written.

use std::ptr;

use hdf5_metno::{Dataset, Datatype, Group, Result, from_id, h5check, sync::sync};
use hdf5_metno_sys::h5::hsize_t;
use hdf5_metno_sys::h5d::{H5Dcreate2, H5Dset_extent, H5Dwrite};
use hdf5_metno_sys::h5i::{H5Idec_ref, hid_t};
use hdf5_metno_sys::h5p::{H5P_DEFAULT, H5Pset_chunk, H5Pset_deflate};
use hdf5_metno_sys::h5s::{H5S_UNLIMITED, H5S_seloper_t, H5Screate_simple, H5Sselect_hyperslab};

use super::element::{Class, Element};
use super::native;

/// Values of a chunk, and of a write.
const VALUES_PER_CHUNK: usize = 1 << 16;
/// What h5py writes with `compression="gzip"`.
const LEVEL: u32 = 4;

/// Rows are added at the end; a bounded number of values waits in memory.
pub(super) struct Growing {
    dataset: Dataset,
    /// Of each row, where there are two dimensions.
    columns: Option<usize>,
    /// Rows in the file.
    rows: usize,
    memory: Memory,
    waiting: Vec<f64>,
}

/// What values are given to the library as; it converts them to the type in the file.
enum Memory {
    Double(Datatype),
    /// No number is converted to an enumeration.
    Boolean(Datatype),
}

impl Growing {
    /// Makes an empty dataset whose values are of type `datatype`, compressed as gzip does where `deflated`.
    pub(super) fn create(
        group: &Group,
        name: &str,
        datatype: &Datatype,
        columns: Option<usize>,
        deflated: bool,
    ) -> Result<Growing> {
        let memory = match Element::of(datatype.clone())?.class {
            Class::Boolean => Memory::Boolean(datatype.clone()),
            _ => Memory::Double(native::native_double()?),
        };
        let width = columns.map(|columns| columns as hsize_t);
        let rows = (VALUES_PER_CHUNK / columns.unwrap_or(1).max(1)).max(1) as hsize_t;
        let with = |rows: hsize_t| std::iter::once(rows).chain(width).collect::<Vec<hsize_t>>();
        let (none, most, chunk) = (with(0), with(H5S_UNLIMITED), with(rows));
        let name = native::c_string(name.as_bytes())?;
        let creation = native::timeless()?;
        // SAFETY: all lengths are as many as the rank; the identifiers live until the end of this closure.
        let dataset = sync(|| unsafe {
            let rank = chunk.len() as i32;
            h5check(H5Pset_chunk(creation.id(), rank, chunk.as_ptr()))?;
            if deflated {
                h5check(H5Pset_deflate(creation.id(), LEVEL))?;
            }
            let space = Space(h5check(H5Screate_simple(rank, none.as_ptr(), most.as_ptr()))?);
            let (default, creation) = (H5P_DEFAULT, creation.id());
            let id =
                H5Dcreate2(group.id(), name.as_ptr(), datatype.id(), space.0, default, creation, default);
            from_id(h5check(id)?)
        })?;
        Ok(Growing { dataset, columns, rows: 0, memory, waiting: Vec::new() })
    }

    /// Adds values at the end; of two dimensions, whole rows.
    pub(super) fn push(&mut self, values: &[f64]) -> Result<()> {
        self.waiting.extend_from_slice(values);
        if self.waiting.len() >= VALUES_PER_CHUNK { self.flush() } else { Ok(()) }
    }

    /// Writes what waits, and gives the dataset.
    pub(super) fn finish(mut self) -> Result<Dataset> {
        self.flush()?;
        Ok(self.dataset)
    }

    fn flush(&mut self) -> Result<()> {
        let rows = self.waiting.len() / self.columns.unwrap_or(1).max(1);
        if rows == 0 {
            return Ok(());
        }
        match &self.memory {
            Memory::Double(datatype) => self.write(rows, datatype, self.waiting.as_ptr().cast())?,
            Memory::Boolean(datatype) => {
                let bytes: Vec<u8> = self.waiting.iter().map(|&value| u8::from(value != 0.0)).collect();
                self.write(rows, datatype, bytes.as_ptr().cast())?;
            }
        }
        self.rows += rows;
        self.waiting.clear();
        Ok(())
    }

    /// Writes `rows` rows at the end; `values` holds as many of `memory_type`.
    fn write(&self, rows: usize, memory_type: &Datatype, values: *const std::ffi::c_void) -> Result<()> {
        let width = self.columns.map(|columns| columns as hsize_t);
        let with = |rows: usize, other: Option<hsize_t>| -> Vec<hsize_t> {
            std::iter::once(rows as hsize_t).chain(other).collect()
        };
        let (start, count) = (with(self.rows, width.map(|_| 0)), with(rows, width));
        let extent = with(self.rows + rows, width);
        // SAFETY: the lengths are as many as the rank; the selection has as many elements as `values`.
        sync(|| unsafe {
            h5check(H5Dset_extent(self.dataset.id(), extent.as_ptr()))?;
            let file = self.dataset.space()?;
            let memory = Space(h5check(H5Screate_simple(count.len() as i32, count.as_ptr(), ptr::null()))?);
            let (set, none) = (H5S_seloper_t::H5S_SELECT_SET, ptr::null());
            h5check(H5Sselect_hyperslab(file.id(), set, start.as_ptr(), none, count.as_ptr(), none))?;
            let types = (self.dataset.id(), memory_type.id());
            h5check(H5Dwrite(types.0, types.1, memory.0, file.id(), H5P_DEFAULT, values))?;
            Ok(())
        })
    }
}

/// A dataspace that is released when it goes out of scope.
struct Space(hid_t);

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: the identifier was returned to us by the library and is ours; the lock is held.
        sync(|| unsafe { H5Idec_ref(self.0) });
    }
}
