//! First centres: greedy k-means++.

use rayon::prelude::*;

use super::super::points::Points;
use super::super::tiles::{squared_distance, widest};

/// Cells whose distances one task takes.
const LANE: usize = 4096;

/// Chooses `k` cells (at most as many as there are), each of several drawn by squared distance from those chosen before:
/// the one that lowers the sum of squared distances most. The number drawn is that of scikit-learn, 2 + ln k.
pub(super) fn plus_plus(points: &Points, k: usize, random: &mut fastrand::Rng) -> Vec<usize> {
    let trials = 2 + (k as f64).ln() as usize;
    let mut chosen = vec![random.usize(..points.len())];
    let mut nearest = vec![f64::INFINITY; points.len()];
    lower(points, chosen[0], &mut nearest);
    while chosen.len() < k {
        let drawn = draw(&nearest, trials, random);
        let mut best: Option<(f64, usize)> = None;
        for &cell in &drawn {
            let sum = lowered_sum(points, cell, &nearest);
            if best.is_none_or(|(least, _)| sum < least) {
                best = Some((sum, cell));
            }
        }
        // All cells are where a centre is already: any will do.
        let cell = best.map_or(0, |(_, cell)| cell);
        lower(points, cell, &mut nearest);
        chosen.push(cell);
    }
    chosen
}

/// Draws cells with a chance in proportion to `weights`; none if they are all zero.
fn draw(weights: &[f64], count: usize, random: &mut fastrand::Rng) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        return Vec::new();
    }
    let mut marks: Vec<f64> = (0..count).map(|_| random.f64() * total).collect();
    marks.sort_unstable_by(f64::total_cmp);
    let mut drawn = Vec::with_capacity(count);
    let (mut sum, mut last) = (0.0, 0);
    for (cell, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        sum += weight;
        last = cell;
        while drawn.len() < count && marks[drawn.len()] < sum {
            drawn.push(cell);
        }
    }
    drawn.resize(count, last);
    drawn
}

/// Lowers distances to those from one more centre.
fn lower(points: &Points, centre: usize, nearest: &mut [f64]) {
    let centre = points.row(centre);
    nearest.par_chunks_mut(LANE).enumerate().for_each(|(lane, nearest)| {
        widest(
            #[inline(always)]
            || {
                for (offset, nearest) in nearest.iter_mut().enumerate() {
                    *nearest = squared_distance(points.row(lane * LANE + offset), centre).min(*nearest);
                }
            },
        );
    });
}

/// The sum of distances with one more centre.
fn lowered_sum(points: &Points, centre: usize, nearest: &[f64]) -> f64 {
    let centre = points.row(centre);
    let lane_sum = |(lane, nearest): (usize, &[f64])| {
        widest(
            #[inline(always)]
            || {
                let mut sum = 0.0;
                for (offset, &nearest) in nearest.iter().enumerate() {
                    sum += squared_distance(points.row(lane * LANE + offset), centre).min(nearest);
                }
                sum
            },
        )
    };
    let sums: Vec<f64> = nearest.par_chunks(LANE).enumerate().map(lane_sum).collect();
    sums.iter().sum()
}
