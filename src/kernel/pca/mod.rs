//! Principal component analysis of counts, the recipe that `scanpy` users know, exact and out of core.
//!
//! The recipe is that of scanpy 1.11.5: `pp.normalize_total(target_sum=1e4)`, `pp.log1p`,
//! `pp.highly_variable_genes(n_top_genes=2000, flavor="seurat")`, `pp.scale(max_value=10)`,
//! `pp.pca(n_comps=50, svd_solver="full")`. It is computed in float64 where scanpy uses float32, so values agree to
//! scanpy's own rounding (tested: cosine of every leading component above 0.9999, variance ratios within 1e-4).
//!
//! The matrix is streamed three times and never held whole:
//!
//! 1. statistics: mean and variance of every gene, of normalised counts (to select genes) and of their log (to scale),
//! 2. gram: scaled rows, 1,024 at a time, are added to the genes x genes Gram matrix; its leading eigenvectors are the
//!    components. With fewer cells than genes the smaller cells x cells matrix is used: same result, see [`dual`],
//! 3. project: every cell is multiplied by the components.
//!
//! A zero count becomes one constant per gene once scaled, so a scaled row is that constant row plus as few differences
//! as the cell has counts. Only the block that the matrix product needs is dense.
//!
//! The result depends on neither the number of threads nor the way the source cuts its blocks: sums run over fixed
//! lanes of rows, products over fixed tiles, and every one in one order. A projected cell depends on that cell alone.

mod dual;
mod eigen;
mod gram;
mod model;
pub(super) mod normalize;
mod progress;
mod projection;
mod scaling;
mod selection;
mod statistics;
#[cfg(test)]
mod tests;

use faer::Mat;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::matrix::RowBlocks;

pub use model::Model;
pub use progress::{Note, Phase, Progress};

use eigen::Eigenpairs;
use gram::{Element, Gram};
use progress::Phases;
use scaling::Scaling;
use statistics::Statistics;

/// Largest Gram matrix (its side) that is decomposed: 12,000 takes about 4 GB and some minutes.
const LARGEST_GRAM: usize = 12_000;

/// Multiply-adds up to which the Gram matrix is summed in float64 throughout: it costs some tenths of a second there.
const DOUBLE_PRECISION_WORK: f64 = 2e10;

/// What to compute; the default is the recipe of the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Params {
    /// Highly variable genes to keep; 0 keeps every gene and selects nothing.
    pub n_top_genes: usize,
    /// Components to compute.
    pub n_comps: usize,
    /// Total count of each cell after normalisation.
    pub target_sum: f64,
    /// Whether genes are brought to unit variance; without it they are only centred and `max_value` has no part.
    pub scale: bool,
    /// Scaled values are clipped to plus and minus this; `None` clips nothing.
    pub max_value: Option<f64>,
}

impl Default for Params {
    fn default() -> Self {
        Params { n_top_genes: 2000, n_comps: 50, target_sum: 1e4, scale: true, max_value: Some(10.0) }
    }
}

impl Params {
    fn check(&self) -> Result<()> {
        let positive = |name: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                return Ok(());
            }
            Err(Error::usage(format_args!("{name} must be a positive number, not {value}")))
        };
        if self.n_comps == 0 {
            return Err(Error::usage("n_comps must be at least 1"));
        }
        positive("target_sum", self.target_sum)?;
        self.max_value.map_or(Ok(()), |value| positive("max_value", value))
    }
}

/// A fitted model with what there is to say about the fit.
#[derive(Debug, Clone)]
pub struct Fit {
    pub model: Model,
    /// What the caller should tell the user, in order of occurrence.
    pub notes: Vec<Note>,
    /// Seconds of wall time per phase, in order of occurrence.
    pub seconds: Vec<(Phase, f64)>,
}

/// Fits the recipe to a cells x genes matrix of counts.
///
/// `progress` is called at the start of every phase and after every block of rows.
///
/// # Errors
/// Input: fewer than two cells, no gene that varies, a count that is negative or not finite (the message gives its
/// cell and gene, counted from 0). Usage: a parameter out of range, or too many genes kept to be decomposed.
pub fn fit(matrix: &dyn RowBlocks, params: &Params, progress: &dyn Fn(Progress)) -> Result<Fit> {
    let mut phases = Phases::new(matrix.shape().0, progress);
    let (model, notes) = fit_model(matrix, params, &mut phases)?;
    Ok(Fit { model, notes, seconds: phases.into_seconds() })
}

/// [`fit`], and the scores of the same cells: float32, row-major cells x components.
///
/// The scores are exactly those that [`Model::transform`] gives.
pub fn fit_transform(
    matrix: &dyn RowBlocks,
    params: &Params,
    progress: &dyn Fn(Progress),
) -> Result<(Fit, Vec<f32>)> {
    let mut phases = Phases::new(matrix.shape().0, progress);
    let (model, notes) = fit_model(matrix, params, &mut phases)?;
    let scores = phases.run(Phase::Project, |done| model.project(matrix, done))?;
    Ok((Fit { model, notes, seconds: phases.into_seconds() }, scores))
}

