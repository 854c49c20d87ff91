//! A strip of query cells that others pass by, block after block.

use std::ops::Range;

use super::super::tiles::{Layout, multiply, widest};
use super::pool::{CHUNK, Pool, Query, Slack};

/// Most cells of a strip.
pub(super) const ROWS: usize = 256;

/// Cells that are compared with a strip at once, a multiple of `CHUNK`.
const COLUMNS: usize = 512;

/// Memory of one thread.
pub(super) struct Strip<'a> {
    columns: &'a Layout<'a, f32>,
    slack: Slack,
    dims: usize,
    queries: Vec<f32>,
    pools: Vec<Pool>,
    block: Vec<f32>,
    /// The positions of the block, and lower bounds of their squared lengths; infinite where there is no cell.
    positions: Vec<u32>,
    lowered: Vec<f32>,
    filled: usize,
    products: Vec<f32>,
    bounds: Vec<f32>,
}

/// The query cells of a strip.
pub(super) struct Queries<'a> {
    pub layout: &'a Layout<'a, f32>,
    /// Where they are in the layout, at most `ROWS`.
    pub positions: Range<usize>,
    /// The position of each among the cells that pass by, if it is one of them.
    pub own: &'a dyn Fn(usize) -> Option<u32>,
}

impl<'a> Strip<'a> {
    pub fn new(columns: &'a Layout<'a, f32>, k: usize) -> Strip<'a> {
        let dims = columns.points.dims();
        Strip {
            columns,
            slack: Slack::of(dims),
            dims,
            queries: vec![0.0; ROWS * dims],
            pools: (0..ROWS).map(|_| Pool::new(k)).collect(),
            block: vec![0.0; COLUMNS * dims],
            positions: vec![0; COLUMNS],
            lowered: vec![f32::INFINITY; COLUMNS],
            filled: 0,
            products: vec![0.0; ROWS * COLUMNS],
            bounds: Vec::new(),
        }
    }

    /// Finds the nearest of the cells in `ranges` (positions) for each of the queries; rows of `indices` and `distances`
    /// have one place for each neighbour.
    pub fn search(
        &mut self,
        queries: &Queries<'_>,
        ranges: impl Iterator<Item = Range<usize>>,
        indices: &mut [u32],
        distances: &mut [f32],
    ) {
        let count = queries.positions.len();
        queries.layout.fill(queries.positions.clone(), &mut self.queries[..count * self.dims]);
        self.pools[..count].iter_mut().for_each(Pool::clear);
        for mut range in ranges {
            while !range.is_empty() {
                let taken = range.len().min(COLUMNS - self.filled);
                self.take(range.start..range.start + taken);
                range.start += taken;
                if self.filled == COLUMNS {
                    self.flush(queries);
                }
            }
        }
        self.flush(queries);
        let k = indices.len() / count;
        for (row, (indices, distances)) in
            indices.chunks_exact_mut(k).zip(distances.chunks_exact_mut(k)).enumerate()
        {
            let query = self.query(queries, row);
            self.pools[row].finish(query, &mut self.bounds, indices, distances);
        }
    }

    /// Adds cells to the block.
    fn take(&mut self, range: Range<usize>) {
        let filled = self.filled..self.filled + range.len();
        self.filled = filled.end;
        self.columns.fill(range.clone(), &mut self.block[filled.start * self.dims..filled.end * self.dims]);
        for (slot, position) in filled.zip(range) {
            self.positions[slot] = position as u32;
            self.lowered[slot] = self.slack.lowered(self.columns.norms[position]);
        }
    }

    fn query<'q>(&self, queries: &Queries<'q>, row: usize) -> Query<'q>
    where
        'a: 'q,
    {
        let position = queries.positions.start + row;
        Query {
            row: queries.layout.points.row(queries.layout.order[position] as usize),
            norm: queries.layout.norms[position],
            slack: self.slack,
            columns: self.columns,
        }
    }

    /// Compares the block with all queries.
    fn flush(&mut self, queries: &Queries<'_>) {
        let columns = std::mem::take(&mut self.filled);
        if columns == 0 {
            return;
        }
        let rows = queries.positions.len();
        let (left, right) = (&self.queries[..rows * self.dims], &self.block[..columns * self.dims]);
        multiply(left, right, self.dims, &mut self.products, COLUMNS);
        let padded = columns.next_multiple_of(CHUNK);
        self.lowered[columns..padded].fill(f32::INFINITY);
        for row in 0..rows {
            let query = self.query(queries, row);
            let own = (queries.own)(queries.positions.start + row);
            let products = &self.products[row * COLUMNS..][..padded];
            let lowered = &self.lowered[..padded];
            let (positions, pool, bounds) = (&self.positions[..], &mut self.pools[row], &mut self.bounds);
            widest(
                #[inline(always)]
                || sift(products, lowered, positions, own, pool, |pool| pool.shrink(query, bounds)),
            );
        }
    }
}

/// Offers the cells of a block to a pool.
#[inline(always)]
fn sift(
    products: &[f32],
    lowered: &[f32],
    positions: &[u32],
    own: Option<u32>,
    pool: &mut Pool,
    mut shrink: impl FnMut(&mut Pool),
) {
    let own = own.unwrap_or(u32::MAX);
    let chunks = products.chunks_exact(CHUNK).zip(lowered.chunks_exact(CHUNK));
    for (chunk, (products, lowered)) in chunks.enumerate() {
        let mut bounds = [0f32; CHUNK];
        for ((bound, product), lowered) in bounds.iter_mut().zip(products).zip(lowered) {
            *bound = product + lowered;
        }
        let threshold = pool.threshold;
        if !bounds.iter().fold(false, |any, &bound| any | (bound <= threshold)) {
            continue;
        }
        if pool.is_full() {
            shrink(pool);
        }
        let threshold = pool.threshold;
        for (&bound, &position) in bounds.iter().zip(&positions[chunk * CHUNK..]) {
            if bound <= threshold && position != own {
                pool.push(bound, position);
            }
        }
    }
}
