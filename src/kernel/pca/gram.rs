//! The Gram matrix of streamed rows: the sum of their outer products.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Rows that are multiplied at once; within them products of precision `T` are added in precision `T`, beyond them in
/// float64.
const BLOCK_ROWS: usize = 1024;

/// Side of the tiles that the matrix is cut into. Each is computed by one thread, always in the same way.
const TILE: usize = 512;

/// Columns whose sums are taken by one thread.
const SUM_COLUMNS: usize = 256;

/// Precision of the products: `f32`, or `f64` where it is cheap.
pub(super) trait Element: faer::traits::RealField + Copy + Into<f64> + Send + Sync {
    const ZERO: Self;
    const ONE: Self;
    /// Part of the largest eigenvalue below which an eigenvalue is rounding.
    const NOISE: f64;
    fn from_f64(value: f64) -> Self;
}

impl Element for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const NOISE: f64 = 1e-6;
    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Element for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const NOISE: f64 = 1e-12;
    fn from_f64(value: f64) -> Self {
        value
    }
}

/// Sums the outer products, and the plain sums, of rows of length `size` that come a few at a time.
pub(super) struct Gram<T> {
    size: usize,
    tiles: Vec<Tile>,
    sums: Vec<f64>,
    /// Row after row; `filled` of them are waiting to be multiplied.
    block: Vec<T>,
    filled: usize,
}

/// A tile on or below the diagonal.
struct Tile {
    rows: Range<usize>,
    columns: Range<usize>,
    /// Column-major.
    sums: Vec<f64>,
}

impl<T: Element> Gram<T> {
    pub fn new(size: usize) -> Self {
        let range = |tile: usize| tile * TILE..((tile + 1) * TILE).min(size);
        let tiles = (0..size.div_ceil(TILE))
            .flat_map(|row| (0..=row).map(move |column| (range(row), range(column))))
            .map(|(rows, columns)| Tile { sums: vec![0.0; rows.len() * columns.len()], rows, columns })
            .collect();
        Gram { size, tiles, sums: vec![0.0; size], block: vec![T::ZERO; size * BLOCK_ROWS], filled: 0 }
    }

    /// Adds `rows` rows; `fill` writes one of them into a slice of length `size` of unknown content.
    pub fn extend(&mut self, rows: usize, fill: impl Fn(usize, &mut [T]) + Sync) {
        let mut next = 0;
        while next < rows {
            let count = (BLOCK_ROWS - self.filled).min(rows - next);
            self.block[self.filled * self.size..][..count * self.size]
                .par_chunks_mut(self.size)
                .enumerate()
                .for_each(|(offset, row)| fill(next + offset, row));
            next += count;
            self.filled += count;
            if self.filled == BLOCK_ROWS {
                self.flush();
            }
        }
    }

    /// The lower triangle of the Gram matrix, and the sum of every column.
    pub fn finish(mut self) -> (Mat<f64>, Vec<f64>) {
        self.flush();
        let mut gram = Mat::zeros(self.size, self.size);
        for Tile { rows, columns, sums } in &self.tiles {
            let tile = MatRef::from_column_major_slice(sums, rows.len(), columns.len());
            let target = gram.as_mut().submatrix_mut(rows.start, columns.start, rows.len(), columns.len());
            { target }.copy_from(tile);
        }
        (gram, self.sums)
    }

    fn flush(&mut self) {
        let (size, rows) = (self.size, std::mem::take(&mut self.filled));
        if rows == 0 {
            return;
        }
        let block = &self.block[..size * rows];
        let transposed = MatRef::from_column_major_slice(block, size, rows);
        self.tiles
            .par_iter_mut()
            .for_each_init(|| vec![T::ZERO; TILE * TILE], |product, tile| tile.add(transposed, product));
        self.sums.par_chunks_mut(SUM_COLUMNS).enumerate().for_each(|(chunk, sums)| {
            for row in block.chunks_exact(size) {
                let values = &row[chunk * SUM_COLUMNS..];
                sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += value.into());
            }
        });
    }
}

impl Tile {
    /// Adds the tile of `block` times its transpose; `product` is scratch space.
    fn add<T: Element>(&mut self, block: MatRef<'_, T>, product: &mut [T]) {
        let (rows, columns) = (self.rows.len(), self.columns.len());
        let left = block.subrows(self.rows.start, rows);
        let right = block.subrows(self.columns.start, columns).transpose();
        let mut target = MatMut::from_column_major_slice_mut(&mut product[..rows * columns], rows, columns);
        let diagonal = self.rows == self.columns;
        if diagonal {
            let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
            let target = target.as_mut();
            triangular::matmul(target, lower, Accum::Replace, left, full, right, full, T::ONE, Par::Seq);
        } else {
            matmul(target.as_mut(), Accum::Replace, left, right, T::ONE, Par::Seq);
        }
        for (column, sums) in self.sums.chunks_exact_mut(rows).enumerate() {
            let first = if diagonal { column } else { 0 };
            let values = &product[column * rows..][first..rows];
            sums[first..].iter_mut().zip(values).for_each(|(sum, &value)| *sum += value.into());
        }
    }
}
