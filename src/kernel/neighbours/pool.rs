//! The best candidates of one cell while all others pass by.

use super::super::points::Points;
use super::super::tiles::{Layout, squared_distance, widest};

/// How far a float32 squared distance may be from the true one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slack {
    /// Of the sum of the two squared lengths.
    pub share: f32,
    /// What products too small for float32 may lose.
    pub floor: f32,
}

impl Slack {
    /// The bound of a product of length `dims` in any order of summation, plus the roundings of the coordinates (4), of
    /// the squared lengths (2) and of the sums and differences built of them here (8), doubled to be safe.
    pub fn of(dims: usize) -> Slack {
        let rounding = 0.5 * f32::EPSILON;
        Slack { share: (dims as f32 + 28.0) * rounding, floor: 8.0 * dims as f32 * f32::MIN_POSITIVE }
    }

    /// What is left of a squared length when the products turn out as badly as they can.
    #[inline(always)]
    pub fn lowered(self, norm: f32) -> f32 {
        norm * (1.0 - self.share) - self.floor
    }
}

/// Keeps the `k` nearest of the candidates offered, and as many more as rounding might have put behind them.
///
/// A candidate comes with a lower bound of its squared distance less the query's own squared length. When room runs out,
/// the `k`-th smallest upper bound becomes the threshold and what is certainly beyond it goes. If rounding lets too many
/// stay, distances are computed in float64 from then on and exactly `k` are kept.
pub(super) struct Pool {
    k: usize,
    /// Lower bounds above it cannot be among the nearest.
    pub threshold: f32,
    /// Lower bound and position.
    pending: Vec<(f32, u32)>,
    /// Distance and cell, nearest first, once distances are exact.
    best: Vec<(f64, u32)>,
    exact: bool,
}

/// Candidates that are looked at together.
pub(super) const CHUNK: usize = 16;

/// What a pool needs to know of the query and of the cells that pass by.
#[derive(Clone, Copy)]
pub(super) struct Query<'a> {
    pub row: &'a [f32],
    pub norm: f32,
    pub slack: Slack,
    pub columns: &'a Layout<'a, f32>,
}

impl Pool {
    pub fn new(k: usize) -> Pool {
        let pending = Vec::with_capacity(Pool::capacity(k));
        Pool { k, threshold: f32::MAX, pending, best: Vec::new(), exact: false }
    }

    fn capacity(k: usize) -> usize {
        2 * k + 8 * CHUNK
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.threshold = f32::MAX;
        self.pending.clear();
        self.best.clear();
        self.exact = false;
    }

    /// Whether `CHUNK` more candidates may not fit.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.pending.len() + CHUNK > Pool::capacity(self.k)
    }

    #[inline(always)]
    pub fn push(&mut self, bound: f32, position: u32) {
        self.pending.push((bound, position));
    }

    /// Makes room.
    #[inline(never)]
    pub fn shrink(&mut self, query: Query<'_>, bounds: &mut Vec<f32>) {
        if !self.exact {
            self.cut(query, bounds);
            self.exact = self.pending.len() > Pool::capacity(self.k) - 3 * CHUNK;
        }
        if self.exact {
            self.refine(query);
        }
    }

    /// Drops what is certainly not among the nearest.
    fn cut(&mut self, Query { norm, slack, columns, .. }: Query<'_>, bounds: &mut Vec<f32>) {
        if self.pending.len() <= self.k {
            return;
        }
        let upper =
            |&(bound, position): &(f32, u32)| bound + 2.0 * slack.share * columns.norms[position as usize];
        bounds.clear();
        bounds.extend(self.pending.iter().map(upper));
        let (_, last, _) = bounds.select_nth_unstable_by(self.k - 1, f32::total_cmp);
        self.threshold = (*last + 2.0 * slack.share * norm + 2.0 * slack.floor).min(self.threshold);
        let threshold = self.threshold;
        self.pending.retain(|&(bound, _)| bound <= threshold);
    }

    /// Turns candidates into exact distances and keeps the `k` nearest.
    fn refine(&mut self, Query { row, norm, slack, columns }: Query<'_>) {
        let Pool { k, pending, best, .. } = self;
        widest(
            #[inline(always)]
            || measure(row, columns.points, &columns.order, pending, best),
        );
        pending.clear();
        best.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        best.truncate(*k);
        if best.len() < *k {
            return;
        }
        let last = best[*k - 1].0 * f64::from(columns.frame.scale);
        // At distance 0 nothing that comes later is nearer.
        self.threshold = match last > 0.0 {
            false => f32::NEG_INFINITY,
            true => {
                let own = f64::from(norm) * (1.0 - 2.0 * f64::from(slack.share));
                (last * last * (1.0 + 1e-6) - own) as f32 + 2.0 * slack.floor
            }
        };
    }

    /// Writes the nearest cells and their distances.
    pub fn finish(
        &mut self,
        query: Query<'_>,
        bounds: &mut Vec<f32>,
        indices: &mut [u32],
        distances: &mut [f32],
    ) {
        if !self.exact {
            self.cut(query, bounds);
        }
        self.refine(query);
        for ((index, distance), &(exact, cell)) in indices.iter_mut().zip(distances).zip(&self.best) {
            (*index, *distance) = (cell, exact as f32);
        }
    }
}

#[inline(always)]
fn measure(row: &[f32], points: &Points, order: &[u32], pending: &[(f32, u32)], best: &mut Vec<(f64, u32)>) {
    // Not by `extend`: what that calls would not be compiled for the vectors of this machine.
    for &(_, position) in pending {
        let cell = order[position as usize];
        best.push((squared_distance(row, points.row(cell as usize)).sqrt(), cell));
    }
}
