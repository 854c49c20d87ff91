//! Consecutive rows in memory, brought into the form that kernels rely on.

use rayon::prelude::*;

use crate::matrix::RowBlock;

/// Rows checked by one task.
const ROWS_PER_TASK: usize = 256;

/// Consecutive rows of a matrix, compressed sparse row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Block {
    pub first_row: usize,
    /// `rows + 1` offsets, starting at 0.
    pub indptr: Vec<usize>,
    pub indices: Vec<u32>,
    pub values: Vec<f64>,
}

/// What stands in the way of using a block as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Clean,
    /// Indices not strictly increasing, or explicit zeros.
    Untidy,
    /// An index beyond the last column.
    OutOfRange,
}

impl Block {
    pub(super) fn view(&self) -> RowBlock<'_> {
        RowBlock {
            first_row: self.first_row,
            indptr: &self.indptr,
            indices: &self.indices,
            values: &self.values,
        }
    }

    /// Sorts each row, sums duplicates, drops explicit zeros. NaN stays.
    ///
    /// The error is the position of the first index that is not below `columns`.
    pub(super) fn tidy(self, columns: usize) -> Result<Block, usize> {
        match self.state(columns) {
            State::Clean => Ok(self),
            State::Untidy => Ok(self.rebuilt()),
            State::OutOfRange => {
                Err(self.indices.iter().position(|&index| index as usize >= columns).unwrap_or(0))
            }
        }
    }

    fn state(&self, columns: usize) -> State {
        let rows = self.indptr.len() - 1;
        let tasks = rows.div_ceil(ROWS_PER_TASK);
        let state = |task: usize| {
            let rows = task * ROWS_PER_TASK..rows.min((task + 1) * ROWS_PER_TASK);
            rows.map(|row| self.row_state(row, columns)).max().unwrap_or(State::Clean)
        };
        (0..tasks).into_par_iter().map(state).max().unwrap_or(State::Clean)
    }

    fn row_state(&self, row: usize, columns: usize) -> State {
        let range = self.indptr[row]..self.indptr[row + 1];
        let indices = &self.indices[range.clone()];
        let mut largest = 0;
        let mut increasing = true;
        for (position, &index) in indices.iter().enumerate() {
            increasing &= position == 0 || index > indices[position - 1];
            largest = largest.max(index);
        }
        let no_zero = self.values[range].iter().fold(true, |no_zero, &value| no_zero & (value != 0.0));
        if !indices.is_empty() && largest as usize >= columns {
            State::OutOfRange
        } else if increasing && no_zero {
            State::Clean
        } else {
            State::Untidy
        }
    }

    fn rebuilt(self) -> Block {
        let mut tidy = Block { first_row: self.first_row, indptr: vec![0], ..Block::default() };
        tidy.indices.reserve(self.indices.len());
        tidy.values.reserve(self.values.len());
        let mut entries = Vec::new();
        for row in self.indptr.windows(2) {
            let range = row[0]..row[1];
            entries.clear();
            entries
                .extend(self.indices[range.clone()].iter().copied().zip(self.values[range].iter().copied()));
            // A stable sort, so that duplicates are summed in the file's order.
            entries.sort_by_key(|&(index, _)| index);
            for same in entries.chunk_by(|left, right| left.0 == right.0) {
                let sum = same[1..].iter().fold(same[0].1, |sum, &(_, value)| sum + value);
                if sum != 0.0 {
                    tidy.indices.push(same[0].0);
                    tidy.values.push(sum);
                }
            }
            tidy.indptr.push(tidy.indices.len());
        }
        tidy
    }

    /// Takes the values other than zero of dense rows into the memory of this block.
    pub(super) fn compress(mut self, first_row: usize, columns: usize, dense: &[f64]) -> Block {
        let count = |row: &[f64]| row.iter().filter(|&&value| value != 0.0).count();
        let counts: Vec<usize> = dense.par_chunks(columns).map(count).collect();
        self.first_row = first_row;
        self.indptr.clear();
        self.indptr.push(0);
        let mut stored = 0;
        self.indptr.extend(counts.iter().map(|count| {
            stored += count;
            stored
        }));
        self.indices.resize(stored, 0);
        self.values.resize(stored, 0.0);
        let mut tasks = Vec::new();
        let (mut indices, mut values) = (self.indices.as_mut_slice(), self.values.as_mut_slice());
        for (rows, counts) in dense.chunks(columns * ROWS_PER_TASK).zip(counts.chunks(ROWS_PER_TASK)) {
            let (task_indices, task_values);
            (task_indices, indices) = indices.split_at_mut(counts.iter().sum());
            (task_values, values) = values.split_at_mut(task_indices.len());
            tasks.push((rows, task_indices, task_values));
        }
        tasks.into_par_iter().for_each(|(rows, indices, values)| {
            let entries = rows.chunks(columns).flat_map(|row| row.iter().enumerate());
            let entries = entries.filter(|&(_, &value)| value != 0.0);
            for ((index, slot), (column, &value)) in indices.iter_mut().zip(values).zip(entries) {
                (*index, *slot) = (column as u32, value);
            }
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(indptr: &[usize], indices: &[u32], values: &[f64]) -> Block {
        Block { first_row: 3, indptr: indptr.to_vec(), indices: indices.to_vec(), values: values.to_vec() }
    }

    #[test]
    fn rows_are_sorted_summed_and_freed_of_zeros() {
        let untidy = block(&[0, 4, 4, 6], &[5, 1, 5, 0, 2, 2], &[1.0, 2.0, 3.0, 0.0, 1.0, -1.0]);
        assert_eq!(untidy.tidy(6).unwrap(), block(&[0, 2, 2, 2], &[1, 5], &[2.0, 4.0]));
    }

    #[test]
    fn not_a_number_stays() {
        let tidy = block(&[0, 2], &[1, 0], &[f64::NAN, 1.0]).tidy(2).unwrap();
        assert_eq!(tidy.indices, [0, 1]);
        assert!(tidy.values[1].is_nan());
    }

    #[test]
    fn an_index_out_of_range_is_found() {
        assert_eq!(block(&[0, 1, 3], &[1, 0, 2], &[1.0; 3]).tidy(2), Err(2));
        assert!(block(&[0, 0], &[], &[]).tidy(0).is_ok());
    }

    #[test]
    fn dense_rows_become_sparse() {
        let dense = [0.0, 1.0, 0.0, 0.0, f64::INFINITY, -0.0];
        assert_eq!(
            Block::default().compress(3, 2, &dense),
            block(&[0, 1, 1, 2], &[1, 0], &[1.0, f64::INFINITY])
        );
    }
}
