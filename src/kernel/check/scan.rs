//! One pass over every value of a matrix.

use crate::error::Result;
use crate::matrix::RowBlocks;

/// No gene is counted more often in a cell: larger numbers are negative ones that were read as unsigned.
pub(super) const LARGEST_COUNT: f64 = i32::MAX as f64;

/// Cells whose `expm1` is summed: it says what the values look like, and would be the dearest step of the pass.
const EXPM1_CELLS: usize = 1000;

/// Values of one sort: how many, and the first in row order.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tally {
    pub count: u64,
    pub first: Option<Place>,
}

/// A value and where it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    pub row: usize,
    pub column: usize,
    pub value: f64,
}

impl Tally {
    fn add(&mut self, row: usize, column: u32, value: f64) {
        self.count += 1;
        self.first.get_or_insert(Place { row, column: column as usize, value });
    }
}

/// The least and the largest of some numbers; absent before the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub min: f64,
    pub max: f64,
}

impl Range {
    const NONE: Range = Range { min: f64::INFINITY, max: f64::NEG_INFINITY };

    fn add(&mut self, value: f64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn include(&mut self, other: Range) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Nothing when no number was added.
    fn known(self) -> Option<Range> {
        (self.min <= self.max).then_some(self)
    }

    fn is_constant_so_far(self) -> bool {
        self.known().is_none() || self.constant().is_some()
    }

    /// The common value of numbers that differ by no more than float32 rounding of the values they are sums of.
    pub(super) fn constant(self) -> Option<f64> {
        (self.min > 0.0 && self.max - self.min <= 1e-3 * self.max).then_some(self.max)
    }
}

/// What one pass over a matrix found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scan {
    pub cells: usize,
    pub genes: usize,
    pub nnz: u64,
    /// Of the finite values; the row sums are added in row order, so the result does not depend on the blocks.
    pub sum: f64,
    /// Of the finite values, zeros that are not stored among them.
    pub range: Option<Range>,
    pub negative: Tally,
    /// Finite values with a fraction.
    pub fractional: Tally,
    pub nan: Tally,
    pub infinite: Tally,
    /// Row sums of the cells that are not empty.
    pub cell_sums: Option<Range>,
    /// Row sums of `expm1` of the values, of the first 1,000 cells that have a fraction: constant where the values are
    /// `log1p` of normalised counts. Not followed further once they differ.
    pub cell_expm1_sums: Option<Range>,
    /// Cells that are not empty and hold whole numbers only.
    pub whole_cells: usize,
    pub per_cell: Vec<CellValues>,
    /// Cells in which each gene is not 0.
    pub gene_cells: Vec<u32>,
}

/// The row of one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CellValues {
    pub sum: f64,
    /// Genes that are not 0.
    pub genes: u32,
}

/// Reads `matrix` once, on the calling thread.
///
/// Memory: 16 bytes a cell (8 more while a median is taken), 4 bytes a gene, and the block the matrix hands out.
pub(super) fn scan(matrix: &dyn RowBlocks) -> Result<Scan> {
    let (cells, genes) = matrix.shape();
    let mut scan = Scan {
        cells,
        genes,
        nnz: 0,
        sum: 0.0,
        range: None,
        negative: Tally::default(),
        fractional: Tally::default(),
        nan: Tally::default(),
        infinite: Tally::default(),
        cell_sums: None,
        cell_expm1_sums: None,
        whole_cells: 0,
        per_cell: Vec::with_capacity(cells),
        gene_cells: vec![0; genes],
    };
    let mut ranges =
        Ranges { values: Range::NONE, sums: Range::NONE, expm1_sums: Range::NONE, expm1_cells: 0 };
    matrix.for_each_block(&mut |block| {
        for row in 0..block.rows() {
            let (indices, values) = block.row(row);
            scan.add_row(block.first_row + row, indices, values, &mut ranges);
        }
        Ok(())
    })?;
    scan.range = ranges.values.known();
    scan.cell_sums = ranges.sums.known();
    scan.cell_expm1_sums = ranges.expm1_sums.known();
    Ok(scan)
}

struct Ranges {
    values: Range,
    sums: Range,
    expm1_sums: Range,
    expm1_cells: usize,
}

impl Scan {
    fn add_row(&mut self, row: usize, indices: &[u32], values: &[f64], ranges: &mut Ranges) {
        let mut sum = 0.0;
        let mut range = Range::NONE;
        let mut whole = true;
        for (&column, &value) in indices.iter().zip(values) {
            self.gene_cells[column as usize] += 1;
            // Only whole numbers that fit survive the round trip: NaN, fractions and negative numbers do not.
            if f64::from(value as u32) == value {
                sum += value;
                range.add(value);
            } else {
                whole = false;
                if value.is_finite() {
                    sum += value;
                    range.add(value);
                }
                self.add_odd(row, column, value);
            }
        }
        ranges.values.include(range);
        if values.len() < self.genes {
            ranges.values.add(0.0);
        }
        if !values.is_empty() {
            ranges.sums.add(sum);
            if whole {
                self.whole_cells += 1;
            } else if ranges.expm1_cells < EXPM1_CELLS && ranges.expm1_sums.is_constant_so_far() {
                ranges.expm1_cells += 1;
                ranges.expm1_sums.add(values.iter().map(|value| value.exp_m1()).sum());
            }
        }
        self.nnz += values.len() as u64;
        self.sum += sum;
        self.per_cell.push(CellValues { sum, genes: values.len() as u32 });
    }

