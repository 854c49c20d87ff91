//! Orthonormal vectors of one entry a node, stored by blocks of nodes so that threads share nothing.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::super::tiles::widest;
use super::transitions::ROWS;

/// Up to `capacity` vectors of `size` entries.
pub(super) struct Basis {
    /// Column-major, [`ROWS`] rows (the last block fewer) x capacity.
    blocks: Vec<Vec<f64>>,
    size: usize,
    capacity: usize,
}

impl Basis {
    pub fn new(size: usize, capacity: usize) -> Basis {
        let rows = |block: usize| ROWS.min(size - block * ROWS);
        let blocks = (0..size.div_ceil(ROWS)).map(|block| vec![0.0; rows(block) * capacity]).collect();
        Basis { blocks, size, capacity }
    }

    /// Number of entries of a vector.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Puts `vector * factor` at a place.
    pub fn set(&mut self, place: usize, vector: &[f64], factor: f64) {
        let capacity = self.capacity;
        self.blocks.par_iter_mut().zip(vector.par_chunks(ROWS)).for_each(|(block, part)| {
            let rows = block.len() / capacity;
            let target = &mut block[place * rows..][..rows];
            target.iter_mut().zip(part).for_each(|(target, value)| *target = value * factor);
        });
    }

    /// Writes the vector at a place to `vector`.
    pub fn get(&self, place: usize, vector: &mut [f64]) {
        self.blocks.par_iter().zip(vector.par_chunks_mut(ROWS)).for_each(|(block, part)| {
            part.copy_from_slice(&block[place * part.len()..][..part.len()]);
        });
    }

    /// The products of the first `count` vectors with `vector`.
    pub fn products(&self, count: usize, vector: &[f64]) -> Vec<f64> {
        let parts: Vec<Vec<f64>> = self
            .blocks
            .par_iter()
            .zip(vector.par_chunks(ROWS))
            .map(|(block, part)| {
                let columns = block.chunks_exact(part.len()).take(count);
                widest(
                    #[inline(always)]
                    || columns.clone().map(|column| dot(column, part)).collect(),
                )
            })
            .collect();
        let mut sums = vec![0.0; count];
        for part in parts {
            sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
        sums
    }

    /// Takes the combination of the first vectors by `factors` from `vector`.
    pub fn subtract(&self, factors: &[f64], vector: &mut [f64]) {
        self.blocks.par_iter().zip(vector.par_chunks_mut(ROWS)).for_each(|(block, part)| {
            let columns = block.chunks_exact(part.len()).zip(factors).filter(|(_, factor)| **factor != 0.0);
            widest(
                #[inline(always)]
                || columns.clone().for_each(|(column, factor)| axpy(-factor, column, part)),
            );
        });
    }

    /// Replaces the first vectors by their combinations, one for each column of `factors`.
    pub fn rotate(&mut self, factors: &Mat<f64>) {
        let capacity = self.capacity;
        self.blocks.par_iter_mut().for_each(|block| {
            let rows = block.len() / capacity;
            let rotated = combine(block, rows, factors);
            block[..rotated.len()].copy_from_slice(&rotated);
        });
    }

    /// Combinations of the first vectors, one for each column of `factors`; row-major.
    pub fn combinations(&self, factors: &Mat<f64>) -> Vec<f32> {
        let count = factors.ncols();
        let mut result = vec![0f32; self.size * count];
        self.blocks.par_iter().zip(result.par_chunks_mut(ROWS * count)).for_each(|(block, target)| {
            let rows = block.len() / self.capacity;
            let columns = combine(block, rows, factors);
            for (row, target) in target.chunks_exact_mut(count).enumerate() {
                for (column, target) in target.iter_mut().enumerate() {
                    *target = columns[column * rows + row] as f32;
                }
            }
        });
        result
    }
}

/// Combinations of the first columns of a block, column-major.
fn combine(block: &[f64], rows: usize, factors: &Mat<f64>) -> Vec<f64> {
    let (given, made) = (factors.nrows(), factors.ncols());
    let mut result = vec![0.0; rows * made];
    matmul(
        MatMut::from_column_major_slice_mut(&mut result, rows, made),
        Accum::Replace,
        MatRef::from_column_major_slice(&block[..rows * given], rows, given),
        factors.as_ref(),
        1.0,
        Par::Seq,
    );
    result
}

const LANES: usize = 16;

/// Sum of products over lanes that are added in order.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum::<f64>() + rest
}

#[inline(always)]
fn axpy(factor: f64, column: &[f64], target: &mut [f64]) {
    target.iter_mut().zip(column).for_each(|(target, value)| *target += factor * value);
}
