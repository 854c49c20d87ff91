//! Maximum diversity clustering: soft k-means on the unit sphere, with a penalty on clusters of few batches.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::exponential::exponential;
use super::{Cells, Params, normalise};
use crate::kernel::tiles::{multiply, widest};

/// Cells whose products are taken at once, in float32.
const STRIP: usize = 256;

/// The sums of so many lanes of cells, each taken by one thread, are added in order.
const MOST_LANES: usize = 64;

/// Numbers that are compared, or summed, side by side.
const CHUNK: usize = 16;

/// Soft clusters of cells.
pub(super) struct Clustering {
    pub count: usize,
    /// Row-major clusters x dimensions, unit vectors.
    centroids: Vec<f32>,
    /// Row-major cells x clusters; a cell's add up to 1.
    pub membership: Vec<f32>,
    /// Row-major batches x clusters: the sums of the memberships of each batch's cells.
    pub observed: Vec<f64>,
}

/// What the assignment of cells comes to.
struct Assigned {
    /// As [`Clustering::observed`], of these cells.
    observed: Vec<f64>,
    /// Sum over cells of the log of what their memberships were divided by.
    logs: f64,
}

impl Clustering {
    /// Assigns all cells to centroids (row-major clusters x dimensions) without a penalty; the result has the objective.
    pub fn start(cells: &Cells, centroids: &[f64], params: &Params) -> (Clustering, f64) {
        let count = centroids.len() / cells.dims;
        let mut centroids: Vec<f32> = centroids.iter().map(|&value| value as f32).collect();
        centroids.chunks_exact_mut(cells.dims).for_each(normalise);
        let size = cells.shares.len() * count;
        let membership = vec![0.0; cells.len() * count];
        let mut clustering = Clustering { count, centroids, membership, observed: vec![0.0; size] };
        let assigned = clustering.assign(cells, 0..cells.len(), &vec![0.0; size], params.sigma);
        clustering.observed = assigned.observed;
        let objective = -params.sigma * assigned.logs + clustering.diversity(cells, params);
        (clustering, objective)
    }

    /// Moves the centroids and assigns all cells, block after block; gives the objective.
    ///
    /// The objective is `sum R (2 - 2 y·z) + sigma sum R ln R + sigma theta sum O ln((O + 1) / (E + 1))`. As
    /// `ln R = (2 y·z - 2) / sigma + w - l`, with the weight `w` of batch and cluster and the log `l` of the divisor,
    /// its first two terms are `sigma (sum R w - sum l)`.
    pub fn round(&mut self, cells: &Cells, blocks: &[Range<usize>], params: &Params) -> f64 {
        self.recentre(cells);
        let mut free = 0.0;
        for block in blocks {
            let before = self.sums(cells, block.clone());
            self.observed.iter_mut().zip(&before).for_each(|(sum, before)| *sum -= before);
            let weights = self.rarities(cells, params.theta);
            let rounded: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();
            let assigned = self.assign(cells, block.clone(), &rounded, params.sigma);
            self.observed.iter_mut().zip(&assigned.observed).for_each(|(sum, now)| *sum += now);
            free += assigned.observed.iter().zip(&weights).map(|(now, weight)| now * weight).sum::<f64>();
            free -= assigned.logs;
        }
        params.sigma * free + self.diversity(cells, params)
    }

    /// Sum of the memberships in each cluster.
    fn sizes(&self) -> Vec<f64> {
        let mut sizes = vec![0.0; self.count];
        for of_batch in self.observed.chunks_exact(self.count) {
            sizes.iter_mut().zip(of_batch).for_each(|(size, sum)| *size += sum);
        }
        sizes
    }

    /// Per batch and cluster `theta ln((E + 1) / (O + 1))`, where O is what the batch has in the cluster and E what it
    /// would have if all clusters were mixed as the whole.
    fn rarities(&self, cells: &Cells, theta: f64) -> Vec<f64> {
        let sizes = self.sizes();
        let of_batch = |(observed, &share): (&[f64], &f64)| -> Vec<f64> {
            let pairs = observed.iter().zip(&sizes);
            pairs.map(|(observed, size)| theta * ((size * share + 1.0) / (observed + 1.0)).ln()).collect()
        };
        self.observed.chunks_exact(self.count).zip(&cells.shares).flat_map(of_batch).collect()
    }

    fn diversity(&self, cells: &Cells, params: &Params) -> f64 {
        let rarities = self.rarities(cells, params.theta);
        -params.sigma * self.observed.iter().zip(rarities).map(|(sum, rarity)| sum * rarity).sum::<f64>()
    }

    /// The memberships of the cells at these positions, summed by batch.
    fn sums(&self, cells: &Cells, block: Range<usize>) -> Vec<f64> {
        let (count, lane) = (self.count, lane(block.len()));
        let rows = &self.membership[block.start * count..block.end * count];
        let lanes = rows.par_chunks(lane * count).zip(cells.batch[block].par_chunks(lane));
        let parts: Vec<Vec<f64>> = lanes
            .map(|(rows, batches)| {
                let mut sums = vec![0.0; self.observed.len()];
                widest(
                    #[inline(always)]
                    || add_by_batch(rows, batches, count, &mut sums),
                );
                sums
            })
            .collect();
        total(parts, self.observed.len())
    }

