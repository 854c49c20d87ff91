//! All eigenpairs of a small symmetric matrix.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::{Mat, Par};

/// Eigenvalues, ascending, with their unit eigenvectors as columns; the lower triangle is read.
///
/// By one thread, so that the result does not depend on how many there are. `None` if it does not converge.
pub(super) fn eigen(matrix: &Mat<f64>) -> Option<(Vec<f64>, Mat<f64>)> {
    let size = matrix.nrows();
    let (mut values, mut vectors) = (Diag::zeros(size), Mat::zeros(size, size));
    let scratch =
        evd::self_adjoint_evd_scratch::<f64>(size, ComputeEigenvectors::Yes, Par::Seq, Default::default());
    evd::self_adjoint_evd(
        matrix.as_ref(),
        values.as_mut(),
        Some(vectors.as_mut()),
        Par::Seq,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Default::default(),
    )
    .ok()?;
    Some((values.column_vector().iter().copied().collect(), vectors))
}

/// Positions of the `count` values that are largest by magnitude, largest first (equal ones: first comes first).
pub(super) fn largest(values: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].abs().total_cmp(&values[a].abs()).then(a.cmp(&b)));
    order.truncate(count);
    order
}
