//! A cells x genes matrix as kernels see it: sparse row blocks that can be streamed as often as needed.
//!
//! Kernels know no files. `h5ad::Matrix` streams blocks from disk, [`Csr`] serves them from memory.

use crate::error::Result;

/// Consecutive rows of a matrix in compressed sparse row form.
///
/// Column indices are strictly increasing within a row, explicit zeros and duplicates are gone.
#[derive(Debug, Clone, Copy)]
pub struct RowBlock<'a> {
    /// Index of the block's first row in the whole matrix.
    pub first_row: usize,
    /// `rows + 1` offsets into `indices` and `values`, starting at 0.
    pub indptr: &'a [usize],
    pub indices: &'a [u32],
    pub values: &'a [f64],
}

impl<'a> RowBlock<'a> {
    /// Number of rows in the block.
    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Column indices and values of the block's `row`-th row (counted within the block).
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [f64]) {
        let range = self.indptr[row]..self.indptr[row + 1];
        (&self.indices[range.clone()], &self.values[range])
    }
}

/// A matrix that can be streamed in row order, any number of times, a bounded number of values at once.
pub trait RowBlocks: Sync {
    /// Rows (cells) and columns (genes).
    fn shape(&self) -> (usize, usize);

    /// Calls `visit` with every block in row order; stops at the first error.
    fn for_each_block(&self, visit: &mut dyn FnMut(RowBlock<'_>) -> Result<()>) -> Result<()>;
}

/// A whole matrix in memory, compressed sparse row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Csr {
    pub columns: usize,
    pub indptr: Vec<usize>,
    pub indices: Vec<u32>,
    pub values: Vec<f64>,
}

impl RowBlocks for Csr {
    fn shape(&self) -> (usize, usize) {
        (self.indptr.len() - 1, self.columns)
    }

    fn for_each_block(&self, visit: &mut dyn FnMut(RowBlock<'_>) -> Result<()>) -> Result<()> {
        visit(RowBlock { first_row: 0, indptr: &self.indptr, indices: &self.indices, values: &self.values })
    }
}
