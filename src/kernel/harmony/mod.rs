//! Harmony: moves cells of an embedding so that batches mix within every soft cluster.
//!
//! After Korsunsky et al., Fast, sensitive and accurate integration of single-cell data with Harmony, Nature Methods 16
//! (2019). Two steps are repeated until the objective no longer falls:
//!
//! 1. maximum diversity clustering ([`clustering`]): k-means on the unit sphere whose memberships are soft, and drawn
//!    towards clusters in which a cell's batch is rarer than chance would have it,
//! 2. correction ([`correction`]): in every cluster the effect of each batch is estimated by ridge regression on the
//!    original coordinates, and taken from the cells by their membership.
//!
//! Defaults are those of the paper and of harmonypy 0.0.10, whose values the same start gives to float32 rounding (tested);
//! its penalty for diversity alone is 2, as in the paper. One thing is done differently for speed: cells are dealt to the
//! blocks that are assigned together once, at random, and the order of the blocks is drawn anew in every round, where
//! harmonypy deals the cells anew.
//!
//! Sums run over lanes that depend on the number of cells only, so any number of threads gives the same bits. Memory:
//! 4 bytes for each cell and cluster, and 20 for each cell and dimension.

mod clustering;
mod correction;
mod exponential;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::kmeans::kmeans;
use super::points::{Classes, Points};
use clustering::Clustering;

/// Rounds of clustering over whose objectives the mean is taken to see whether it still falls.
const WINDOW: usize = 3;

/// What Harmony does; the default is that of the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// How much clusters with cells of one batch only are penalised; 0 not at all.
    pub theta: f64,
    /// Ridge penalty on the effect of a batch, in cells.
    pub lambda: f64,
    /// Width of the soft clusters: small ones are hard.
    pub sigma: f64,
    /// Share of the cells that is assigned before the counts of batches in clusters are taken anew.
    pub block_share: f64,
    /// Most rounds of clustering before a correction.
    pub rounds: usize,
    /// Most corrections.
    pub iterations: usize,
    /// Relative change of the objective, over three rounds, below which clustering ends.
    pub cluster_tolerance: f64,
    /// Relative fall of the objective from one correction to the next below which all ends.
    pub tolerance: f64,
    /// Of the start, the blocks and their order.
    pub seed: u64,
    /// Whether blocks are drawn at random; else they are runs of cells, visited in order.
    pub shuffle: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            theta: 2.0,
            lambda: 1.0,
            sigma: 0.1,
            block_share: 0.05,
            rounds: 20,
            iterations: 10,
            cluster_tolerance: 1e-5,
            tolerance: 1e-4,
            seed: 0,
            shuffle: true,
        }
    }
}

/// A corrected embedding and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Harmonised {
    /// Row-major, cells x dimensions, as the points that were given.
    pub values: Vec<f32>,
    pub clusters: usize,
    /// Rounds of clustering before each correction.
    pub rounds: Vec<usize>,
    /// The objective at the start and before each correction.
    pub objective: Vec<f64>,
    /// Whether it had settled before the last correction that was allowed.
    pub converged: bool,
}

/// Clusters for a number of cells: one for 30 cells, at most 100.
pub fn cluster_count(cells: usize) -> usize {
    ((cells as f64 / 30.0).round_ties_even() as usize).clamp(1, 100)
}

/// Corrects `points` for `batches`, from a k-means start of its own.
///
/// `say` is told what is done, and of the corrections how far they are (from 0 to 1).
pub fn harmonise(points: &Points, batches: &Classes, params: &Params, say: &dyn Fn(&str, f64)) -> Harmonised {
    say("k-means", 0.0);
    let units = Points::new(units(points.values(), points.dims()), points.dims());
    let start = kmeans(&units, cluster_count(points.len()), 1, params.seed, &|_| ()).centres;
    drop(units);
    harmonise_from(points, batches, &start, params, say)
}

