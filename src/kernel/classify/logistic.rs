//! Logistic regression on z-scored dimensions.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::lbfgs::{Limits, minimise};
use super::npy::{Array, Values};
use super::softmax::{sigmoid, softmax, softmax_columns};
use super::standard::Standard;
use super::{Arrays, Prediction};
use crate::error::Result;
use crate::kernel::neighbours::Tick;
use crate::kernel::points::{Classes, Points};
use crate::kernel::tiles::widest;

/// Inverse strength of the penalty.
pub const C: f64 = 1.0;

/// Iterations after which the fit stops, converged or not.
pub const ITERATIONS: usize = 2000;

/// The largest entry of the gradient (of the mean loss) at which the fit has converged.
///
/// Weights are then within 1e-5 of the minimum's; scikit-learn's own default, 1e-4, leaves them a tenth off.
pub const TOLERANCE: f64 = 1e-8;

/// Cells whose scores are computed at once.
const BLOCK: usize = 256;

/// Lanes that sum the gradient on their own.
const LANES: usize = 32;

/// Multinomial logistic regression with an L2 penalty; of two classes the binary form.
///
/// Minimises `mean over cells of -log p(class) + |weights|² / (2 · C · cells)`, intercepts free, with C = 1: the objective
/// of scikit-learn 1.9.1 `LogisticRegression()` behind a `StandardScaler`. Of two classes there is one row of weights,
/// for the second, as there (two rows of a softmax would halve the penalty).
#[derive(Debug, Clone, PartialEq)]
pub struct Logistic {
    standard: Standard,
    classes: usize,
    /// Row-major outputs x dims; one output for two classes, else one a class.
    weights: Vec<f64>,
    intercepts: Vec<f64>,
}

impl Logistic {
    /// The files: of the z-scores (float64, dims), of the weights (float64, outputs x dims) and intercepts (outputs).
    const MEAN: &str = "mean";
    const SCALE: &str = "scale";
    const WEIGHTS: &str = "coefficients";
    const INTERCEPTS: &str = "intercepts";

    /// Fits at least two classes. The note says where it has not converged.
    pub(super) fn fit(points: &Points, classes: &Classes, tick: Tick<'_>) -> (Logistic, Option<String>) {
        let standard = Standard::of(points);
        let outputs = outputs(classes.len());
        let size = outputs * points.dims();
        let mut lanes = lanes(points, outputs);
        let mut evaluations = 0;
        let mut objective = |parameters: &[f64], gradient: &mut [f64]| {
            evaluations += 1;
            tick(1.0 - 1.0 / (1.0 + f64::from(evaluations) / 30.0));
            lanes.par_iter_mut().for_each(|lane| {
                widest(
                    #[inline(always)]
                    || lane.run(points, &classes.codes, &standard, parameters),
                );
            });
            total(&lanes, parameters, size, points.len() as f64, gradient)
        };
        let limits = Limits { iterations: ITERATIONS, gradient: TOLERANCE };
        let minimum = minimise(vec![0.0; size + outputs], limits, &mut objective);
        let note = (minimum.gradient > TOLERANCE).then(|| {
            format!(
                "logreg: not converged after {} iterations (gradient {:.1e}, {TOLERANCE:.0e} is aimed at)",
                minimum.iterations, minimum.gradient
            )
        });
        let mut weights = minimum.point;
        let intercepts = weights.split_off(size);
        (Logistic { standard, classes: classes.len(), weights, intercepts }, note)
    }

    pub(super) fn predict(&self, points: &Points) -> Prediction {
        let (dims, outputs) = (points.dims(), self.intercepts.len());
        let mut probabilities = vec![0.0; points.len() * self.classes];
        probabilities.par_chunks_mut(BLOCK * self.classes).enumerate().for_each(|(block, rows)| {
            let cells = block * BLOCK..block * BLOCK + rows.len() / self.classes;
            let mut scores = vec![0.0; cells.len() * dims];
            let mut logits = vec![0.0; cells.len() * outputs];
            self.standard.rows(points, cells.clone(), &mut scores);
            multiply(&scores, &self.weights, &self.intercepts, cells.len(), dims, &mut logits);
            for (row, logits) in rows.chunks_exact_mut(self.classes).zip(logits.chunks_exact(outputs)) {
                match (row, logits) {
                    ([first, second], [logit]) => {
                        *second = sigmoid(*logit).0;
                        *first = sigmoid(-*logit).0;
                    }
                    (row, logits) => {
                        row.copy_from_slice(logits);
                        softmax(row);
                    }
                }
            }
        });
        Prediction::new(self.classes, probabilities)
    }

    pub(super) fn arrays(&self) -> Vec<(&'static str, Array)> {
        let (dims, outputs) = (self.standard.mean.len(), self.intercepts.len());
        let array =
            |shape: Vec<usize>, values: &[f64]| Array { shape, values: Values::Float64(values.to_vec()) };
        vec![
            (Self::MEAN, array(vec![dims], &self.standard.mean)),
            (Self::SCALE, array(vec![dims], &self.standard.scale)),
            (Self::WEIGHTS, array(vec![outputs, dims], &self.weights)),
            (Self::INTERCEPTS, array(vec![outputs], &self.intercepts)),
        ]
    }

    pub(super) fn from_arrays(arrays: &mut Arrays, classes: usize, dims: usize) -> Result<Logistic> {
        let outputs = outputs(classes);
        let standard = arrays.standard(Self::MEAN, Self::SCALE, dims)?;
        let weights = arrays.float64(Self::WEIGHTS, &[outputs, dims])?;
        let intercepts = arrays.float64(Self::INTERCEPTS, &[outputs])?;
        Ok(Logistic { standard, classes, weights, intercepts })
    }
}

