//! Cells grouped around centres, so that only nearby groups need to be compared.

use std::ops::Range;

use super::super::kmeans::lloyd::{assign, group, update};
use super::super::kmeans::placed;
use super::super::points::Points;
use super::super::sample::distinct;
use super::super::tiles::{Frame, Layout};

/// Cells of a list on average.
const CELLS: usize = 256;

/// Most lists: each is compared with all others, and every cell with each.
const LISTS: usize = 4096;

/// Cells per list that the centres are learned from, and rounds of doing so.
const LEARNED_FROM: usize = 64;
const ROUNDS: usize = 6;

const SEED: u64 = 0x6c69_7374;

/// Centres of lists, in the frame of the cells.
pub(super) struct Lists {
    /// Row-major lists x dims.
    centres: Vec<f64>,
    dims: usize,
}

/// Cells by list.
pub(super) struct Members {
    /// The cells of list after list, ascending within each.
    pub order: Vec<u32>,
    /// Where each list begins in `order`, and where the last one ends.
    pub starts: Vec<usize>,
}

impl Lists {
    /// Learns lists from a sample.
    pub fn learn(points: &Points, frame: &Frame<f32>) -> Lists {
        let dims = points.dims();
        let count = (points.len() / CELLS).clamp(1, LISTS);
        let layout = Layout::new(points, frame, distinct(points.len(), count * LEARNED_FROM, SEED));
        let first = distinct(layout.len(), count, SEED + 1);
        let first = first.iter().map(|&position| layout.order[position as usize] as usize);
        let mut centres: Vec<f64> = first.flat_map(|cell| placed(&layout, cell)).collect();
        for _ in 0..ROUNDS {
            let labels = assign(&layout, &centres).labels;
            update(&layout, &labels, &mut centres);
        }
        Lists { centres, dims }
    }

    pub fn len(&self) -> usize {
        self.centres.len() / self.dims
    }

    /// The list of each cell.
    pub fn labels(&self, points: &Points, frame: &Frame<f32>) -> Vec<u32> {
        assign(&Layout::whole(points, frame), &self.centres).labels
    }

    /// Cells by list, given the list of each.
    pub fn members(&self, labels: &[u32]) -> Members {
        let (order, starts) = group(labels, self.len());
        Members { order, starts }
    }

    /// All lists, nearest first.
    pub fn ranking(&self, list: usize) -> Vec<u32> {
        let own = &self.centres[list * self.dims..][..self.dims];
        let distance = |other: &[f64]| own.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let distances: Vec<f64> = self.centres.chunks_exact(self.dims).map(distance).collect();
        let mut ranking: Vec<u32> = (0..self.len() as u32).collect();
        ranking.sort_by(|&a, &b| distances[a as usize].total_cmp(&distances[b as usize]));
        ranking
    }
}

impl Members {
    /// The positions of a list.
    pub fn range(&self, list: usize) -> Range<usize> {
        self.starts[list]..self.starts[list + 1]
    }

    /// The positions of the first lists of a ranking: `lists` of them, or as many as hold `cells` cells.
    pub fn reach(&self, ranking: &[u32], lists: usize, cells: usize) -> Vec<Range<usize>> {
        let mut held = 0;
        let mut ranges = Vec::with_capacity(lists);
        for (rank, &list) in ranking.iter().enumerate() {
            if rank >= lists && held >= cells {
                break;
            }
            let range = self.range(list as usize);
            held += range.len();
            ranges.push(range);
        }
        ranges
    }
}
