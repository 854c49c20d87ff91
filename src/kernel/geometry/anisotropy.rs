//! Whether an embedding points in one direction more than in others.

use super::{Groups, gram};
use crate::kernel::points::Points;
use crate::kernel::score::Score;

/// Pairs of cells that are drawn.
pub const PAIRS: usize = 100_000;

/// The share of the uncentred embedding's squares that lies along its leading direction: `sigma_1^2 / ||Z||_F^2`.
///
/// From 1 / min(n, d) (none) to 1 (all cells along one line through the origin); higher: more anisotropic. Exact, from all
/// eigenvalues of the smaller Gram matrix; equals `numpy.linalg.svd(Z)` (numpy 2). NA when every value is 0.
pub fn spectral(points: &Points) -> Score {
    let (cells, dims) = (points.len(), points.dims());
    let largest = points.values().iter().fold(0f32, |largest, value| largest.max(value.abs()));
    if largest == 0.0 {
        return Score::missing("every value of the embedding is 0");
    }
    // The share does not depend on the unit, but the squares of squares of an extreme one would leave float64.
    let unit = 1.0 / f64::from(largest);
    let gram = gram::smaller(cells, dims, &|cell, dim| f64::from(points.row(cell)[dim]) * unit);
    let size = cells.min(dims);
    let total: f64 = (0..size).map(|index| gram[index * size + index]).sum();
    match gram::largest_eigenvalue(&gram, size) {
        Some(value) => Score::number((value / total).min(1.0)),
        None => Score::missing("the eigenvalues of the second moments did not converge"),
    }
}

/// A mean cosine and the pairs it was taken over.
#[derive(Debug, Clone, PartialEq)]
pub struct Cosine {
    pub score: Score,
    pub pairs: usize,
}

impl Cosine {
    fn missing(reason: impl Into<String>) -> Cosine {
        Cosine { score: Score::missing(reason), pairs: 0 }
    }
}

/// The mean cosine of [`PAIRS`] random pairs of distinct cells of the raw embedding.
///
/// From -1 to 1; 0 for directions spread evenly, higher: more anisotropic. Pairs come from a generator of the caller's seed;
/// pairs with a cell of norm 0 do not count. Its standard error against the mean over all pairs is at most
/// `1 / sqrt(pairs)`. Equals the mean of `1 - scipy.spatial.distance.cosine` over the same pairs (scipy 1.15 or newer).
/// NA for fewer than 2 cells and where every cell's norm is 0.
pub fn cosine(points: &Points, seed: u64) -> Cosine {
    let cells = points.len();
    if cells < 2 {
        return Cosine::missing("pairs need 2 cells");
    }
    let mut random = fastrand::Rng::with_seed(seed);
    mean_cosine(points, || distinct(&mut random, cells))
}

/// [`cosine`] of pairs within a class: a class of at least 2 cells, each as likely, then two distinct cells of it.
///
/// NA where no class has 2 cells.
pub fn cosine_within(points: &Points, classes: &Groups, seed: u64) -> Cosine {
    let mut members = classes.members();
    members.retain(|cells| cells.len() >= 2);
    if members.is_empty() {
        return Cosine::missing("no cell type has 2 cells");
    }
    let mut random = fastrand::Rng::with_seed(seed);
    mean_cosine(points, || {
        let class = &members[random.usize(..members.len())];
        let (a, b) = distinct(&mut random, class.len());
        (class[a] as usize, class[b] as usize)
    })
}

/// [`cosine`] of pairs of two distinct classes, each pair of classes as likely, one cell of each.
///
/// NA for fewer than 2 classes.
pub fn cosine_between(points: &Points, classes: &Groups, seed: u64) -> Cosine {
    let members = classes.members();
    if members.len() < 2 {
        return Cosine::missing("pairs between cell types need 2 cell types");
    }
    let mut random = fastrand::Rng::with_seed(seed);
    mean_cosine(points, || {
        let (a, b) = distinct(&mut random, members.len());
        let [a, b] = [a, b].map(|class| members[class][random.usize(..members[class].len())] as usize);
        (a, b)
    })
}

/// Two different numbers below `count`.
fn distinct(random: &mut fastrand::Rng, count: usize) -> (usize, usize) {
    let first = random.usize(..count);
    let second = random.usize(..count - 1);
    (first, second + usize::from(second >= first))
}

fn mean_cosine(points: &Points, mut draw: impl FnMut() -> (usize, usize)) -> Cosine {
    let norms: Vec<f64> =
        (0..points.len()).map(|cell| dot(points.row(cell), points.row(cell)).sqrt()).collect();
    let (mut sum, mut pairs) = (0.0, 0);
    for _ in 0..PAIRS {
        let (a, b) = draw();
        let norm = norms[a] * norms[b];
        if norm > 0.0 {
            sum += (dot(points.row(a), points.row(b)) / norm).clamp(-1.0, 1.0);
            pairs += 1;
        }
    }
    match pairs {
        0 => Cosine::missing("every cell drawn has norm 0"),
        _ => {
            let score = Score::number(sum / pairs as f64);
            let score = match PAIRS - pairs {
                0 => score,
                zero => score.note(format!("{zero} of {PAIRS} pairs have a cell of norm 0")),
            };
            Cosine { score, pairs }
        }
    }
}

/// In eight lanes, so that the order of the sum is fixed and wide.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    const LANES: usize = 8;
    let mut lanes = [0f64; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
    let rest: f64 = rest.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += f64::from(a[lane]) * f64::from(b[lane]);
        }
    }
    lanes.iter().sum::<f64>() + rest
}
