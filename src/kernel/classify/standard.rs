//! Standard scores: dimensions brought to mean 0 and variance 1.

use std::ops::Range;

use rayon::prelude::*;

use crate::kernel::points::Points;

/// Rows whose sums one thread takes.
const LANE: usize = 2048;

/// Mean and standard deviation of every dimension of a reference.
///
/// As scikit-learn 1.9.1, `StandardScaler`: the deviation is the population's, and 1 for a dimension that is constant
/// but for rounding. Sums are float64.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standard {
    pub mean: Vec<f64>,
    pub scale: Vec<f64>,
}

impl Standard {
    pub fn of(points: &Points) -> Standard {
        let cells = points.len() as f64;
        let mean: Vec<f64> = sums(points, |value, _| value).into_iter().map(|sum| sum / cells).collect();
        let squares = sums(points, |value, dimension| (value - mean[dimension]).powi(2));
        let scale = |(sum, mean): (f64, &f64)| {
            let variance = sum / cells;
            let rounding = cells * f64::EPSILON * variance + (cells * mean * f64::EPSILON).powi(2);
            if variance <= rounding { 1.0 } else { variance.sqrt() }
        };
        let scale = squares.into_iter().zip(&mean).map(scale).collect();
        Standard { mean, scale }
    }

    /// Standard scores of a cell.
    #[inline(always)]
    pub fn row(&self, values: &[f32], scores: &mut [f64]) {
        for ((score, &value), (mean, scale)) in
            scores.iter_mut().zip(values).zip(self.mean.iter().zip(&self.scale))
        {
            *score = (f64::from(value) - mean) / scale;
        }
    }

    /// Standard scores of consecutive cells, row-major.
    #[inline(always)]
    pub fn rows(&self, points: &Points, cells: Range<usize>, scores: &mut [f64]) {
        for (cell, scores) in cells.zip(scores.chunks_exact_mut(points.dims())) {
            self.row(points.row(cell), scores);
        }
    }
}

/// The sum of `term(value, dimension)` over all cells, for every dimension.
fn sums(points: &Points, term: impl Fn(f64, usize) -> f64 + Sync) -> Vec<f64> {
    let dims = points.dims();
    let lanes: Vec<Vec<f64>> = points
        .values()
        .par_chunks(LANE * dims)
        .map(|lane| {
            let mut sums = vec![0.0; dims];
            for row in lane.chunks_exact(dims) {
                for (dimension, (sum, &value)) in sums.iter_mut().zip(row).enumerate() {
                    *sum += term(f64::from(value), dimension);
                }
            }
            sums
        })
        .collect();
    let mut total = vec![0.0; dims];
    for lane in lanes {
        total.iter_mut().zip(lane).for_each(|(total, sum)| *total += sum);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_dimension_is_only_centred() {
        let standard = Standard::of(&Points::new(vec![1.0, 0.1, 3.0, 0.1, 5.0, 0.1], 2));
        assert_eq!(standard.mean[0], 3.0);
        assert!((standard.scale[0] - (8.0f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(standard.scale[1], 1.0);
        let mut scores = [0.0; 2];
        standard.row(&[3.0, 0.1], &mut scores);
        assert!(scores[0] == 0.0 && scores[1].abs() < 1e-15);
    }
}
