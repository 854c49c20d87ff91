//! Writing an embedding as an AnnData file, all at once or not at all.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::FromStr;

use hdf5_metno::Group;
use hdf5_metno::dataset::{AllocTime, FillTime};
use hdf5_metno::types::VarLenUnicode;
use tempfile::TempPath;

use super::encode::Target;
use super::{H5ad, keep, native};
use crate::atomic;
use crate::error::{Error, Result};

/// Values turned into bytes at once.
const VALUES_PER_WRITE: usize = 1 << 18;

/// An embedding of the cells of a file, to be written.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddingRef<'a> {
    /// Row-major, cells x `dims`.
    pub values: &'a [f32],
    pub dims: usize,
    /// What goes into `uns`; a key with slashes makes nested dictionaries.
    pub uns: &'a [(&'a str, UnsValue)],
}

/// A value of `uns`.
#[derive(Debug, Clone, PartialEq)]
pub enum UnsValue {
    Text(String),
    Integer(i64),
    Float(f64),
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

/// Writes an embedding of the cells of `source` to `path` as anndata 0.8 and later write it.
///
/// X is the embedding (float32, cells x dims, contiguous), the variables are called V1, V2, …; `obs` and `obsm` are those of
/// `source`, with all types unchanged. A slash in a column's name, which anndata cannot read, becomes an underscore.
///
/// The file appears under its name when it is complete and on disk; on an error nothing is left. A full disk is an
/// error of kind `Environment`.
pub fn write_embedding(path: &Path, embedding: EmbeddingRef<'_>, source: &H5ad) -> Result<()> {
    let cells = source.n_obs();
    if cells.checked_mul(embedding.dims) != Some(embedding.values.len()) {
        let (values, dims) = (embedding.values.len(), embedding.dims);
        return Err(Error::failed(format_args!(
            "{values} values are no embedding of {cells} cells in {dims} dimensions"
        )));
    }
    let EmbeddingRef { values, dims, uns } = embedding;
    stream_embedding(path, dims, uns, source, |write| write(values))
}

/// Writes further values of X.
pub type Write<'a> = &'a mut dyn FnMut(&[f32]) -> Result<()>;

/// [`write_embedding`] of values that are not all in memory at once.
///
/// `produce` is given a function that writes further values, and calls it as often as it likes; in all these have to be
/// the rows of all cells, in order.
pub fn stream_embedding(
    path: &Path,
    dims: usize,
    uns: &[(&str, UnsValue)],
    source: &H5ad,
    produce: impl FnOnce(Write<'_>) -> Result<()>,
) -> Result<()> {
    let temporary = stage(path)?;
    let place = write_structure(&temporary, path, dims, uns, source)?;
    let file = File::options().write(true).open(&temporary).map_err(Error::io("write", path))?;
    let mut written = 0;
    produce(&mut |values| {
        // Without a place there is nothing to write: no cell or no dimension.
        if let Some(place) = place {
            let offset = place + (written * size_of::<f32>()) as u64;
            write_values(&file, offset, values).map_err(Error::io("write", path))?;
        }
        written += values.len();
        Ok(())
    })?;
    if source.n_obs().checked_mul(dims) != Some(written) {
        return Err(Error::failed(format_args!(
            "{written} values are no embedding of {} cells in {dims} dimensions",
            source.n_obs()
        )));
    }
    persist(temporary, path)
}

/// An empty file beside `path`, to be written and then persisted there.
pub(super) fn stage(path: &Path) -> Result<TempPath> {
    let file = atomic::temporary_in(atomic::folder_of(path)).map_err(Error::io("write", path))?;
    Ok(file.into_temp_path())
}

/// Writes all but the values of X; the result is where in the file these go.
fn write_structure(
    temporary: &Path,
    path: &Path,
    dims: usize,
    entries: &[(&str, UnsValue)],
    source: &H5ad,
) -> Result<Option<u64>> {
    let target = Target(path.to_owned());
    let root = native::create(temporary).map_err(|error| target.fault(error))?;
    target.mark(&root, "anndata", "0.1.0")?;
    keep::frame(&target, source.obs(), &root, "obs", None)?;
    let var = target.group(&root, "var", "dataframe", "0.2.0")?;
    let names: Vec<String> = (1..=dims).map(|dimension| format!("V{dimension}")).collect();
    target.texts(&var, "_index", &names)?;
    target.attribute(&var, "_index", "_index")?;
    target.attributes(&var, "column-order", &[])?;
    keep::obsm(&target, source.obs().source(), &target.dictionary(&root, "obsm")?, keep::Taken::All)?;
    let uns = target.dictionary(&root, "uns")?;
    for (key, value) in entries {
        write_uns(&target, &uns, key, value)?;
    }
    for empty in ["layers", "obsp", "varm", "varp"] {
        target.dictionary(&root, empty)?;
    }
    let create = || {
        let dataset = root
            .new_dataset::<f32>()
            .set_create_plist(&native::timeless()?)
            .shape((source.n_obs(), dims))
            .no_chunk()
            .alloc_time(Some(AllocTime::Early))
            .fill_time(FillTime::Never)
            .create("X")?;
        Ok((native::offset(&dataset), dataset))
    };
    let (place, dataset) = create().map_err(|error| target.fault(error))?;
    target.mark(&dataset, "array", "0.2.0")?;
    drop((dataset, var, uns));
    root.flush().and_then(|()| root.close()).map_err(|error| target.fault(error))?;
    Ok(place)
}

fn write_uns(target: &Target, uns: &Group, key: &str, value: &UnsValue) -> Result<()> {
    if let Some((outer, inner)) = key.split_once('/') {
        let group = if uns.link_exists(outer) {
            uns.group(outer).map_err(|error| target.fault(error))?
        } else {
            target.dictionary(uns, outer)?
        };
        return write_uns(target, &group, inner, value);
    }
    match value {
        UnsValue::Text(text) => {
            let unicode = VarLenUnicode::from_str(text).map_err(|_| {
                let path = target.path().display();
                Error::failed(format_args!("cannot write {path}"))
                    .cause(format_args!("uns/{key} holds a NUL character"))
            })?;
            target.scalar(uns, key, &unicode, "string")
        }
        UnsValue::Integer(value) => target.scalar(uns, key, value, "numeric-scalar"),
        UnsValue::Float(value) => target.scalar(uns, key, value, "numeric-scalar"),
        UnsValue::Floats(values) => {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
            let double = native::native_double().map_err(|error| target.fault(error))?;
            target.numbers(uns, key, &double, &[values.len()], &bytes)
        }
        UnsValue::Texts(values) => target.texts(uns, key, values),
    }
}

/// Writes values of X past HDF5, whose errors do not tell a full disk reliably.
fn write_values(file: &File, mut place: u64, values: &[f32]) -> std::io::Result<()> {
    for values in values.chunks(VALUES_PER_WRITE) {
        // The dataset's type is that of this machine.
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        file.write_all_at(&bytes, place)?;
        place += bytes.len() as u64;
    }
    Ok(())
}

/// Gives the staged file its name, once it is on disk.
pub(super) fn persist(temporary: TempPath, path: &Path) -> Result<()> {
    let io = || Error::io("write", path);
    File::open(&temporary).and_then(|file| file.sync_all()).map_err(io())?;
    temporary.persist(path).map_err(|error| io()(error.error))?;
    // The new name itself must reach the disk; where directories cannot be synchronised, it will in time.
    File::open(atomic::folder_of(path)).and_then(|directory| directory.sync_all()).ok();
    Ok(())
}
