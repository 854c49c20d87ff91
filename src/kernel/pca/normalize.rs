//! Counts of one cell, brought to a common total and logged.

use crate::error::Error;

/// Counts below this are integers so often that their logarithm is kept for the rest of the cell.
const SMALL_COUNTS: usize = 32;

/// The depth of one cell: by how much its counts are divided so that they add up to the target.
///
/// As in scanpy's `normalize_total`, a cell without counts is divided by one and stays zero.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Depth(f64);

impl Depth {
    pub fn of(counts: &[f64], target_sum: f64) -> Self {
        let divisor = counts.iter().sum::<f64>() / target_sum;
        Depth(if divisor > 0.0 { divisor } else { 1.0 })
    }

    pub fn normalized(self, count: f64) -> f64 {
        count / self.0
    }
}

/// `log1p` of normalised counts of one cell, each small count computed once.
pub(in super::super) struct Logs {
    depth: Depth,
    small: [f64; SMALL_COUNTS],
}

impl Logs {
    pub fn new(depth: Depth) -> Self {
        Logs { depth, small: [f64::NAN; SMALL_COUNTS] }
    }

    pub fn of(&mut self, count: f64) -> f64 {
        let whole = count as usize;
        if whole >= SMALL_COUNTS || whole as f64 != count {
            return self.depth.normalized(count).ln_1p();
        }
        let kept = &mut self.small[whole];
        if kept.is_nan() {
            *kept = self.depth.normalized(count).ln_1p();
        }
        *kept
    }
}

/// A stored value that cannot be a count.
#[derive(Debug, Clone, Copy)]
pub(super) struct BadCount {
    pub cell: usize,
    gene: u32,
    value: f64,
}

impl BadCount {
    /// The first one of a row.
    pub fn find(cell: usize, (genes, counts): (&[u32], &[f64])) -> Option<Self> {
        let at = counts.iter().position(|count| !(count.is_finite() && *count >= 0.0))?;
        Some(BadCount { cell, gene: genes[at], value: counts[at] })
    }

    pub fn into_error(self) -> Error {
        let BadCount { cell, gene, value } = self;
        Error::input(format_args!(
            "cell {cell}, gene {gene} (counted from 0) holds {value}, a count is a finite number from 0 up"
        ))
    }
}