    fn add_odd(&mut self, row: usize, column: u32, value: f64) {
        if value.is_nan() {
            return self.nan.add(row, column, value);
        }
        if value.is_infinite() {
            return self.infinite.add(row, column, value);
        }
        if value < 0.0 {
            self.negative.add(row, column, value);
        }
        if value.trunc() != value {
            self.fractional.add(row, column, value);
        }
    }

    pub(super) fn empty_cells(&self) -> usize {
        self.per_cell.iter().filter(|cell| cell.genes == 0).count()
    }

    pub(super) fn empty_genes(&self) -> usize {
        self.gene_cells.iter().filter(|&&cells| cells == 0).count()
    }

    /// Non-zero share of all values; 0 for a matrix without any.
    pub(super) fn density(&self) -> f64 {
        let all = self.cells as f64 * self.genes as f64;
        if all == 0.0 { 0.0 } else { self.nnz as f64 / all }
    }

    /// Median over the cells of what `of` says of each; 0 for no cells.
    pub(super) fn median(&self, of: impl Fn(&CellValues) -> f64) -> f64 {
        let mut values: Vec<f64> = self.per_cell.iter().map(of).collect();
        if values.is_empty() {
            return 0.0;
        }
        let (odd, middle) = (values.len() % 2 == 1, values.len() / 2);
        let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
        if odd {
            return upper;
        }
        let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (lower + upper) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Csr, RowBlock};

    /// Rows of (column, value) as a matrix.
    pub fn matrix(columns: usize, rows: &[&[(u32, f64)]]) -> Csr {
        let mut csr = Csr { columns, indptr: vec![0], ..Csr::default() };
        for row in rows {
            csr.indices.extend(row.iter().map(|entry| entry.0));
            csr.values.extend(row.iter().map(|entry| entry.1));
            csr.indptr.push(csr.indices.len());
        }
        csr
    }

    #[test]
    fn every_odd_value_is_counted_and_the_first_is_placed() {
        let matrix = matrix(
            4,
            &[
                &[(0, 3.0), (2, 1.0)],
                &[],
                &[(1, -7.0), (2, 0.5), (3, f64::NAN)],
                &[(0, f64::INFINITY), (1, -0.25), (3, f64::NAN)],
            ],
        );
        let scan = scan(&matrix).unwrap();
        assert_eq!((scan.cells, scan.genes, scan.nnz), (4, 4, 8));
        assert_eq!(scan.sum, 3.0 + 1.0 - 7.0 + 0.5 - 0.25);
        assert_eq!(scan.range, Some(Range { min: -7.0, max: 3.0 }));
        assert_eq!(scan.negative, Tally { count: 2, first: Some(Place { row: 2, column: 1, value: -7.0 }) });
        assert_eq!(scan.fractional, Tally { count: 2, first: Some(Place { row: 2, column: 2, value: 0.5 }) });
        assert_eq!(scan.nan.count, 2);
        let first = scan.nan.first.unwrap();
        assert_eq!((first.row, first.column), (2, 3));
        assert_eq!(scan.infinite.count, 1);
        assert_eq!((scan.empty_cells(), scan.empty_genes()), (1, 0));
        assert_eq!(scan.gene_cells, [2, 2, 2, 2]);
    }

    #[test]
    fn zeros_that_are_not_stored_count_in_the_range() {
        assert_eq!(scan(&matrix(2, &[&[(0, 3.0)]])).unwrap().range, Some(Range { min: 0.0, max: 3.0 }));
        assert_eq!(scan(&matrix(1, &[&[(0, 3.0)]])).unwrap().range, Some(Range { min: 3.0, max: 3.0 }));
        assert_eq!(scan(&matrix(2, &[])).unwrap().range, None);
    }

    #[test]
    fn medians_of_odd_and_even_numbers_of_cells() {
        let three = scan(&matrix(3, &[&[(0, 5.0)], &[(0, 1.0)], &[(0, 1.0), (1, 2.0)]])).unwrap();
        assert_eq!(three.median(|cell| cell.sum), 3.0);
        assert_eq!(three.median(|cell| f64::from(cell.genes)), 1.0);
        let two = scan(&matrix(3, &[&[(0, 5.0)], &[(0, 1.0)]])).unwrap();
        assert_eq!(two.median(|cell| cell.sum), 3.0);
        assert_eq!(scan(&matrix(3, &[])).unwrap().median(|cell| cell.sum), 0.0);
    }

    /// The same matrix, a row a block.
    struct RowByRow(Csr);

    impl RowBlocks for RowByRow {
        fn shape(&self) -> (usize, usize) {
            self.0.shape()
        }

        fn for_each_block(&self, visit: &mut dyn FnMut(RowBlock<'_>) -> Result<()>) -> Result<()> {
            self.0.for_each_block(&mut |whole| {
                for row in 0..whole.rows() {
                    let (indices, values) = whole.row(row);
                    visit(RowBlock { first_row: row, indptr: &[0, indices.len()], indices, values })?;
                }
                Ok(())
            })
        }
    }

    #[test]
    fn the_result_does_not_depend_on_the_blocks() {
        let matrix = matrix(3, &[&[(0, 0.1), (1, 0.7)], &[(2, -0.3)], &[(0, 1e9), (2, 0.2)], &[]]);
        assert_eq!(scan(&matrix).unwrap(), scan(&RowByRow(matrix)).unwrap());
    }
}
