//! Nearest neighbours in an embedding.

use rayon::prelude::*;

use super::points::Points;

/// How far a long computation has come, from 0 to 1.
pub type Tick<'a> = &'a (dyn Fn(f64) + Sync);

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
pub fn nearest(points: &Points, k: usize, tick: Tick<'_>) -> Neighbours {
    let k = k.min(points.len().saturating_sub(1));
    let rows: Vec<Vec<(f64, u32)>> = (0..points.len())
        .into_par_iter()
        .map(|cell| {
            let other = (0..points.len()).filter(|&other| other != cell);
            smallest(other.map(|other| (distance(points.row(cell), points.row(other)), other as u32)), k)
        })
        .collect();
    tick(1.0);
    collect(k, rows)
}

/// The `k` nearest cells of `points` for every cell of `queries`, which are other cells.
pub fn nearest_of(points: &Points, queries: &Points, k: usize, tick: Tick<'_>) -> Neighbours {
    let k = k.min(points.len());
    let rows = (0..queries.len())
        .into_par_iter()
        .map(|cell| {
            let all = 0..points.len();
            smallest(all.map(|other| (distance(queries.row(cell), points.row(other)), other as u32)), k)
        })
        .collect();
    tick(1.0);
    collect(k, rows)
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
}

fn smallest(candidates: impl Iterator<Item = (f64, u32)>, k: usize) -> Vec<(f64, u32)> {
    let mut all: Vec<(f64, u32)> = candidates.collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.truncate(k);
    all
}

fn collect(k: usize, rows: Vec<Vec<(f64, u32)>>) -> Neighbours {
    let (distances, indices) = rows.into_iter().flatten().map(|(d, i)| (d as f32, i)).unzip();
    Neighbours { k, indices, distances, search: Search::Exact }
}