fn outputs(classes: usize) -> usize {
    if classes == 2 { 1 } else { classes }
}

/// `logits = scores · weightsᵀ + intercepts`, all row-major: cells x dims, outputs x dims, cells x outputs.
fn multiply(
    scores: &[f64],
    weights: &[f64],
    intercepts: &[f64],
    cells: usize,
    dims: usize,
    logits: &mut [f64],
) {
    let outputs = intercepts.len();
    for row in logits.chunks_exact_mut(outputs) {
        row.copy_from_slice(intercepts);
    }
    let weights = MatRef::from_column_major_slice(weights, dims, outputs).transpose();
    let scores = MatRef::from_column_major_slice(scores, dims, cells);
    let target = MatMut::from_column_major_slice_mut(logits, outputs, cells);
    matmul(target, Accum::Add, weights, scores, 1.0, Par::Seq);
}

/// Consecutive cells with the loss and the gradient that they add.
struct Lane {
    cells: Range<usize>,
    loss: f64,
    /// Row-major outputs x dims, then the intercepts.
    gradient: Vec<f64>,
    scores: Vec<f64>,
    /// Outputs x cells: the cells of an output lie together.
    logits: Vec<f64>,
    /// The logarithms of the sums of exponentials of a block's cells, and twice as much to compute with.
    log_sums: Vec<f64>,
}

fn lanes(points: &Points, outputs: usize) -> Vec<Lane> {
    let length = points.len().div_ceil(LANES).max(BLOCK);
    (0..points.len())
        .step_by(length)
        .map(|first| Lane {
            cells: first..(first + length).min(points.len()),
            loss: 0.0,
            gradient: vec![0.0; outputs * (points.dims() + 1)],
            scores: vec![0.0; BLOCK * points.dims()],
            logits: vec![0.0; BLOCK * outputs],
            log_sums: vec![0.0; BLOCK * 3],
        })
        .collect()
}

impl Lane {
    #[inline(always)]
    fn run(&mut self, points: &Points, codes: &[u32], standard: &Standard, parameters: &[f64]) {
        let (dims, outputs) = (points.dims(), self.logits.len() / BLOCK);
        let (weights, intercepts) = parameters.split_at(outputs * dims);
        let weights = MatRef::from_column_major_slice(weights, dims, outputs);
        self.loss = 0.0;
        self.gradient.fill(0.0);
        for first in self.cells.clone().step_by(BLOCK) {
            let cells = first..(first + BLOCK).min(self.cells.end);
            let count = cells.len();
            let logits = &mut self.logits[..count * outputs];
            standard.rows(points, cells.clone(), &mut self.scores[..count * dims]);
            let scores = MatRef::from_column_major_slice(&self.scores[..count * dims], dims, count);
            for (column, intercept) in logits.chunks_exact_mut(count).zip(intercepts) {
                column.fill(*intercept);
            }
            let target = MatMut::from_column_major_slice_mut(&mut *logits, count, outputs);
            matmul(target, Accum::Add, scores.transpose(), weights, 1.0, Par::Seq);
            self.loss += residuals(logits, &codes[cells], &mut self.log_sums);
            let (by_weight, by_intercept) = self.gradient.split_at_mut(outputs * dims);
            for (sum, column) in by_intercept.iter_mut().zip(logits.chunks_exact(count)) {
                *sum += total_of(column);
            }
            let residuals = MatRef::from_column_major_slice(&*logits, count, outputs);
            let target = MatMut::from_column_major_slice_mut(by_weight, dims, outputs);
            matmul(target, Accum::Add, scores, residuals, 1.0, Par::Seq);
        }
    }
}

/// Turns the logits of cells into what their loss changes with them; returns the loss. `scratch` is three times as long as
/// there are cells.
#[inline(always)]
fn residuals(logits: &mut [f64], codes: &[u32], scratch: &mut [f64]) -> f64 {
    let cells = codes.len();
    let mut loss = 0.0;
    if logits.len() == cells {
        for (logit, &code) in logits.iter_mut().zip(codes) {
            let truth = f64::from(code);
            let (probability, log) = sigmoid(*logit);
            loss += log - truth * *logit;
            *logit = probability - truth;
        }
        return loss;
    }
    for (cell, &code) in codes.iter().enumerate() {
        loss -= logits[code as usize * cells + cell];
    }
    let (log_sums, scratch) = scratch.split_at_mut(cells);
    softmax_columns(logits, log_sums, scratch);
    for (cell, &code) in codes.iter().enumerate() {
        logits[code as usize * cells + cell] -= 1.0;
    }
    loss + total_of(log_sums)
}

/// The sum of values, in eight strands that are then added in order: as wide as vectors are, the same on all of them.
#[inline(always)]
fn total_of(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut strands = [0.0; 8];
    for chunk in chunks {
        strands.iter_mut().zip(chunk).for_each(|(strand, value)| *strand += value);
    }
    strands.iter().chain(rest).sum()
}

/// Adds the lanes up in their order, and the penalty; returns the value of the objective.
fn total(lanes: &[Lane], parameters: &[f64], weights: usize, cells: f64, gradient: &mut [f64]) -> f64 {
    let penalty = 1.0 / (C * cells);
    gradient.fill(0.0);
    for lane in lanes {
        gradient.iter_mut().zip(&lane.gradient).for_each(|(sum, part)| *sum += part);
    }
    gradient.iter_mut().for_each(|sum| *sum /= cells);
    for (entry, weight) in gradient.iter_mut().zip(&parameters[..weights]) {
        *entry += penalty * weight;
    }
    let squares: f64 = parameters[..weights].iter().map(|weight| weight * weight).sum();
    lanes.iter().map(|lane| lane.loss).sum::<f64>() / cells + 0.5 * penalty * squares
}
