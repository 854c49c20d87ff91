//! Mixture of experts: the effect of each batch in each cluster, estimated by ridge regression and taken away.

use rayon::prelude::*;

use super::Cells;
use super::clustering::{Clustering, add_products};
use crate::kernel::kmeans::lloyd::group;
use crate::kernel::tiles::widest;

/// Cells of one batch that one task sums.
const RUN: usize = 4096;

/// Cells that one task corrects.
const STRIP: usize = 1024;

/// Writes the original coordinates less what the batches do to them.
///
/// In each cluster, the coordinates of cells, weighted by membership, are fitted by an intercept, which stays, and one
/// effect for each batch, whose squares cost `lambda`.
pub(super) fn correct(cells: &Cells, clustering: &Clustering, lambda: f64, corrected: &mut [f32]) {
    let (dims, count) = (cells.dims, clustering.count);
    let effects = effects(clustering, &batch_sums(cells, clustering), dims, lambda);
    corrected
        .par_chunks_mut(STRIP * dims)
        .zip(cells.original.par_chunks(STRIP * dims))
        .zip(clustering.membership.par_chunks(STRIP * count).zip(cells.batch.par_chunks(STRIP)))
        .for_each(|((corrected, original), (membership, batches))| {
            widest(
                #[inline(always)]
                || {
                    let rows = corrected.chunks_exact_mut(dims).zip(original.chunks_exact(dims));
                    let members = membership.chunks_exact(count).zip(batches);
                    for ((row, original), (members, &batch)) in rows.zip(members) {
                        row.copy_from_slice(original);
                        let effects = &effects[batch as usize * count * dims..][..count * dims];
                        for (effect, &member) in effects.chunks_exact(dims).zip(members) {
                            row.iter_mut().zip(effect).for_each(|(value, effect)| *value -= member * effect);
                        }
                    }
                },
            );
        });
}

/// Row-major batches x clusters x dims: the coordinates of each batch's cells, weighted by membership and summed.
fn batch_sums(cells: &Cells, clustering: &Clustering) -> Vec<f64> {
    let (dims, count) = (cells.dims, clustering.count);
    let (members, starts) = group(&cells.batch, cells.shares.len());
    let runs: Vec<(usize, &[u32])> = starts
        .windows(2)
        .enumerate()
        .flat_map(|(batch, bounds)| members[bounds[0]..bounds[1]].chunks(RUN).map(move |run| (batch, run)))
        .collect();
    let gathered = |values: &[f32], width: usize, run: &[u32]| -> Vec<f32> {
        run.iter().flat_map(|&cell| &values[cell as usize * width..][..width]).copied().collect()
    };
    let parts: Vec<Vec<f64>> = runs
        .par_iter()
        .map(|(_, run)| {
            let mut sums = vec![0.0; count * dims];
            let members = gathered(&clustering.membership, count, run);
            add_products(&members, count, &gathered(&cells.original, dims, run), dims, &mut sums);
            sums
        })
        .collect();
    let mut sums = vec![0.0; cells.shares.len() * count * dims];
    for ((batch, _), part) in runs.iter().zip(parts) {
        let sums = &mut sums[batch * count * dims..][..count * dims];
        sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    }
    sums
}

/// Row-major batches x clusters x dims: what each batch adds to the coordinates in each cluster.
///
/// With weights `n_b`, sums `s_b` and the penalty `l`, the normal equations have the solution: the intercept is
/// `sum s_b / (n_b + l)` over `sum n_b / (n_b + l)`, and the effect of a batch `(s_b - n_b intercept) / (n_b + l)`.
fn effects(clustering: &Clustering, sums: &[f64], dims: usize, lambda: f64) -> Vec<f32> {
    let (count, observed) = (clustering.count, &clustering.observed);
    let batches = observed.len() / count;
    let mut effects = vec![0f32; sums.len()];
    for cluster in 0..count {
        let weight = |batch: usize| observed[batch * count + cluster].max(0.0);
        let at = |batch: usize| (batch * count + cluster) * dims;
        let shrunk: f64 = (0..batches).map(|batch| weight(batch) / (weight(batch) + lambda)).sum();
        if shrunk <= 0.0 {
            continue;
        }
        for dimension in 0..dims {
            let sum = |batch: usize| sums[at(batch) + dimension];
            let intercept =
                (0..batches).map(|batch| sum(batch) / (weight(batch) + lambda)).sum::<f64>() / shrunk;
            for batch in 0..batches {
                let effect = (sum(batch) - weight(batch) * intercept) / (weight(batch) + lambda);
                effects[at(batch) + dimension] = effect as f32;
            }
        }
    }
    effects
}
