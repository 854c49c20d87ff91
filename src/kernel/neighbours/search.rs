//! Strips of query cells, searched side by side.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::super::tiles::Layout;
use super::Tick;
use super::strip::{Queries, ROWS, Strip};

/// What is searched for what.
pub(super) struct Task<'a> {
    /// The cells that are neighbours.
    pub columns: &'a Layout<'a, f32>,
    /// The cells whose neighbours are wanted.
    pub queries: &'a Layout<'a, f32>,
    /// The position of a query among `columns`, if it is one of them: it is not its own neighbour.
    pub own: &'a (dyn Fn(usize) -> Option<u32> + Sync),
    /// At least 1; at most the cells that every query is compared with.
    pub k: usize,
}

/// Nearest cells and their distances, row-major queries (by position) x k.
pub(super) struct Rows {
    pub k: usize,
    pub indices: Vec<u32>,
    pub distances: Vec<f32>,
}

/// Cuts a range into strips.
pub(super) fn strips(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(ROWS).map(move |start| start..(start + ROWS).min(end))
}

impl Task<'_> {
    /// The nearest of all cells.
    pub fn exhaustive(&self, tick: Tick<'_>) -> Rows {
        let strips: Vec<_> = strips(0..self.queries.len()).collect();
        let all = 0..self.columns.len();
        self.run(&strips, |_| std::iter::once(all.clone()), tick)
    }

    /// The nearest cells for each of `strips`, which follow each other without a gap and cover all queries; the strip
    /// with number `s` is compared with the positions `reach(s)`.
    pub fn run<R: Iterator<Item = Range<usize>>>(
        &self,
        strips: &[Range<usize>],
        reach: impl Fn(usize) -> R + Sync,
        tick: Tick<'_>,
    ) -> Rows {
        let k = self.k;
        let mut indices = vec![0u32; self.queries.len() * k];
        let mut distances = vec![0f32; self.queries.len() * k];
        let slots = cut(&mut indices, strips, k).into_iter().zip(cut(&mut distances, strips, k));
        let work: Vec<_> = strips.iter().cloned().zip(slots).enumerate().collect();
        let done = AtomicUsize::new(0);
        work.into_par_iter().with_max_len(1).for_each_init(
            || Strip::new(self.columns, k),
            |strip, (number, (positions, (indices, distances)))| {
                let cells = positions.len();
                let queries = Queries { layout: self.queries, positions, own: self.own };
                strip.search(&queries, reach(number), indices, distances);
                let done = done.fetch_add(cells, Ordering::Relaxed) + cells;
                tick(done as f64 / self.queries.len() as f64);
            },
        );
        Rows { k, indices, distances }
    }
}

/// Hands each strip its part of `values`.
fn cut<'v, T>(mut values: &'v mut [T], strips: &[Range<usize>], k: usize) -> Vec<&'v mut [T]> {
    let mut parts = Vec::with_capacity(strips.len());
    for strip in strips {
        let (part, rest) = values.split_at_mut(strip.len() * k);
        parts.push(part);
        values = rest;
    }
    parts
}

impl Rows {
    /// Puts the row at each position where `order` says, within the memory that the rows have.
    pub fn settle(&mut self, order: &[u32]) {
        let k = self.k;
        let mut settled = vec![false; order.len()];
        let mut indices = vec![0u32; k];
        let mut distances = vec![0f32; k];
        for start in 0..order.len() {
            if settled[start] {
                continue;
            }
            indices.copy_from_slice(&self.indices[start * k..][..k]);
            distances.copy_from_slice(&self.distances[start * k..][..k]);
            let mut position = start;
            // Follows the cycle: the row in hand goes to its place, the one found there is next.
            loop {
                let target = order[position] as usize;
                self.indices[target * k..][..k].swap_with_slice(&mut indices);
                self.distances[target * k..][..k].swap_with_slice(&mut distances);
                settled[position] = true;
                position = target;
                if position == start {
                    break;
                }
            }
        }
    }
}