/// [`harmonise`] from given centroids, row-major clusters x dimensions.
pub fn harmonise_from(
    points: &Points,
    batches: &Classes,
    centroids: &[f64],
    params: &Params,
    say: &dyn Fn(&str, f64),
) -> Harmonised {
    let mut random = fastrand::Rng::with_seed(params.seed);
    let mut order: Vec<u32> = (0..points.len() as u32).collect();
    if params.shuffle {
        random.shuffle(&mut order);
    }
    let mut cells = Cells::new(points, batches, &order);
    let mut blocks = blocks(points.len(), params.block_share);
    let (mut clustering, start) = Clustering::start(&cells, centroids, params);
    let mut course = Course { rounds: Vec::new(), objective: vec![start], each: vec![start] };
    let mut corrected = cells.original.clone();
    let mut converged = false;
    for iteration in 0..params.iterations {
        say("corrections", iteration as f64 / params.iterations as f64);
        for round in 0..params.rounds {
            if params.shuffle {
                random.shuffle(&mut blocks);
            }
            course.each.push(clustering.round(&cells, &blocks, params));
            if round + 1 == params.rounds || (round > WINDOW && course.clusters_settled(params)) {
                course.rounds.push(round + 1);
                break;
            }
        }
        correction::correct(&cells, &clustering, params.lambda, &mut corrected);
        cells.units = units(&corrected, cells.dims);
        converged = course.settled(params);
        if converged {
            break;
        }
    }
    Harmonised {
        values: in_order(&corrected, cells.dims, &order),
        clusters: clustering.count,
        rounds: course.rounds,
        objective: course.objective,
        converged,
    }
}

/// Cells in the order in which they are worked on.
struct Cells {
    dims: usize,
    /// Row-major, as given.
    original: Vec<f32>,
    /// Row-major, as corrected so far, each of length 1.
    units: Vec<f32>,
    /// The batch of each cell.
    batch: Vec<u32>,
    /// The share of all cells that each batch has.
    shares: Vec<f64>,
}

impl Cells {
    fn new(points: &Points, batches: &Classes, order: &[u32]) -> Cells {
        let row = |&cell: &u32| points.row(cell as usize);
        let original: Vec<f32> = order.iter().flat_map(row).copied().collect();
        let sizes = batches.sizes();
        Cells {
            dims: points.dims(),
            units: units(&original, points.dims()),
            original,
            batch: order.iter().map(|&cell| batches.codes[cell as usize]).collect(),
            shares: sizes.iter().map(|&size| size as f64 / order.len() as f64).collect(),
        }
    }

    fn len(&self) -> usize {
        self.batch.len()
    }
}

/// The objective as it was.
struct Course {
    rounds: Vec<usize>,
    /// At the start and before each correction.
    objective: Vec<f64>,
    /// At the start and after each round.
    each: Vec<f64>,
}

impl Course {
    fn clusters_settled(&self, params: &Params) -> bool {
        let latest = self.each.len();
        let sum = |end: usize| self.each[end - WINDOW..end].iter().sum::<f64>();
        let (before, now) = (sum(latest - 1), sum(latest));
        (before - now).abs() < params.cluster_tolerance * before.abs()
    }

    /// Takes the objective before a correction; whether it has hardly fallen since the last one.
    fn settled(&mut self, params: &Params) -> bool {
        let (Some(&before), Some(&now)) = (self.objective.last(), self.each.last()) else { return true };
        self.objective.push(now);
        before - now < params.tolerance * before.abs()
    }
}

/// Rows scaled to length 1; a row of zeros stays one.
fn units(values: &[f32], dims: usize) -> Vec<f32> {
    let mut units = values.to_vec();
    units.chunks_exact_mut(dims.max(1)).for_each(normalise);
    units
}

fn normalise(row: &mut [f32]) {
    let length = row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        row.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
    }
}

/// Cuts the positions into runs of nearly equal length, the longer ones first.
fn blocks(cells: usize, share: f64) -> Vec<Range<usize>> {
    let count = ((1.0 / share).ceil() as usize).clamp(1, cells.max(1));
    let (length, longer) = (cells / count, cells % count);
    let start = |block: usize| block * length + block.min(longer);
    (0..count).map(|block| start(block)..start(block + 1)).collect()
}

/// Puts rows back where they came from: row `i` belongs to cell `order[i]`.
fn in_order(rows: &[f32], dims: usize, order: &[u32]) -> Vec<f32> {
    let mut values = vec![0f32; rows.len()];
    for (row, &cell) in rows.chunks_exact(dims).zip(order) {
        values[cell as usize * dims..][..dims].copy_from_slice(row);
    }
    values
}
