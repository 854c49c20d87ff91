//! The .h5ad format (AnnData in HDF5): read every encoding in circulation, write embeddings.

mod column;
mod frame;
mod matrix;
mod write;

use std::fmt;
use std::path::{Path, PathBuf};

pub use column::{Column, Labels};
pub use frame::Frame;
pub use matrix::{Encoding, Matrix};
pub use write::{EmbeddingRef, UnsValue, write_embedding};

use crate::error::Result;

/// An AnnData file opened for reading, without any lock on it.
pub struct H5ad {
    path: PathBuf,
    obs: Frame,
    var: Frame,
    raw_var: Option<Frame>,
    obsm_keys: Vec<String>,
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
    /// Opens `path` and checks that it is a whole AnnData file.
    pub fn open(_path: &Path) -> Result<H5ad> {
        todo!()
    }

    pub fn path(&self) -> &Path {
        &self.path
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
        self.raw_var.as_ref()
    }

    /// The matrices there are: X, layers, raw, in this order.
    pub fn slots(&self) -> Vec<Slot> {
        todo!()
    }

    /// The matrix in `slot`.
    pub fn matrix(&self, _slot: &Slot) -> Result<Matrix<'_>> {
        todo!()
    }

    /// The names of the entries of `obsm`, sorted.
    pub fn obsm_keys(&self) -> &[String] {
        &self.obsm_keys
    }
}
