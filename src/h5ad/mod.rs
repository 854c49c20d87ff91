//! The .h5ad format (AnnData in HDF5): every encoding in circulation is read, embeddings and samples are written.
//!
//! ```text
//! superblock -> source -> array  -> sparse, transpose -> matrix    large numbers, past the HDF5 library
//!                      -> values -> frame, column                  annotation
//!                                               keep, encode -> write, subset
//! ```
//!
//! The format: <https://anndata.readthedocs.io/en/stable/fileformat-prose.html>, and for files of anndata before 0.8 the
//! readers in its sources.

mod array;
mod attribute;
mod block;
#[cfg(test)]
mod case_tests;
mod column;
#[cfg(test)]
mod damage_tests;
mod element;
mod encode;
mod filter;
mod frame;
mod growing;
mod keep;
mod lzf;
mod matrix;
mod native;
mod source;
mod sparse;
mod subset;
mod superblock;
mod transpose;
mod values;
mod write;
#[cfg(test)]
mod write_tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use hdf5_metno::{Group, LocationType};

pub use column::{Column, Labels};
pub use frame::Frame;
pub use matrix::{Encoding, Matrix};
pub use subset::{Extent, write_cells};
pub use write::{EmbeddingRef, UnsValue, Write, stream_embedding, write_embedding};

use crate::error::{Error, Result};
use source::Source;

/// Groups within groups that are looked through for layers whose names hold slashes.
const DEEPEST_NAME: usize = 8;

/// An AnnData file opened for reading, without a lock on it.
#[derive(Debug)]
pub struct H5ad {
    source: Arc<Source>,
    obs: Frame,
    var: Frame,
    raw: Option<Raw>,
    slots: Vec<Slot>,
    obsm_keys: Vec<String>,
}

/// The matrix and the genes before they were filtered or scaled.
#[derive(Debug)]
struct Raw {
    /// `raw/X`, or `raw.X` before anndata 0.7.
    matrix: String,
    var_name: String,
    var: Frame,
}

/// One of the cells x genes matrices of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    X,
    Layer(String),
    Raw,
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::X => f.write_str("X"),
            Slot::Layer(name) => write!(f, "layers/{name}"),
            Slot::Raw => f.write_str("raw/X"),
        }
    }
}

impl H5ad {
    /// Opens `path`, reads the names of cells and genes, and checks that X fits them.
    ///
    /// Errors (kind `Input`) tell apart what cannot be read, a directory, an empty file, something that is not HDF5, a
    /// truncated file, HDF5 that is not AnnData, and arrays that do not fit together. A layer is checked when asked for.
    pub fn open(path: &Path) -> Result<H5ad> {
        let source = Arc::new(Source::open(path)?);
        let root = &source.hdf5;
        if !root.link_exists("obs") || !root.link_exists("var") {
            return Err(not_anndata(&source));
        }
        let obs = Frame::open(&source, "obs")?;
        let var = Frame::open(&source, "var")?;
        let raw = open_raw(&source)?;
        let mut slots = Vec::new();
        if root.link_exists("X") {
            slots.push(Slot::X);
        }
        slots.extend(layer_names(&source)?.into_iter().map(Slot::Layer));
        if raw.is_some() {
            slots.push(Slot::Raw);
        }
        let obsm_keys = keep::obsm_keys(&source)?;
        let file = H5ad { source, obs, var, raw, slots, obsm_keys };
        if file.slots.contains(&Slot::X) {
            file.matrix(&Slot::X)?;
        }
        Ok(file)
    }

    /// The path the file was opened with.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// Number of cells.
    pub fn n_obs(&self) -> usize {
        self.obs.index().len()
    }

    /// Number of genes.
    pub fn n_vars(&self) -> usize {
        self.var.index().len()
    }

    /// The annotation of the cells.
    pub fn obs(&self) -> &Frame {
        &self.obs
    }

    /// The annotation of the genes.
    pub fn var(&self) -> &Frame {
        &self.var
    }

    /// The annotation of the genes of `raw`, which may be more than those of X.
    pub fn raw_var(&self) -> Option<&Frame> {
        self.raw.as_ref().map(|raw| &raw.var)
    }

