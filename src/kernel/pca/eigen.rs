//! Leading eigenpairs of a symmetric matrix.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::evd::{self, ComputeEigenvectors, tridiag};
use faer::linalg::householder;
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::{Conj, Mat, Par};

use crate::error::{Error, Result};

/// The work is cut into this many parts whatever the number of threads, so that the result does not depend on it.
const PARTS: usize = 8;

/// Eigenvalues in descending order, none negative, with their eigenvectors.
pub(super) struct Eigenpairs {
    pub values: Vec<f64>,
    /// Row-major, one unit vector a row; the zero vector where the eigenvalue is zero.
    pub vectors: Vec<f64>,
}

/// The `count` largest eigenvalues of a positive semidefinite matrix given by its lower triangle.
///
/// Eigenvalues below `noise` times the largest are rounding, and returned as zero: their direction means nothing.
/// Exact: the whole matrix is brought to tridiagonal form and that is decomposed by divide and conquer; only the
/// vectors asked for are brought back.
pub(super) fn leading(matrix: Mat<f64>, count: usize, noise: f64) -> Result<Eigenpairs> {
    let size = matrix.nrows();
    let (ascending, vectors) = if size == 1 {
        (vec![matrix[(0, 0)]], Mat::from_fn(1, 1, |_, _| 1.0))
    } else {
        decompose(matrix, count)?
    };
    let largest = ascending[size - 1].max(0.0);
    let mut pairs =
        Eigenpairs { values: Vec::with_capacity(count), vectors: Vec::with_capacity(count * size) };
    for (column, &value) in ascending[size - count..].iter().enumerate().rev() {
        let real = value > noise * largest;
        pairs.values.push(if real { value } else { 0.0 });
        pairs.vectors.extend(vectors.col(column).iter().map(|&entry| if real { entry } else { 0.0 }));
    }
    Ok(pairs)
}

/// All eigenvalues, ascending, and as columns the vectors of the last `count` of them.
fn decompose(mut matrix: Mat<f64>, count: usize) -> Result<(Vec<f64>, Mat<f64>)> {
    let size = matrix.nrows();
    let par = Par::rayon(PARTS);
    let width = recommended_block_size::<f64>(size, size);
    let whole = evd::self_adjoint_evd_scratch::<f64>(size, ComputeEigenvectors::Yes, par, Default::default());
    let back = householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<f64>(
        size - 1,
        width,
        count,
    );
    let mut memory = MemBuffer::new(StackReq::any_of(&[whole, back]));
    let stack = MemStack::new(&mut memory);

    let mut reflectors = Mat::zeros(width, size - 1);
    tridiag::tridiag_in_place(matrix.as_mut(), reflectors.as_mut(), par, stack, Default::default());
    let mut diagonal = Diag::zeros(size);
    let mut below = Diag::zeros(size);
    for index in 0..size {
        diagonal[index] = matrix[(index, index)];
        if index + 1 < size {
            below[index] = matrix[(index + 1, index)];
        }
    }
    let mut values = Diag::zeros(size);
    let mut vectors = Mat::zeros(size, size);
    evd::tridiagonal_self_adjoint_evd(
        diagonal.as_ref(),
        below.as_ref(),
        values.as_mut(),
        Some(vectors.as_mut()),
        par,
        stack,
        Default::default(),
    )
    .map_err(|_| Error::failed("the eigenvectors of the Gram matrix did not converge"))?;

    let mut leading = vectors.subcols(size - count, count).to_owned();
    householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
        matrix.submatrix(1, 0, size - 1, size - 1),
        reflectors.as_ref(),
        Conj::No,
        leading.as_mut().subrows_mut(1, size - 1),
        par,
        stack,
    );
    Ok((values.column_vector().iter().copied().collect(), leading))
}
