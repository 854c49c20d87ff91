//! Rows out of a matrix stored by columns.
//!
//! The rows are put together in memory: 12 bytes for each stored value plus 8 for each row, whatever the number of
//! columns. A matrix of more than [`VALUES_IN_MEMORY`] values is read once more for each further part of that size, so
//! that 1.6 GB is the most it takes.

use std::ops::Range;
use std::sync::OnceLock;

use super::block::Block;
use super::sparse::{Sparse, partition};
use crate::error::{Error, Result};

/// Stored values of the rows that are in memory at once.
const VALUES_IN_MEMORY: usize = 1 << 27;

/// A matrix by columns, and what is known of its rows.
pub(super) struct Transposed {
    by_column: Sparse,
    /// Offsets of the rows, from a first pass over the indices.
    row_offsets: OnceLock<Vec<usize>>,
    /// All rows, when they are few enough to keep.
    rows: OnceLock<Block>,
}

impl Transposed {
    pub(super) fn new(by_column: Sparse) -> Transposed {
        Transposed { by_column, row_offsets: OnceLock::new(), rows: OnceLock::new() }
    }

    pub(super) fn by_column(&self) -> &Sparse {
        &self.by_column
    }

    /// Calls `visit` with blocks of at most about `limit` values, in row order.
    pub(super) fn for_each_block(
        &self,
        limit: usize,
        visit: &mut dyn FnMut(&Block) -> Result<()>,
    ) -> Result<()> {
        let offsets = match self.row_offsets.get() {
            Some(offsets) => offsets,
            None => {
                let offsets = self.count(limit)?;
                self.row_offsets.get_or_init(|| offsets)
            }
        };
        let parts = partition(offsets, VALUES_IN_MEMORY);
        let keep = parts.len() == 1;
        for part in parts {
            let gathered = match self.rows.get().filter(|_| keep) {
                Some(rows) => return each_slice(rows, limit, visit),
                None => self.gather(offsets, part, limit)?,
            };
            if keep {
                return each_slice(self.rows.get_or_init(|| gathered), limit, visit);
            }
            each_slice(&gathered, limit, visit)?;
        }
        Ok(())
    }

    /// Counts the values of each row, which also checks every index.
    fn count(&self, limit: usize) -> Result<Vec<usize>> {
        let rows = self.by_column.minor();
        let mut offsets = Vec::new();
        offsets.try_reserve_exact(rows.saturating_add(1)).map_err(|_| self.no_memory())?;
        offsets.resize(rows + 1, 0);
        let mut indices = Vec::new();
        for columns in self.by_column.parts(limit) {
            let first = columns.start;
            self.by_column.read_minor(columns, &mut indices)?;
            for (position, &row) in indices.iter().enumerate() {
                match offsets[1..].get_mut(row as usize) {
                    Some(count) => *count += 1,
                    None => return Err(self.by_column.out_of_range(first, position)),
                }
            }
        }
        for row in 0..rows {
            offsets[row + 1] += offsets[row];
        }
        Ok(offsets)
    }

    /// Puts `rows` together. Columns come in order, so each row's indices do not decrease.
    fn gather(&self, offsets: &[usize], rows: Range<usize>, limit: usize) -> Result<Block> {
        let first = offsets[rows.start];
        let stored = offsets[rows.end] - first;
        let indptr: Vec<usize> =
            offsets[rows.start..=rows.end].iter().map(|&offset| offset - first).collect();
        let mut next = indptr.clone();
        let mut block = Block { first_row: rows.start, indptr, ..Block::default() };
        block.indices.try_reserve_exact(stored).map_err(|_| self.no_memory())?;
        block.values.try_reserve_exact(stored).map_err(|_| self.no_memory())?;
        block.indices.resize(stored, 0);
        block.values.resize(stored, 0.0);
        let mut part = Block::default();
        for columns in self.by_column.parts(limit) {
            part = self.by_column.read(columns.clone(), part)?;
            for (column, range) in columns.zip(part.indptr.windows(2)) {
                for position in range[0]..range[1] {
                    let row = part.indices[position] as usize;
                    if !rows.contains(&row) {
                        continue;
                    }
                    let place = &mut next[row - rows.start];
                    let slots = (block.indices.get_mut(*place), block.values.get_mut(*place));
                    let (Some(index), Some(value)) = slots else {
                        return Err(self.by_column.changed());
                    };
                    (*index, *value) = (column as u32, part.values[position]);
                    *place += 1;
                }
            }
        }
        block.tidy(usize::MAX).map_err(|_| self.by_column.changed())
    }

    fn no_memory(&self) -> Error {
        let stored = self.by_column.stored();
        Error::environment(format_args!("no memory for the {stored} values of {}", self.by_column.name()))
    }
}

/// Hands out `rows` in blocks of at most about `limit` values.
fn each_slice(rows: &Block, limit: usize, visit: &mut dyn FnMut(&Block) -> Result<()>) -> Result<()> {
    for part in partition(&rows.indptr, limit) {
        let stored = rows.indptr[part.start]..rows.indptr[part.end];
        let indptr = rows.indptr[part.start..=part.end].iter().map(|&offset| offset - stored.start).collect();
        let (indices, values) = (rows.indices[stored.clone()].to_vec(), rows.values[stored].to_vec());
        visit(&Block { first_row: rows.first_row + part.start, indptr, indices, values })?;
    }
    Ok(())
}
