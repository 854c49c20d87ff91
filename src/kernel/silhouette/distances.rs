//! The silhouette of cells from their distances to all cells, a block at a time.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::super::kmeans::lloyd::group;
use super::super::neighbours::Tick;
use super::super::points::{Classes, Points};
use super::super::tiles::{Element, Frame, Layout, multiply, widest};

/// Cells whose distances are summed at once, by one task.
const ROWS: usize = 128;

/// Cells they are compared with at once.
const COLUMNS: usize = 512;

const LANES: usize = 16;

/// The silhouette of each of `cells` against all cells, with products of precision `T`.
pub(super) fn silhouettes<T: Element>(
    points: &Points,
    classes: &Classes,
    cells: &[u32],
    tick: Tick<'_>,
) -> Vec<f64> {
    let frame = Frame::<T>::around(points, points);
    let (order, starts) = group(&classes.codes, classes.len());
    let mut position_of = vec![0u32; order.len()];
    order.iter().zip(0..).for_each(|(&cell, position)| position_of[cell as usize] = position);
    let columns = Layout::new(points, &frame, order);
    // With a sample the cells are too many for the caches, and are walked through class by class for each strip.
    let columns = if cells.len() < points.len() { columns.gathered() } else { columns };
    let rows = Layout::new(points, &frame, cells.to_vec());
    let survey = Survey { columns: &columns, starts: &starts, position_of: &position_of, rows: &rows };
    let mut silhouettes = vec![0f64; cells.len()];
    let done = AtomicUsize::new(0);
    silhouettes.par_chunks_mut(ROWS).enumerate().with_max_len(1).for_each_init(
        || Memory::new(points.dims(), classes.len()),
        |memory, (strip, silhouettes)| {
            survey.strip(strip * ROWS, memory, silhouettes);
            let done = done.fetch_add(silhouettes.len(), Ordering::Relaxed) + silhouettes.len();
            tick(done as f64 / cells.len() as f64);
        },
    );
    silhouettes
}

struct Survey<'a, T> {
    /// All cells, class after class, and where each class begins (and the last one ends).
    columns: &'a Layout<'a, T>,
    starts: &'a [usize],
    position_of: &'a [u32],
    /// The cells whose silhouette is wanted.
    rows: &'a Layout<'a, T>,
}

/// Memory of one thread.
struct Memory<T> {
    rows: Vec<T>,
    block: Vec<T>,
    products: Vec<T>,
    /// Rows x classes: the sum of the distances to the cells of each class.
    sums: Vec<f64>,
}

impl<T: Element> Memory<T> {
    fn new(dims: usize, classes: usize) -> Memory<T> {
        Memory {
            rows: vec![T::ZERO; ROWS * dims],
            block: vec![T::ZERO; COLUMNS * dims],
            products: vec![T::ZERO; ROWS * COLUMNS],
            sums: vec![0.0; ROWS * classes],
        }
    }
}

impl<T: Element> Survey<'_, T> {
    /// The silhouettes of the rows from `first` on.
    fn strip(&self, first: usize, memory: &mut Memory<T>, silhouettes: &mut [f64]) {
        let (dims, classes) = (self.columns.points.dims(), self.starts.len() - 1);
        let rows = first..first + silhouettes.len();
        let placed = &mut memory.rows[..rows.len() * dims];
        self.rows.fill(rows.clone(), placed);
        memory.sums.fill(0.0);
        for start in (0..self.columns.len()).step_by(COLUMNS) {
            let block = start..(start + COLUMNS).min(self.columns.len());
            let columns = &mut memory.block[..block.len() * dims];
            self.columns.fill(block.clone(), columns);
            multiply(placed, columns, dims, &mut memory.products, COLUMNS);
            widest(
                #[inline(always)]
                || self.add(&rows, &block, &mut memory.products, &mut memory.sums),
            );
        }
        for ((silhouette, row), sums) in silhouettes.iter_mut().zip(rows).zip(memory.sums.chunks(classes)) {
            *silhouette = self.silhouette(self.rows.order[row], sums);
        }
    }

    /// Adds the distances to the cells of a block.
    #[inline(always)]
    fn add(&self, rows: &Range<usize>, block: &Range<usize>, products: &mut [T], sums: &mut [f64]) {
        let classes = self.starts.len() - 1;
        let first = self.starts.partition_point(|&start| start <= block.start) - 1;
        // Below this share of the squared lengths a squared distance is rounding: equal cells are at distance 0.
        let share = T::rounded((2.0 * (self.columns.points.dims() as f64).sqrt() + 8.0) * T::ROUNDING);
        for (row, (products, sums)) in
            rows.clone().zip(products.chunks_mut(COLUMNS).zip(sums.chunks_mut(classes)))
        {
            let norm = self.rows.norms[row];
            let own = self.position_of[self.rows.order[row] as usize] as usize;
            if block.contains(&own) {
                products[own - block.start] = T::MINUS_TWO * norm;
            }
            let (mut class, mut start) = (first, block.start);
            while start < block.end {
                let end = self.starts[class + 1].min(block.end);
                let products = &products[start - block.start..end - block.start];
                sums[class] += sum_of_distances(products, &self.columns.norms[start..end], norm, share);
                (class, start) = (class + 1, end);
            }
        }
    }

    fn silhouette(&self, cell: u32, sums: &[f64]) -> f64 {
        let position = self.position_of[cell as usize] as usize;
        let own = self.starts.partition_point(|&start| start <= position) - 1;
        let size = |class: usize| self.starts[class + 1] - self.starts[class];
        if size(own) < 2 {
            return 0.0;
        }
        let within = sums[own] / (size(own) - 1) as f64;
        let others = (0..sums.len()).filter(|&class| class != own);
        let between = others.map(|class| sums[class] / size(class) as f64).fold(f64::INFINITY, f64::min);
        match within.max(between) {
            0.0 => 0.0,
            larger => (between - within) / larger,
        }
    }
}

#[inline(always)]
fn sum_of_distances<T: Element>(products: &[T], norms: &[T], norm: T, share: T) -> f64 {
    let distance = |product: T, other: T| -> f64 {
        let lengths = norm + other;
        let squared = product + lengths;
        let root = if squared > share * lengths { squared } else { T::ZERO };
        root.root().into()
    };
    let mut lanes = [0f64; LANES];
    let (products, norms) = (products.chunks_exact(LANES), norms.chunks_exact(LANES));
    let rest = products.remainder().iter().zip(norms.remainder());
    for (products, norms) in products.zip(norms) {
        for ((lane, &product), &other) in lanes.iter_mut().zip(products).zip(norms) {
            *lane += distance(product, other);
        }
    }
    for (lane, (&product, &other)) in lanes.iter_mut().zip(rest) {
        *lane += distance(product, other);
    }
    lanes.iter().sum()
}
