//! Cells laid out for products of many cells with many cells.
//!
//! |a - b|² = |a|² + |b|² - 2 ab turns distances into matrix products. The difference cancels digits, so cells are moved
//! to their common centre first, and scaled by a power of two so that no square overflows or vanishes.

use std::ops::{Add, Mul, Range, Sub};

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

use super::points::Points;

/// Cells whose sums one task takes; the sums of the tasks are added in order.
const LANE: usize = 4096;

/// Precision of the products.
pub(super) trait Element:
    faer::traits::RealField
    + Copy
    + Send
    + Sync
    + PartialOrd
    + Into<f64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
{
    const ZERO: Self;
    const MINUS_TWO: Self;
    /// Half the distance from 1 to the next number.
    const ROUNDING: f64;
    fn of(value: f32) -> Self;
    fn rounded(value: f64) -> Self;
    fn root(self) -> Self;
}

impl Element for f32 {
    const ZERO: f32 = 0.0;
    const MINUS_TWO: f32 = -2.0;
    const ROUNDING: f64 = 0.5 * f32::EPSILON as f64;
    #[inline(always)]
    fn of(value: f32) -> f32 {
        value
    }
    #[inline(always)]
    fn rounded(value: f64) -> f32 {
        value as f32
    }
    #[inline(always)]
    fn root(self) -> f32 {
        self.sqrt()
    }
}

impl Element for f64 {
    const ZERO: f64 = 0.0;
    const MINUS_TWO: f64 = -2.0;
    const ROUNDING: f64 = 0.5 * f64::EPSILON;
    #[inline(always)]
    fn of(value: f32) -> f64 {
        f64::from(value)
    }
    #[inline(always)]
    fn rounded(value: f64) -> f64 {
        value
    }
    #[inline(always)]
    fn root(self) -> f64 {
        self.sqrt()
    }
}

/// Where the coordinates of cells are moved to: `x * scale - centre`.
#[derive(Debug, Clone)]
pub(super) struct Frame<T> {
    /// A power of two that brings the largest coordinate below 1.
    pub scale: T,
    /// The mean cell, scaled and rounded to float32.
    pub centre: Vec<T>,
}

impl<T: Element> Frame<T> {
    /// The frame around the mean of `points`, wide enough for `others` too.
    pub fn around(points: &Points, others: &Points) -> Frame<T> {
        let dims = points.dims();
        let sums: Vec<Vec<f64>> = points
            .values()
            .par_chunks(LANE * dims.max(1))
            .map(|rows| {
                widest(
                    #[inline(always)]
                    || column_sums(rows, dims),
                )
            })
            .collect();
        let mut mean = vec![0f64; dims];
        for lane in &sums {
            mean.iter_mut().zip(lane).for_each(|(mean, sum)| *mean += sum);
        }
        let largest = largest(points.values()).max(largest(others.values()));
        // The largest coordinate is below 2 to this power; the scale stays a normal number.
        let exponent = match largest > 0.0 {
            true => (f64::from(largest).log2().floor() as i32 + 1).clamp(-126, 126),
            false => 0,
        };
        let scale = 2f64.powi(-exponent);
        let cells = points.len().max(1) as f64;
        let centre = mean.iter().map(|sum| T::of((sum / cells * scale) as f32)).collect();
        Frame { scale: T::rounded(scale), centre }
    }

    /// Writes one cell in the frame.
    #[inline(always)]
    pub fn place(&self, row: &[f32], target: &mut [T]) {
        for ((target, &value), &centre) in target.iter_mut().zip(row).zip(&self.centre) {
            *target = T::of(value) * self.scale - centre;
        }
    }
}

#[inline(always)]
fn column_sums(rows: &[f32], dims: usize) -> Vec<f64> {
    let mut sums = vec![0f64; dims];
    for row in rows.chunks_exact(dims) {
        sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    sums
}

fn largest(values: &[f32]) -> f32 {
    let lanes = values.par_chunks(1 << 18);
    lanes
        .map(|lane| lane.iter().fold(0f32, |largest, value| largest.max(value.abs())))
        .reduce(|| 0.0, f32::max)
}

/// Cells in the order in which they are multiplied.
pub(super) struct Layout<'a, T> {
    pub points: &'a Points,
    pub frame: &'a Frame<T>,
    /// The cell at each position.
    pub order: Vec<u32>,
    /// Squared length of the cell at each position, in the frame.
    pub norms: Vec<T>,
    /// The cells in this order, in the frame, where they were gathered.
    rows: Option<Vec<T>>,
}

