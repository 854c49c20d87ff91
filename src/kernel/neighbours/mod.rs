//! Nearest neighbours in an embedding.
//!
//! Up to a stated size every cell is compared with every other: products of strips with blocks of cells in float32, from
//! which candidates are picked that the rounding bound does not rule out, whose distances are then computed in float64.
//! Above, cells are compared with those of nearby groups only, and the recall of that is measured.

mod approximate;
mod lists;
mod pool;
mod search;
mod strip;

use super::points::Points;
use super::tiles::{Frame, Layout};
use search::Task;

/// How far a long computation has come, from 0 to 1.
pub type Tick<'a> = &'a (dyn Fn(f64) + Sync);

/// Most cells that are all compared with each other; among more the search is approximate.
pub const EXACT_UP_TO: usize = 200_000;

/// The nearest other cells of every cell by Euclidean distance.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbours {
    /// Neighbours per cell: as asked for, but at most the other cells there are.
    pub k: usize,
    /// Row-major cells x `k`, nearest first (equal distances: lower index first). The cell itself is not among them.
    pub indices: Vec<u32>,
    /// Distances of the same shape: computed in float64, rounded once.
    pub distances: Vec<f32>,
    pub search: Search,
}

/// How the neighbours were found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Search {
    Exact,
    /// `recall` is the share of true neighbours found, measured on `sampled` cells.
    Approximate {
        recall: f64,
        sampled: usize,
    },
}

impl Search {
    /// What has to be said of neighbours that are not exact.
    pub fn note(self) -> Option<String> {
        match self {
            Search::Exact => None,
            Search::Approximate { recall, sampled } => Some(format!(
                "approximate neighbours: {recall:.4} of the true ones, measured on {sampled} cells"
            )),
        }
    }
}

impl Neighbours {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.indices.len().checked_div(self.k).unwrap_or(0)
    }

    /// Whether no cell has a neighbour.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The neighbours of one cell and their distances.
    pub fn row(&self, cell: usize) -> (&[u32], &[f32]) {
        let range = cell * self.k..(cell + 1) * self.k;
        (&self.indices[range.clone()], &self.distances[range])
    }
}

/// The `k` nearest other cells of every cell.
///
/// Exact for at most [`EXACT_UP_TO`] cells: the sets and distances are those of sorting all float64 distances. Memory
/// beyond the result and the points: 4 bytes a cell for each of three columns, and a few MB a thread; the points once more
/// where the search is approximate.
pub fn nearest(points: &Points, k: usize, tick: Tick<'_>) -> Neighbours {
    nearest_with(points, k, EXACT_UP_TO, tick)
}

/// [`nearest`] with another bound than [`EXACT_UP_TO`].
pub fn nearest_with(points: &Points, k: usize, exact_up_to: usize, tick: Tick<'_>) -> Neighbours {
    let k = k.min(points.len().saturating_sub(1));
    if k == 0 {
        return none(tick);
    }
    let frame = Frame::around(points, points);
    if points.len() > exact_up_to
        && let Some(found) = approximate::among(points, &frame, k, tick)
    {
        return found;
    }
    let layout = Layout::whole(points, &frame);
    let own = |position: usize| Some(position as u32);
    let rows = Task { columns: &layout, queries: &layout, own: &own, k }.exhaustive(tick);
    exact(rows)
}

/// The `k` nearest cells of `points` for every cell of `queries`, which are other cells.
///
/// Exact while there are at most as many pairs as among [`EXACT_UP_TO`] cells. Both have the same dimensions.
pub fn nearest_of(points: &Points, queries: &Points, k: usize, tick: Tick<'_>) -> Neighbours {
    nearest_of_with(points, queries, k, EXACT_UP_TO, tick)
}

/// [`nearest_of`] with another bound than [`EXACT_UP_TO`].
pub fn nearest_of_with(
    points: &Points,
    queries: &Points,
    k: usize,
    exact_up_to: usize,
    tick: Tick<'_>,
) -> Neighbours {
    let k = k.min(points.len());
    if k == 0 || queries.is_empty() {
        return Neighbours { k, ..none(tick) };
    }
    let frame = Frame::around(points, queries);
    let pairs = points.len() as u128 * queries.len() as u128;
    if pairs > (exact_up_to as u128).pow(2)
        && let Some(found) = approximate::between(points, queries, &frame, k, tick)
    {
        return found;
    }
    let (columns, queries) = (Layout::whole(points, &frame), Layout::whole(queries, &frame));
    exact(Task { columns: &columns, queries: &queries, own: &|_| None, k }.exhaustive(tick))
}

fn exact(rows: search::Rows) -> Neighbours {
    let search::Rows { k, indices, distances } = rows;
    Neighbours { k, indices, distances, search: Search::Exact }
}

fn none(tick: Tick<'_>) -> Neighbours {
    tick(1.0);
    Neighbours { k: 0, indices: Vec::new(), distances: Vec::new(), search: Search::Exact }
}

#[cfg(test)]
mod tests;