    /// The matrices there are: X, layers sorted by name, raw, in this order.
    pub fn slots(&self) -> Vec<Slot> {
        self.slots.clone()
    }

    /// Opens the matrix in `slot` and checks its shape and pointers; its values are read when it is streamed.
    pub fn matrix(&self, slot: &Slot) -> Result<Matrix<'_>> {
        if !self.slots.contains(slot) {
            let slots: Vec<String> = self.slots.iter().map(Slot::to_string).collect();
            let error = Error::input(format_args!("{} has no {slot}", self.path().display()));
            return Err(match slots.is_empty() {
                true => error.hint("it has no matrix at all"),
                false => error.hint(format_args!("it has {}", slots.join(", "))),
            });
        }
        let (name, var_name, genes) = match (slot, &self.raw) {
            (Slot::Raw, Some(raw)) => (raw.matrix.clone(), raw.var_name.as_str(), raw.var.index().len()),
            _ => (slot.to_string(), "var", self.n_vars()),
        };
        Matrix::open(&self.source, &name)?.expect_shape((self.n_obs(), "obs"), (genes, var_name))
    }

    /// The bytes that an embedding of the file takes over from it at least, for `obs` and `obsm`.
    pub fn kept_bytes(&self) -> u64 {
        keep::stored_bytes(&self.source)
    }

    /// The names of the entries of `obsm`, sorted.
    pub fn obsm_keys(&self) -> &[String] {
        &self.obsm_keys
    }
}

fn not_anndata(source: &Source) -> Error {
    let error = Error::input(format_args!(
        "{} is an HDF5 file, but not AnnData: it has no obs and var",
        source.path().display()
    ));
    let has = |name| source.hdf5.link_exists(name);
    if has("mod") {
        error.hint("it looks like MuData (.h5mu): write one of its modalities as .h5ad first")
    } else if has("matrix") && has("row_attrs") {
        error.hint("it looks like a loom file: convert it with anndata.io.read_loom")
    } else if has("matrix") {
        error.hint("it looks like a matrix of Cell Ranger: convert it with scanpy.read_10x_h5")
    } else {
        error
    }
}

fn open_raw(source: &Arc<Source>) -> Result<Option<Raw>> {
    let root = &source.hdf5;
    let inside = matches!(root.loc_type_by_name("raw"), Ok(LocationType::Group))
        && root.group("raw").is_ok_and(|raw| raw.link_exists("X") && raw.link_exists("var"));
    let (matrix, var_name) = if inside {
        ("raw/X", "raw/var")
    } else if root.link_exists("raw.X") && root.link_exists("raw.var") {
        ("raw.X", "raw.var")
    } else {
        return Ok(None);
    };
    let var = Frame::open(source, var_name)?;
    Ok(Some(Raw { matrix: matrix.to_owned(), var_name: var_name.to_owned(), var }))
}

/// The names of the layers, sorted. A plain group is no layer but part of the name of those within.
fn layer_names(source: &Source) -> Result<Vec<String>> {
    let mut names = Vec::new();
    if let Ok(LocationType::Group) = source.hdf5.loc_type_by_name("layers") {
        let layers = source.hdf5.group("layers").map_err(source.library_fault("layers"))?;
        collect_names(source, &layers, "", DEEPEST_NAME, &mut names)?;
    }
    names.sort();
    Ok(names)
}

fn collect_names(
    source: &Source,
    group: &Group,
    prefix: &str,
    depth: usize,
    names: &mut Vec<String>,
) -> Result<()> {
    let shown = group.name();
    for member in group.member_names().map_err(source.library_fault(&shown))? {
        let name = format!("{prefix}{member}");
        let inner = match group.loc_type_by_name(&member) {
            Ok(LocationType::Group) => group.group(&member).map_err(source.library_fault(&shown))?,
            _ => {
                names.push(name);
                continue;
            }
        };
        let encoded = attribute::encoding(&inner).is_some_and(|encoding| encoding != "dict")
            || attribute::text(&inner, "h5sparse_format").is_some();
        if encoded || depth == 0 {
            names.push(name);
        } else {
            collect_names(source, &inner, &format!("{name}/"), depth - 1, names)?;
        }
    }
    Ok(())
}
