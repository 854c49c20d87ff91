//! The fitted map from counts to scores.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Decomposition;
use super::normalize::BadCount;
use super::projection::Projection;
use super::scaling::Scaling;
use crate::error::{Error, Result};
use crate::matrix::RowBlocks;

/// Loadings within this part of the largest count as equally large: their difference is rounding.
const SIGN_TIE: f64 = 1e-6;

/// A fitted PCA: everything needed to place further cells among those it was fitted to.
///
/// `g` is the number of kept genes, `k` that of components. A cell's score is
/// `components · (clip((log1p(target_sum · count / total) - mean) / sd) - centre)`, `total` being that of all its genes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Genes (columns) of the matrix that it was fitted to.
    pub columns: usize,
    /// Cells that it was fitted to.
    pub cells: usize,
    pub target_sum: f64,
    /// Scaled values are clipped to plus and minus this, or not at all.
    pub max_value: Option<f64>,
    /// Columns of the kept genes, ascending (g).
    pub genes: Vec<u32>,
    /// Mean of each kept gene's logged counts (g).
    pub mean: Vec<f64>,
    /// Their standard deviation (`n - 1`); 1 for a constant gene, and for all when scaling is off (g).
    pub sd: Vec<f64>,
    /// Mean of each kept gene once scaled and clipped; near 0 (g).
    pub centre: Vec<f64>,
    /// Row-major k x g, unit vectors. The first of a component's largest loadings by size is positive, as scikit-learn's
    /// `svd_flip(u_based_decision=False)` has it. A component without variance is zero.
    pub components: Vec<f64>,
    /// Variance of the scores of each component (`n - 1`), descending (k).
    pub eigenvalues: Vec<f64>,
    /// Part of the total variance that each component has (k).
    pub variance_ratio: Vec<f64>,
    /// Sum of the variances of all kept genes once scaled.
    pub total_variance: f64,
}

impl Model {
    pub(super) fn new(columns: usize, cells: usize, scaling: Scaling, parts: Decomposition) -> Self {
        let Decomposition { mut components, eigenvalues, total_variance, centre } = parts;
        components.chunks_exact_mut(scaling.genes.len()).for_each(orient);
        Model {
            columns,
            cells,
            target_sum: scaling.target_sum,
            max_value: scaling.max_value,
            genes: scaling.genes,
            mean: scaling.mean,
            sd: scaling.sd,
            centre,
            components,
            variance_ratio: eigenvalues.iter().map(|value| value / total_variance).collect(),
            eigenvalues,
            total_variance,
        }
    }

    /// Number of components.
    pub fn n_comps(&self) -> usize {
        self.eigenvalues.len()
    }

    /// Scores of the cells of a matrix with the same columns: float32, row-major cells x components.
    ///
    /// A cell's scores depend on its own counts only. `progress` is called with the number of cells done.
    ///
    /// # Errors
    /// Input: another number of columns, or a count that is negative or not finite.
    pub fn transform(&self, matrix: &dyn RowBlocks, progress: &dyn Fn(usize)) -> Result<Vec<f32>> {
        let columns = matrix.shape().1;
        if columns != self.columns {
            return Err(Error::input(format_args!(
                "the matrix has {columns} genes, the PCA was fitted to {}",
                self.columns
            )));
        }
        self.project(matrix, progress)
    }

    /// Scores of the cells of a matrix of other genes, as [`Model::transform`] gives them.
    ///
    /// `places` has the column of each kept gene in that matrix (g); a gene without one counts zero in every cell. A
    /// cell's total is that of all the matrix's genes.
    ///
    /// # Errors
    /// Input: a count that is negative or not finite.
    pub fn transform_matched(
        &self,
        matrix: &dyn RowBlocks,
        places: &[Option<u32>],
        progress: &dyn Fn(usize),
    ) -> Result<Vec<f32>> {
        let columns = matrix.shape().1;
        // A gene that is absent gets a column of its own behind the others, where no row has a count.
        let mut absent = columns as u32..;
        let genes: Vec<u32> =
            places.iter().map(|place| place.or_else(|| absent.next()).unwrap_or(u32::MAX)).collect();
        let missing = places.iter().filter(|place| place.is_none()).count();
        Model { columns: columns + missing, genes, ..self.clone() }.project(matrix, progress)
    }

    /// [`Model::transform`] without the check of the columns.
    pub(super) fn project(&self, matrix: &dyn RowBlocks, progress: &dyn Fn(usize)) -> Result<Vec<f32>> {
        let projection = Projection::new(self);
        let width = self.n_comps();
        let mut scores = vec![0.0; matrix.shape().0 * width];
        matrix.for_each_block(&mut |block| {
            let place = |differences: &mut Vec<(usize, f64)>, (row, scores): (usize, &mut [f32])| {
                projection.place(block.row(row), differences, scores);
                BadCount::find(block.first_row + row, block.row(row))
            };
            let bad = scores[block.first_row * width..][..block.rows() * width]
                .par_chunks_mut(width)
                .enumerate()
                .map_init(Vec::new, place)
                .find_map_first(|bad| bad);
            if let Some(bad) = bad {
                return Err(bad.into_error());
            }
            progress(block.first_row + block.rows());
            Ok(())
        })?;
        Ok(scores)
    }
}

/// Turns a component around if need be, so that its largest loading is positive.
fn orient(component: &mut [f64]) {
    let largest = component.iter().fold(0.0, |most: f64, loading| most.max(loading.abs()));
    let first = component.iter().find(|loading| loading.abs() >= largest * (1.0 - SIGN_TIE));
    if first.is_some_and(|&loading| loading < 0.0) {
        component.iter_mut().for_each(|loading| *loading = -*loading);
    }
}
