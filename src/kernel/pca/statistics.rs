//! First pass: mean and variance of every gene.

use rayon::prelude::*;

use super::normalize::{BadCount, Depth, Logs};
use crate::error::Result;
use crate::matrix::{RowBlock, RowBlocks};

/// Rows are dealt to this many lanes, each summed in row order by one thread, the lanes then added in order: the sums
/// are the same for any number of threads and any blocks.
const LANES: usize = 16;

/// Consecutive rows that go to the same lane.
const LANE_ROWS: usize = 16;

/// A variance below this part of the squared mean is rounding: the gene is constant.
const ROUNDING: f64 = 1e-11;

/// Mean and unbiased variance of one gene over all cells; exactly 0 for a gene that is constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gene {
    /// Of counts normalised to the target sum.
    pub mean: f64,
    pub variance: f64,
    /// Of `log1p` of those.
    pub log_mean: f64,
    pub log_variance: f64,
}

#[derive(Debug)]
pub(super) struct Statistics {
    pub cells: usize,
    pub empty_cells: usize,
    pub genes: Vec<Gene>,
}

/// Sum, sum of squares, sum of logs, sum of squared logs of one gene; never across two cache lines.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
struct Sums([f64; 4]);

#[derive(Default)]
struct Lane {
    sums: Vec<Sums>,
    empty_cells: usize,
    bad: Option<BadCount>,
}

impl Statistics {
    /// Collects them in one pass. Errors: a count that is negative or not finite.
    pub fn collect(matrix: &dyn RowBlocks, target_sum: f64, done: &dyn Fn(usize)) -> Result<Self> {
        let (cells, columns) = matrix.shape();
        let mut lanes: Vec<Lane> = Vec::new();
        lanes.resize_with(LANES, || Lane { sums: vec![Sums::default(); columns], ..Lane::default() });
        matrix.for_each_block(&mut |block| {
            lanes.par_iter_mut().enumerate().for_each(|(lane, state)| {
                for row in lane_rows(block, lane) {
                    state.add(block.first_row + row, block.row(row), target_sum);
                }
            });
            if let Some(bad) = lanes.iter().filter_map(|lane| lane.bad).min_by_key(|bad| bad.cell) {
                return Err(bad.into_error());
            }
            done(block.first_row + block.rows());
            Ok(())
        })?;
        let empty_cells = lanes.iter().map(|lane| lane.empty_cells).sum();
        let gene = |column: usize| {
            let mut total = [0.0; 4];
            for lane in &lanes {
                total.iter_mut().zip(lane.sums[column].0).for_each(|(total, sum)| *total += sum);
            }
            let (mean, variance) = moments(total[0], total[1], cells);
            let (log_mean, log_variance) = moments(total[2], total[3], cells);
            Gene { mean, variance, log_mean, log_variance }
        };
        Ok(Statistics { cells, empty_cells, genes: (0..columns).into_par_iter().map(gene).collect() })
    }
}

/// The rows of a block, counted within it, that belong to a lane.
fn lane_rows(block: RowBlock<'_>, lane: usize) -> impl Iterator<Item = usize> {
    let (first, end) = (block.first_row, block.first_row + block.rows());
    (first / LANE_ROWS..end.div_ceil(LANE_ROWS))
        .filter(move |run| run % LANES == lane)
        .flat_map(move |run| (run * LANE_ROWS).max(first)..((run + 1) * LANE_ROWS).min(end))
        .map(move |row| row - first)
}

impl Lane {
    fn add(&mut self, cell: usize, (genes, counts): (&[u32], &[f64]), target_sum: f64) {
        if let Some(bad) = BadCount::find(cell, (genes, counts)) {
            // Rows of a lane come in order, so the first one found stays.
            self.bad.get_or_insert(bad);
            return;
        }
        if counts.iter().all(|&count| count == 0.0) {
            self.empty_cells += 1;
            return;
        }
        let depth = Depth::of(counts, target_sum);
        let mut logs = Logs::new(depth);
        for (&gene, &count) in genes.iter().zip(counts) {
            let (value, log) = (depth.normalized(count), logs.of(count));
            let Sums(sums) = &mut self.sums[gene as usize];
            let terms = [value, value * value, log, log * log];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
    }
}

/// Mean and unbiased variance from a sum and a sum of squares.
fn moments(sum: f64, squares: f64, cells: usize) -> (f64, f64) {
    let count = cells as f64;
    let mean = sum / count;
    let variance = (squares - sum * mean) / (count - 1.0);
    (mean, if variance > ROUNDING * mean * mean { variance } else { 0.0 })
}
