//! How many directions an embedding uses.

use super::gram;
use super::standard::Standard;
use crate::kernel::points::Points;
use crate::kernel::score::Score;

/// The participation ratio `(tr C)^2 / tr(C^2)` of the covariance C of the standardised embedding.
///
/// From 1 (all variance along one direction) to the number of coordinates that vary (variance alike along all); higher: more
/// directions in use. Exact for every number of dimensions, by the smaller Gram matrix. Equals
/// `numpy.trace(C)**2 / numpy.sum(C**2)` (numpy 2). NA for fewer than 2 cells and where every coordinate is constant.
pub fn participation_ratio(points: &Points, standard: &Standard) -> Score {
    let (cells, dims) = (points.len(), points.dims());
    if cells < 2 {
        return Score::missing("pr needs 2 cells");
    }
    if standard.constant() == dims {
        return Score::missing("every coordinate of the embedding is constant");
    }
    let gram = gram::smaller(cells, dims, &|cell, dim| standard.value(dim, points.row(cell)[dim]));
    let size = cells.min(dims);
    let trace: f64 = (0..size).map(|index| gram[index * size + index]).sum();
    let squares: f64 = gram.iter().map(|value| value * value).sum();
    Score::number(trace * trace / squares)
}