    /// Gives the cells at these positions memberships by their distances and the weights of their batches.
    fn assign(&mut self, cells: &Cells, block: Range<usize>, weights: &[f32], sigma: f64) -> Assigned {
        let (count, dims, size) = (self.count, cells.dims, self.observed.len());
        let lane = lane(block.len());
        let (centroids, scale) = (&self.centroids, (1.0 / sigma) as f32);
        let units = &cells.units[block.start * dims..block.end * dims];
        let parts: Vec<Assigned> = self.membership[block.start * count..block.end * count]
            .par_chunks_mut(lane * count)
            .zip(units.par_chunks(lane * dims))
            .zip(cells.batch[block].par_chunks(lane))
            .map(|((rows, units), batches)| {
                let mut assigned = Assigned { observed: vec![0.0; size], logs: 0.0 };
                let strips = rows.chunks_mut(STRIP * count).zip(units.chunks(STRIP * dims));
                for ((rows, units), batches) in strips.zip(batches.chunks(STRIP)) {
                    multiply(units, centroids, dims, rows, count);
                    widest(
                        #[inline(always)]
                        || assigned.logs += share_out(rows, batches, weights, count, scale),
                    );
                    widest(
                        #[inline(always)]
                        || add_by_batch(rows, batches, count, &mut assigned.observed),
                    );
                }
                assigned
            })
            .collect();
        let logs = parts.iter().map(|part| part.logs).sum();
        Assigned { observed: total(parts.into_iter().map(|part| part.observed), size), logs }
    }

    /// Moves every centroid to the direction of its members' mean.
    fn recentre(&mut self, cells: &Cells) {
        let (count, dims, lane) = (self.count, cells.dims, lane(cells.len()));
        let lanes = self.membership.par_chunks(lane * count).zip(cells.units.par_chunks(lane * dims));
        let parts: Vec<Vec<f64>> = lanes
            .map(|(members, units)| {
                let mut sums = vec![0.0; count * dims];
                add_products(members, count, units, dims, &mut sums);
                sums
            })
            .collect();
        let sums = total(parts, count * dims);
        for (centroid, sum) in self.centroids.chunks_exact_mut(dims).zip(sums.chunks_exact(dims)) {
            let length = sum.iter().map(|value| value * value).sum::<f64>().sqrt();
            // A cluster without members stays where it was.
            if length > 0.0 {
                centroid.iter_mut().zip(sum).for_each(|(to, from)| *to = (from / length) as f32);
            }
        }
    }
}

/// Cells of a lane.
fn lane(cells: usize) -> usize {
    cells.div_ceil(MOST_LANES).next_multiple_of(STRIP)
}

fn total(parts: impl IntoIterator<Item = Vec<f64>>, size: usize) -> Vec<f64> {
    let mut total = vec![0.0; size];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(total, value)| *total += value);
    }
    total
}

/// Adds to `sums` (row-major clusters x dims) every cell's coordinates times its memberships.
pub(super) fn add_products(members: &[f32], clusters: usize, rows: &[f32], dims: usize, sums: &mut [f64]) {
    let mut product = vec![0f32; clusters * dims];
    for (members, rows) in members.chunks(STRIP * clusters).zip(rows.chunks(STRIP * dims)) {
        let cells = rows.len() / dims;
        let members = MatRef::from_column_major_slice(members, clusters, cells).transpose();
        let rows = MatRef::from_column_major_slice(rows, dims, cells);
        let target = MatMut::from_column_major_slice_mut(&mut product, dims, clusters);
        matmul(target, Accum::Replace, rows, members, 1.0, Par::Seq);
        sums.iter_mut().zip(&product).for_each(|(sum, &value)| *sum += f64::from(value));
    }
}

#[inline(always)]
fn add_by_batch(rows: &[f32], batches: &[u32], count: usize, sums: &mut [f64]) {
    for (row, &batch) in rows.chunks_exact(count).zip(batches) {
        let sums = &mut sums[batch as usize * count..][..count];
        sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
    }
}

/// Turns rows of `-2 y·z` into memberships; gives the sum of the logs of what they were divided by.
#[inline(always)]
fn share_out(rows: &mut [f32], batches: &[u32], weights: &[f32], count: usize, scale: f32) -> f64 {
    let mut logs = 0.0;
    for (row, &batch) in rows.chunks_exact_mut(count).zip(batches) {
        let weights = &weights[batch as usize * count..][..count];
        for (value, weight) in row.iter_mut().zip(weights) {
            *value = weight - (2.0 + *value) * scale;
        }
        let mut most = [f32::MIN; CHUNK];
        for values in row.chunks(CHUNK) {
            for (most, &value) in most.iter_mut().zip(values) {
                *most = if value > *most { value } else { *most };
            }
        }
        let most = most.iter().copied().fold(f32::MIN, f32::max);
        let mut sums = [0f32; CHUNK];
        for values in row.chunks_mut(CHUNK) {
            for (sum, value) in sums.iter_mut().zip(values) {
                *value = exponential(*value - most);
                *sum += *value;
            }
        }
        let sum: f32 = sums.iter().sum();
        row.iter_mut().for_each(|value| *value /= sum);
        logs += f64::from(most) + f64::from(sum).ln();
    }
    logs
}
