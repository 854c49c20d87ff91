//! Sums of outer products of an embedding's cells, and their largest eigenvalue.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Vectors that are multiplied at once.
const BLOCK: usize = 1024;

/// Columns of the result that one thread computes, always in the same way.
const TILE: usize = 128;

/// The work of the decomposition is cut into this many parts whatever the number of threads.
const PARTS: usize = 8;

/// The sum of the outer products of `count` vectors of length `size`, symmetric; `fill` writes one of them.
fn outer(size: usize, count: usize, fill: &(dyn Fn(usize, &mut [f64]) + Sync)) -> Vec<f64> {
    let mut sums = vec![0.0; size * size];
    let mut block = vec![0.0; size * BLOCK.min(count)];
    for first in (0..count).step_by(BLOCK) {
        let vectors = BLOCK.min(count - first);
        let block = &mut block[..size * vectors];
        block.par_chunks_mut(size).enumerate().for_each(|(offset, vector)| fill(first + offset, vector));
        let columns = MatRef::from_column_major_slice(block, size, vectors);
        sums.par_chunks_mut(size * TILE).enumerate().for_each(|(tile, sums)| {
            let width = sums.len() / size;
            let target = MatMut::from_column_major_slice_mut(sums, size, width);
            let right = columns.subrows(tile * TILE, width).transpose();
            matmul(target, Accum::Add, columns, right, 1.0, Par::Seq);
        });
    }
    sums
}

/// The Gram matrix of the `cells` x `dims` values `value(cell, dim)`, on its smaller side.
///
/// Both sides have the same eigenvalues but for zeros. Column-major, `min(cells, dims)` squared.
pub(super) fn smaller(cells: usize, dims: usize, value: &(dyn Fn(usize, usize) -> f64 + Sync)) -> Vec<f64> {
    if dims <= cells {
        outer(dims, cells, &|cell, row| {
            row.iter_mut().enumerate().for_each(|(dim, target)| *target = value(cell, dim));
        })
    } else {
        outer(cells, dims, &|dim, column| {
            column.iter_mut().enumerate().for_each(|(cell, target)| *target = value(cell, dim));
        })
    }
}

/// The largest eigenvalue of a symmetric column-major matrix; `None` if the decomposition does not converge.
pub(super) fn largest_eigenvalue(matrix: &[f64], size: usize) -> Option<f64> {
    let matrix: Mat<f64> = MatRef::from_column_major_slice(matrix, size, size).to_owned();
    let par = Par::rayon(PARTS);
    let scratch =
        evd::self_adjoint_evd_scratch::<f64>(size, ComputeEigenvectors::No, par, Default::default());
    let mut memory = MemBuffer::new(scratch);
    let mut values = Diag::zeros(size);
    let stack = MemStack::new(&mut memory);
    evd::self_adjoint_evd(matrix.as_ref(), values.as_mut(), None, par, stack, Default::default()).ok()?;
    values.column_vector().iter().copied().reduce(f64::max)
}
