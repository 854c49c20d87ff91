//! A matrix on disk, streamed in blocks of rows.

use std::marker::PhantomData;

use super::H5ad;
use crate::error::Result;
use crate::matrix::{RowBlock, RowBlocks};

/// How a matrix is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Dense,
    Csr,
    Csc,
}

/// A matrix of an open file.
pub struct Matrix<'file> {
    encoding: Encoding,
    dtype: String,
    shape: (usize, usize),
    stored: u64,
    file: PhantomData<&'file H5ad>,
}

impl Matrix<'_> {
    /// How the matrix is stored.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The numpy name of the type of its values, such as `float32` or `int64`.
    pub fn dtype(&self) -> &str {
        &self.dtype
    }

    /// How many values are stored: all for a dense matrix.
    pub fn stored(&self) -> u64 {
        self.stored
    }
}

impl RowBlocks for Matrix<'_> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn for_each_block(&self, _visit: &mut dyn FnMut(RowBlock<'_>) -> Result<()>) -> Result<()> {
        todo!()
    }
}