fn fit_model(matrix: &dyn RowBlocks, params: &Params, phases: &mut Phases) -> Result<(Model, Vec<Note>)> {
    params.check()?;
    let (cells, columns) = matrix.shape();
    if cells < 2 {
        return Err(Error::input(format_args!("PCA needs at least 2 cells, the matrix has {cells}")));
    }
    let mut notes = Vec::new();
    let statistics =
        phases.run(Phase::Statistics, |done| Statistics::collect(matrix, params.target_sum, done))?;
    if statistics.empty_cells > 0 {
        notes.push(Note::EmptyCells { count: statistics.empty_cells });
    }
    let genes = phases.run(Phase::Selection, |_| kept_genes(&statistics, params, &mut notes))?;
    let scaling = Scaling::new(&statistics, genes, params);
    let count = component_count(cells, scaling.genes.len(), params, &mut notes)?;
    let decomposition = if cells < scaling.genes.len() {
        dual::decompose(matrix, &scaling, count, phases)?
    } else if decomposition_work(cells, scaling.genes.len()) <= DOUBLE_PRECISION_WORK {
        decompose::<f64>(matrix, &scaling, count, phases)?
    } else {
        decompose::<f32>(matrix, &scaling, count, phases)?
    };
    let empty = decomposition.eigenvalues.iter().filter(|&&value| value == 0.0).count();
    if empty > 0 {
        notes.push(Note::ComponentsWithoutVariance { count: empty, of: count });
    }
    Ok((Model::new(columns, cells, scaling, decomposition), notes))
}

/// The columns to keep, ascending; an error where none of them varies.
fn kept_genes(statistics: &Statistics, params: &Params, notes: &mut Vec<Note>) -> Result<Vec<u32>> {
    let columns = statistics.genes.len();
    let genes: Vec<u32> = match params.n_top_genes {
        0 => (0..columns as u32).collect(),
        top => selection::highly_variable(&statistics.genes, top),
    };
    if !genes.iter().any(|&gene| statistics.genes[gene as usize].log_variance > 0.0) {
        return Err(Error::input(format_args!(
            "no gene varies between the {} cells: there is nothing for PCA to find",
            statistics.cells
        )));
    }
    if genes.len() < params.n_top_genes {
        notes.push(Note::FewerGenes { asked: params.n_top_genes, kept: genes.len() });
    }
    Ok(genes)
}

/// As many components as asked for, but no more than centred data can have: `min(cells - 1, genes)`.
fn component_count(cells: usize, genes: usize, params: &Params, notes: &mut Vec<Note>) -> Result<usize> {
    let side = cells.min(genes);
    if side > LARGEST_GRAM {
        return Err(Error::usage(format_args!(
            "PCA of {cells} cells over {genes} genes needs a {side} x {side} matrix; the largest is {LARGEST_GRAM}"
        ))
        .hint("keep fewer genes with n_top_genes (2000 is usual)"));
    }
    let most = (cells - 1).min(genes);
    if params.n_comps > most {
        notes.push(Note::FewerComponents { asked: params.n_comps, given: most, cells, genes });
    }
    Ok(params.n_comps.min(most))
}

fn decomposition_work(cells: usize, genes: usize) -> f64 {
    cells as f64 * genes as f64 * genes as f64
}

/// Principal axes of the scaled matrix; see [`Model`] for the meaning of the fields.
struct Decomposition {
    /// Row-major components x genes, unit length.
    components: Vec<f64>,
    /// Variance along each component, descending.
    eigenvalues: Vec<f64>,
    total_variance: f64,
    /// Mean of each scaled gene.
    centre: Vec<f64>,
}

/// Decomposes through the genes x genes Gram matrix of the centred rows, its products taken in precision `T`.
fn decompose<T: Element>(
    matrix: &dyn RowBlocks,
    scaling: &Scaling,
    count: usize,
    phases: &mut Phases,
) -> Result<Decomposition> {
    let cells = matrix.shape().0;
    let (mut gram, sums) = phases.run(Phase::Gram, |done| {
        let zero: Vec<T> = scaling.zero.iter().map(|&value| T::from_f64(value)).collect();
        let mut gram = Gram::<T>::new(scaling.genes.len());
        matrix.for_each_block(&mut |block| {
            gram.extend(block.rows(), |row, scaled| {
                scaled.copy_from_slice(&zero);
                scaling.visit_row(block.row(row), |slot, value| scaled[slot] = T::from_f64(value));
            });
            done(block.first_row + block.rows());
            Ok(())
        })?;
        Ok(gram.finish())
    })?;
    let centre: Vec<f64> = sums.iter().map(|sum| sum / cells as f64).collect();
    subtract_means(&mut gram, &centre, cells);
    let trace = trace(&gram);
    let pairs = phases.run(Phase::Eigen, |_| eigen::leading(gram, count, T::NOISE))?;
    let Eigenpairs { values, vectors } = pairs;
    let freedom = (cells - 1) as f64;
    Ok(Decomposition {
        components: vectors,
        eigenvalues: values.iter().map(|value| value / freedom).collect(),
        total_variance: trace / freedom,
        centre,
    })
}

/// Turns the sum of outer products of rows into that of centred rows (lower triangle).
fn subtract_means(gram: &mut Mat<f64>, means: &[f64], rows: usize) {
    for (column, &mean) in means.iter().enumerate() {
        let entries = gram.col_mut(column);
        for (entry, &other) in entries.iter_mut().zip(means).skip(column) {
            *entry -= rows as f64 * mean * other;
        }
    }
}

fn trace(gram: &Mat<f64>) -> f64 {
    (0..gram.nrows()).map(|index| gram[(index, index)]).sum()
}
