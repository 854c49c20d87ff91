//! Eigenpairs of largest magnitude, by the Lanczos method with thick restarts.

use faer::Mat;

use super::basis::Basis;
use super::dense::{eigen, largest};
use super::transitions::Transitions;

/// Matrices up to this size are decomposed whole.
const WHOLE: usize = 600;

/// A pair has converged when its residual is below this; the largest eigenvalue is 1.
const TOLERANCE: f64 = 1e-9;

/// Restarts after which the pairs are taken as they are.
const RESTARTS: usize = 200;

/// Norm below which the vectors found span all that the start vector can reach.
const EXHAUSTED: f64 = 1e-12;

/// A vector that keeps this share of its length when it is orthogonalised needs no second time (Daniel et al. 1976).
const KEPT: f64 = 0.7;

/// Eigenpairs, largest magnitude first.
pub(super) struct Eigenpairs {
    pub values: Vec<f64>,
    /// Row-major nodes x values: the entries of the unit eigenvectors.
    pub vectors: Vec<f32>,
    /// The largest residual.
    pub residual: f64,
}

/// The `count` eigenpairs of largest magnitude.
///
/// Exact for small matrices. For others every new vector is orthogonalised against all before, from a fixed start, so
/// the result is the same for any number of threads; copies of an eigenvalue beyond the first are found only once the
/// rest of the spectrum is exhausted. Memory: `2 count + 21` numbers a node.
pub(super) fn leading(matrix: &Transitions<'_>, count: usize) -> Option<Eigenpairs> {
    let count = count.min(matrix.len());
    if matrix.len() <= WHOLE { whole(matrix, count) } else { Lanczos::new(matrix, count).run() }
}

fn whole(matrix: &Transitions<'_>, count: usize) -> Option<Eigenpairs> {
    let mut dense = Mat::zeros(matrix.len(), matrix.len());
    for node in 0..matrix.len() {
        matrix.row(node).for_each(|(other, value)| dense[(node, other)] = value);
    }
    let (values, vectors) = eigen(&dense)?;
    let order = largest(&values, count);
    let entry = |node: usize| order.iter().map(move |&column| (node, column));
    Some(Eigenpairs {
        values: order.iter().map(|&column| values[column]).collect(),
        vectors: (0..matrix.len()).flat_map(entry).map(|at| vectors[at] as f32).collect(),
        residual: 0.0,
    })
}

struct Lanczos<'a> {
    matrix: &'a Transitions<'a>,
    count: usize,
    /// Vectors that are built before a restart.
    length: usize,
    basis: Basis,
    /// The matrix seen from the basis.
    projected: Mat<f64>,
    random: fastrand::Rng,
}

impl<'a> Lanczos<'a> {
    fn new(matrix: &'a Transitions<'a>, count: usize) -> Self {
        let length = 2 * count + 20;
        Lanczos {
            matrix,
            count,
            length,
            basis: Basis::new(matrix.len(), length + 1),
            projected: Mat::zeros(length, length),
            random: fastrand::Rng::with_seed(0),
        }
    }

    fn run(mut self) -> Option<Eigenpairs> {
        self.fresh(0);
        let mut kept = 0;
        for restart in 0.. {
            let last = self.extend(kept);
            let (values, vectors) = eigen(&self.projected)?;
            let residual = |column: usize| (last * vectors[(self.length - 1, column)]).abs();
            let wanted = largest(&values, self.count);
            let worst = wanted.iter().map(|&column| residual(column)).fold(0.0, f64::max);
            if worst < TOLERANCE || restart == RESTARTS {
                let factors = columns(&vectors, &wanted);
                return Some(Eigenpairs {
                    values: wanted.iter().map(|&column| values[column]).collect(),
                    vectors: self.basis.combinations(&factors),
                    residual: worst,
                });
            }
            kept = self.count + self.count / 2;
            let order = largest(&values, kept);
            self.basis.rotate(&columns(&vectors, &order));
            let mut next = vec![0.0; self.basis.size()];
            self.basis.get(self.length, &mut next);
            self.basis.set(kept, &next, 1.0);
            self.projected.fill(0.0);
            for (place, &column) in order.iter().enumerate() {
                self.projected[(place, place)] = values[column];
                let coupling = last * vectors[(self.length - 1, column)];
                self.projected[(place, kept)] = coupling;
                self.projected[(kept, place)] = coupling;
            }
        }
        None
    }

    /// Builds the vectors after `kept`; returns the weight of the one after the last.
    fn extend(&mut self, kept: usize) -> f64 {
        let size = self.basis.size();
        let (mut vector, mut product) = (vec![0.0; size], vec![0.0; size]);
        let mut below = 0.0;
        for place in kept..self.length {
            self.basis.get(place, &mut vector);
            self.matrix.apply(&vector, &mut product);
            // What the recurrence knows goes first, so that the rest only removes rounding.
            let mut known: Vec<f64> = (0..=place).map(|other| self.projected[(other, place)]).collect();
            known[place] = vector.iter().zip(&product).map(|(a, b)| a * b).sum();
            self.basis.subtract(&known, &mut product);
            let mut own = known[place];
            below = norm(&product);
            for _ in 0..2 {
                let before = below;
                let factors = self.basis.products(place + 1, &product);
                self.basis.subtract(&factors, &mut product);
                own += factors[place];
                below = norm(&product);
                if below > KEPT * before {
                    break;
                }
            }
            self.projected[(place, place)] = own;
            if below > EXHAUSTED {
                self.basis.set(place + 1, &product, 1.0 / below);
            } else {
                below = 0.0;
                self.fresh(place + 1);
            }
            if place + 1 < self.length {
                self.projected[(place + 1, place)] = below;
                self.projected[(place, place + 1)] = below;
            }
        }
        below
    }

    /// Puts a random unit vector that is orthogonal to all before at a place.
    fn fresh(&mut self, place: usize) {
        let mut vector: Vec<f64> = (0..self.basis.size()).map(|_| self.random.f64() - 0.5).collect();
        for _ in 0..3 {
            let factors = self.basis.products(place, &vector);
            self.basis.subtract(&factors, &mut vector);
        }
        self.basis.set(place, &vector, 1.0 / norm(&vector));
    }
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn columns(vectors: &Mat<f64>, order: &[usize]) -> Mat<f64> {
    Mat::from_fn(vectors.nrows(), order.len(), |row, column| vectors[(row, order[column])])
}
