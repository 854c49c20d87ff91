//! The two steps of Lloyd's algorithm, in the frame of the cells.

use std::ops::Range;

use rayon::prelude::*;

use super::super::tiles::{Layout, multiply, widest};

/// Cells that are assigned at once, by one task.
const ROWS: usize = 256;

/// Centres that are compared with them at once.
const COLUMNS: usize = 512;

/// Cells that are summed by one task; the sums of the tasks are added in order.
const SUMMED: usize = 4096;

const CHUNK: usize = 16;

/// The nearest centre of every cell.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Assignment {
    /// The lower of equally near ones.
    pub labels: Vec<u32>,
    /// Squared distances in the frame, to float32 rounding.
    pub distances: Vec<f32>,
}

/// Assigns cells to the nearest of `centres` (row-major, in the frame, at least one).
pub(in super::super) fn assign(layout: &Layout<'_, f32>, centres: &[f64]) -> Assignment {
    let dims = layout.points.dims();
    let centres: Vec<f32> = centres.iter().map(|&value| value as f32).collect();
    let norms: Vec<f32> = centres
        .chunks_exact(dims)
        .map(|centre| centre.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>() as f32)
        .collect();
    let mut labels = vec![0u32; layout.len()];
    let mut distances = vec![0f32; layout.len()];
    labels.par_chunks_mut(ROWS).zip(distances.par_chunks_mut(ROWS)).enumerate().for_each_init(
        || (vec![0f32; ROWS * dims], vec![0f32; ROWS * COLUMNS]),
        |(rows, products), (strip, (labels, distances))| {
            let start = strip * ROWS;
            let rows = &mut rows[..labels.len() * dims];
            layout.fill(start..start + labels.len(), rows);
            distances.fill(f32::MAX);
            for (block, norms) in norms.chunks(COLUMNS).enumerate() {
                let columns = &centres[block * COLUMNS * dims..][..norms.len() * dims];
                multiply(rows, columns, dims, products, COLUMNS);
                widest(
                    #[inline(always)]
                    || nearer(products, norms, block * COLUMNS, labels, distances),
                );
            }
            for (distance, norm) in distances.iter_mut().zip(&layout.norms[start..]) {
                *distance = (*distance + norm).max(0.0);
            }
        },
    );
    Assignment { labels, distances }
}

/// Takes the centres of a block where they are nearer than those before.
#[inline(always)]
fn nearer(products: &[f32], norms: &[f32], first: usize, labels: &mut [u32], distances: &mut [f32]) {
    for ((products, label), distance) in products.chunks(COLUMNS).zip(labels).zip(distances) {
        let products = &products[..norms.len()];
        let mut lanes = [f32::MAX; CHUNK];
        for (products, norms) in products.chunks(CHUNK).zip(norms.chunks(CHUNK)) {
            for ((lane, product), norm) in lanes.iter_mut().zip(products).zip(norms) {
                let value = product + norm;
                *lane = if value < *lane { value } else { *lane };
            }
        }
        let least = lanes.iter().copied().fold(f32::MAX, f32::min);
        if least < *distance {
            let found = products.iter().zip(norms).position(|(product, norm)| product + norm == least);
            *label = (first + found.unwrap_or(0)) as u32;
            *distance = least;
        }
    }
}

/// Moves every centre to the mean of its cells; one without cells stays where it is.
pub(in super::super) fn update(layout: &Layout<'_, f32>, labels: &[u32], centres: &mut [f64]) {
    let dims = layout.points.dims();
    let (members, starts) = group(labels, centres.len() / dims);
    let runs: Vec<(usize, Range<usize>)> = starts
        .windows(2)
        .enumerate()
        .flat_map(|(label, bounds)| {
            let end = bounds[1];
            (bounds[0]..end).step_by(SUMMED).map(move |start| (label, start..(start + SUMMED).min(end)))
        })
        .collect();
    let sums: Vec<Vec<f64>> = runs
        .par_iter()
        .map(|(_, run)| {
            widest(
                #[inline(always)]
                || sum(layout, &members[run.clone()]),
            )
        })
        .collect();
    for (label, bounds) in starts.windows(2).enumerate() {
        if bounds[0] < bounds[1] {
            centres[label * dims..][..dims].fill(0.0);
        }
    }
    for ((label, _), sums) in runs.iter().zip(sums) {
        let cells = (starts[label + 1] - starts[*label]) as f64;
        let centre = &mut centres[label * dims..][..dims];
        centre.iter_mut().zip(sums).for_each(|(centre, sum)| *centre += sum / cells);
    }
}

/// Positions ordered by label, ascending within a label, and where each label begins (and the last one ends).
pub(in super::super) fn group(labels: &[u32], count: usize) -> (Vec<u32>, Vec<usize>) {
    let mut starts = vec![0usize; count + 1];
    for &label in labels {
        starts[label as usize + 1] += 1;
    }
    for label in 0..count {
        starts[label + 1] += starts[label];
    }
    let mut next = starts.clone();
    let mut members = vec![0u32; labels.len()];
    for (position, &label) in labels.iter().enumerate() {
        members[next[label as usize]] = position as u32;
        next[label as usize] += 1;
    }
    (members, starts)
}

#[inline(always)]
fn sum(layout: &Layout<'_, f32>, positions: &[u32]) -> Vec<f64> {
    let scale = f64::from(layout.frame.scale);
    let mut sums = vec![0f64; layout.points.dims()];
    for &position in positions {
        let row = layout.points.row(layout.order[position as usize] as usize);
        for ((sum, &value), &centre) in sums.iter_mut().zip(row).zip(&layout.frame.centre) {
            *sum += f64::from(value) * scale - f64::from(centre);
        }
    }
    sums
}