impl<'a, T: Element> Layout<'a, T> {
    /// Lays out the cells of `order`.
    pub fn new(points: &'a Points, frame: &'a Frame<T>, order: Vec<u32>) -> Layout<'a, T> {
        let dims = points.dims();
        let mut norms = vec![T::ZERO; order.len()];
        norms.par_chunks_mut(LANE).zip(order.par_chunks(LANE)).for_each_init(
            || vec![T::ZERO; dims],
            |placed, (norms, cells)| {
                widest(
                    #[inline(always)]
                    || {
                        for (norm, &cell) in norms.iter_mut().zip(cells) {
                            frame.place(points.row(cell as usize), placed);
                            *norm = T::rounded(squared_norm(placed));
                        }
                    },
                );
            },
        );
        Layout { points, frame, order, norms, rows: None }
    }

    /// Keeps a copy of the cells in their order: worth its memory where an order that jumps is walked through often.
    pub fn gathered(mut self) -> Layout<'a, T> {
        let dims = self.points.dims();
        let mut rows = vec![T::ZERO; self.len() * dims];
        let lanes = rows.par_chunks_mut((LANE * dims).max(1)).enumerate();
        lanes.for_each(|(lane, rows)| {
            let first = lane * LANE;
            self.fill(first..(first + LANE).min(self.len()), rows);
        });
        self.rows = Some(rows);
        self
    }

    /// All cells as they come.
    pub fn whole(points: &'a Points, frame: &'a Frame<T>) -> Layout<'a, T> {
        Layout::new(points, frame, (0..points.len() as u32).collect())
    }

    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Writes the cells at `positions` into `target`, row after row.
    pub fn fill(&self, positions: Range<usize>, target: &mut [T]) {
        let dims = self.points.dims();
        if let Some(rows) = &self.rows {
            return target.copy_from_slice(&rows[positions.start * dims..positions.end * dims]);
        }
        widest(
            #[inline(always)]
            || {
                for (row, &cell) in target.chunks_exact_mut(dims).zip(&self.order[positions.clone()]) {
                    self.frame.place(self.points.row(cell as usize), row);
                }
            },
        );
    }
}

/// Runs `work` compiled for the widest vectors of the machine; `work` and what it calls are to be inlined always.
#[inline(always)]
pub(super) fn widest<R>(work: impl FnMut() -> R) -> R {
    Arch::new().dispatch(Work(work))
}

/// A closure that is called by reference: calling it by value goes through a function that is compiled for any machine.
struct Work<F>(F);

impl<R, F: FnMut() -> R> NullaryFnOnce for Work<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        (self.0)()
    }
}

const LANES: usize = 16;

#[inline(always)]
fn squared_norm<T: Element>(values: &[T]) -> f64 {
    let mut lanes = [0f64; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            let value: f64 = value.into();
            *lane += value * value;
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        let value: f64 = value.into();
        *lane += value * value;
    }
    lanes.iter().sum()
}

/// The squared distance of two cells in float64, as exact as their coordinates; zero for equal ones.
#[inline(always)]
pub(super) fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0f64; LANES];
    let (left, right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = left.remainder().iter().zip(right.remainder());
    for (a, b) in left.zip(right) {
        for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
            let difference = f64::from(a) - f64::from(b);
            *lane += difference * difference;
        }
    }
    for (lane, (&a, &b)) in lanes.iter_mut().zip(rest) {
        let difference = f64::from(a) - f64::from(b);
        *lane += difference * difference;
    }
    lanes.iter().sum()
}

/// Minus twice the products of every row with every column: `products[row * stride + column]`.
///
/// `rows` and `columns` hold cells of length `dims`, one after another.
pub(super) fn multiply<T: Element>(
    rows: &[T],
    columns: &[T],
    dims: usize,
    products: &mut [T],
    stride: usize,
) {
    let (row_count, column_count) = (rows.len() / dims, columns.len() / dims);
    let rows = MatRef::from_column_major_slice(rows, dims, row_count);
    let columns = MatRef::from_column_major_slice(columns, dims, column_count).transpose();
    let target = MatMut::from_column_major_slice_mut(&mut products[..row_count * stride], stride, row_count);
    matmul(target.subrows_mut(0, column_count), Accum::Replace, columns, rows, T::MINUS_TWO, Par::Seq);
}
