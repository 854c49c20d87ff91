//! k-means clustering.

pub(super) mod lloyd;
mod seeding;

use rayon::prelude::*;

use super::neighbours::Tick;
use super::points::Points;
use super::tiles::{Frame, Layout, widest};
use lloyd::{Assignment, assign, update};

/// Most rounds of Lloyd's algorithm in one start.
const ROUNDS: usize = 300;

/// Centres that move less than this share of the mean variance of a dimension (the sum of their squared moves) have
/// settled.
const TOLERANCE: f64 = 1e-4;

/// Cells whose squared distances one task sums.
const LANE: usize = 4096;

/// A partition by nearest centre.
#[derive(Debug, Clone, PartialEq)]
pub struct KMeans {
    /// The nearest centre of each cell.
    pub labels: Vec<u32>,
    /// Row-major `k` x dims. Fewer than asked for only if there are fewer cells; with fewer distinct cells than centres
    /// some have no cell.
    pub centres: Vec<f64>,
    /// Sum of squared distances of the cells from their centres, in float64.
    pub inertia: f64,
}

/// Clusters cells around `k` means: the best by inertia of `restarts` starts.
///
/// As `sklearn.cluster.KMeans` (1.9.1, algorithm "lloyd"): greedy k-means++, at most 300 rounds, tolerance 1e-4; an empty
/// cluster takes the cell farthest from its centre. Other random numbers, so other local optima. The same bits for any
/// thread count.
pub fn kmeans(points: &Points, k: usize, restarts: usize, seed: u64, tick: Tick<'_>) -> KMeans {
    let k = k.min(points.len());
    if k == 0 {
        tick(1.0);
        return KMeans { labels: Vec::new(), centres: Vec::new(), inertia: 0.0 };
    }
    let frame = Frame::around(points, points);
    let layout = Layout::whole(points, &frame);
    let settled = TOLERANCE * mean_variance(&layout);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut best: Option<KMeans> = None;
    let starts = restarts.max(1);
    for start in 0..starts {
        let chosen = seeding::plus_plus(points, k, &mut random);
        let centres = chosen.iter().flat_map(|&cell| placed(&layout, cell)).collect();
        let found = descend(&layout, centres, settled);
        if best.as_ref().is_none_or(|best| found.inertia < best.inertia) {
            best = Some(found);
        }
        tick((start + 1) as f64 / starts as f64);
    }
    best.unwrap_or_else(|| KMeans { labels: vec![0; points.len()], centres: Vec::new(), inertia: 0.0 })
}

/// One cell in the frame.
pub(super) fn placed(layout: &Layout<'_, f32>, cell: usize) -> Vec<f64> {
    let scale = f64::from(layout.frame.scale);
    let row = layout.points.row(cell).iter().zip(&layout.frame.centre);
    row.map(|(&value, &centre)| f64::from(value) * scale - f64::from(centre)).collect()
}

/// The mean over dimensions of the variance, in the frame, whose origin is the mean.
fn mean_variance(layout: &Layout<'_, f32>) -> f64 {
    let sum: f64 = layout.norms.iter().map(|&norm| f64::from(norm)).sum();
    sum / (layout.len() * layout.points.dims()) as f64
}

/// Lloyd's algorithm from the given centres.
fn descend(layout: &Layout<'_, f32>, mut centres: Vec<f64>, settled: f64) -> KMeans {
    let mut found = assign(layout, &centres);
    for _ in 0..ROUNDS {
        let before = centres.clone();
        fill_empty(&mut found, centres.len() / layout.points.dims());
        update(layout, &found.labels, &mut centres);
        let next = assign(layout, &centres);
        let same = next.labels == found.labels;
        found = next;
        let moved: f64 = centres.iter().zip(&before).map(|(a, b)| (a - b).powi(2)).sum();
        if same || moved <= settled {
            break;
        }
    }
    let Frame { scale, centre } = layout.frame;
    let offsets = centre.iter().cycle();
    let centres: Vec<f64> =
        centres.iter().zip(offsets).map(|(c, &offset)| (c + f64::from(offset)) / f64::from(*scale)).collect();
    let inertia = inertia(layout.points, &found.labels, &centres);
    KMeans { labels: found.labels, centres, inertia }
}

/// Gives each centre without a cell the cell that is farthest from its own.
fn fill_empty(found: &mut Assignment, k: usize) {
    let mut sizes = vec![0usize; k];
    found.labels.iter().for_each(|&label| sizes[label as usize] += 1);
    let empty: Vec<usize> = (0..k).filter(|&label| sizes[label] == 0).collect();
    if empty.is_empty() {
        return;
    }
    let mut far: Vec<u32> = (0..found.labels.len() as u32).collect();
    let distance = |cell: u32| found.distances[cell as usize];
    far.sort_by(|&a, &b| distance(b).total_cmp(&distance(a)));
    let mut far = far.into_iter();
    for label in empty {
        let cell = far.by_ref().find(|&cell| sizes[found.labels[cell as usize] as usize] > 1);
        let Some(cell) = cell.filter(|&cell| found.distances[cell as usize] > 0.0) else { return };
        sizes[found.labels[cell as usize] as usize] -= 1;
        sizes[label] = 1;
        found.labels[cell as usize] = label as u32;
    }
}

fn inertia(points: &Points, labels: &[u32], centres: &[f64]) -> f64 {
    let dims = points.dims();
    let lane_sum = |(lane, labels): (usize, &[u32])| {
        widest(
            #[inline(always)]
            || {
                let mut sum = 0.0;
                for (offset, &label) in labels.iter().enumerate() {
                    let centre = &centres[label as usize * dims..][..dims];
                    sum += squared_distance_to(points.row(lane * LANE + offset), centre);
                }
                sum
            },
        )
    };
    let sums: Vec<f64> = labels.par_chunks(LANE).enumerate().map(lane_sum).collect();
    sums.iter().sum()
}

#[inline(always)]
fn squared_distance_to(row: &[f32], centre: &[f64]) -> f64 {
    row.iter().zip(centre).map(|(&value, &centre)| (f64::from(value) - centre).powi(2)).sum()
}

#[cfg(test)]
mod tests;
