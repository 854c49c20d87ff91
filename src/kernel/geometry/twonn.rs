//! Intrinsic dimension from the two nearest neighbours.

use crate::kernel::neighbours::{Tick, nearest};
use crate::kernel::points::Points;
use crate::kernel::score::Score;

/// Fewest cells that an estimate is made of.
pub const LEAST_CELLS: usize = 10;

/// An intrinsic dimension and the cells it was estimated from.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    pub score: Score,
    pub cells: usize,
}

/// The TwoNN maximum likelihood estimate `N / sum(log(r2 / r1))` over the N cells with `0 < r1 < r2`, the distances to the
/// two nearest other cells.
///
/// Above 0; higher: the cells spread along more directions locally. Facco et al. 2017 without discarding a tail; equals the
/// sum over `sklearn.neighbors.NearestNeighbors(3)` (scikit-learn 1.9.1). Duplicated cells have `r1 = 0` and are left out,
/// which the notes say. NA when fewer than [`LEAST_CELLS`] cells remain. `squared` gives the squared distance of two cells in
/// float64; `points` are the same cells in float32 and find the neighbours.
pub fn two_nearest(
    points: &Points,
    squared: &(dyn Fn(usize, usize) -> f64 + Sync),
    tick: Tick<'_>,
) -> Dimension {
    let neighbours = nearest(points, 2, tick);
    let (mut cells, mut duplicates, mut sum) = (0, 0, 0.0);
    if neighbours.k == 2 {
        for cell in 0..points.len() {
            let (near, _) = neighbours.row(cell);
            let [a, b] = [near[0], near[1]].map(|other| squared(cell, other as usize));
            let (first, second) = (a.min(b), a.max(b));
            duplicates += usize::from(first == 0.0);
            if first > 0.0 && second > first {
                cells += 1;
                sum += 0.5 * (second / first).ln();
            }
        }
    }
    let mut score = match cells >= LEAST_CELLS {
        true => Score::number(cells as f64 / sum),
        false => Score::missing(format!(
            "TwoNN needs {LEAST_CELLS} cells with two neighbours at different distances, there are {cells}"
        )),
    };
    if duplicates > 0 {
        score = score.note(format!("{duplicates} duplicated cells left out of TwoNN"));
    }
    if let Some(note) = neighbours.search.note() {
        score = score.note(note);
    }
    Dimension { score, cells }
}
