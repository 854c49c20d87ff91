//! A network of one hidden layer, its gradient and its optimiser, in float32.
//!
//! The hidden units are cut into tiles, each of which owns all weights from and to its units. A batch is two parallel
//! steps over tiles with one small sum between them, so the result does not depend on the number of threads.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::kernel::tiles::widest;

/// Hidden units of a tile.
const TILE: usize = 128;

/// AdamW: Loshchilov & Hutter (2019), decay apart from the gradient. Biases do not decay.
pub(super) const LEARNING_RATE: f32 = 1e-3;
pub(super) const WEIGHT_DECAY: f32 = 1e-4;
const MOMENTUM: f32 = 0.9;
const SQUARES: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// Numbers that are learned, with the moments of their gradient.
#[derive(Debug, Clone)]
struct Learned {
    values: Vec<f32>,
    gradient: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
    decay: f32,
}

impl Learned {
    fn new(values: Vec<f32>, decay: f32) -> Learned {
        let zeros = vec![0.0; values.len()];
        Learned { gradient: zeros.clone(), first: zeros.clone(), second: zeros, values, decay }
    }

    /// One step down the gradient.
    #[inline(always)]
    fn update(&mut self, pace: &Pace) {
        let moments = self.first.iter_mut().zip(self.second.iter_mut());
        for ((value, &slope), (first, second)) in self.values.iter_mut().zip(&self.gradient).zip(moments) {
            *first = MOMENTUM * *first + (1.0 - MOMENTUM) * slope;
            *second = SQUARES * *second + (1.0 - SQUARES) * slope * slope;
            let step = *first * pace.first / ((*second * pace.second).sqrt() + EPSILON);
            *value -= LEARNING_RATE * (step + self.decay * *value);
        }
    }
}

/// What makes up for moments that began at zero.
#[derive(Debug, Clone, Copy)]
struct Pace {
    first: f32,
    second: f32,
}

/// Some hidden units.
#[derive(Debug, Clone)]
struct Tile {
    units: usize,
    /// Row-major units x inputs.
    incoming: Learned,
    biases: Learned,
    /// Row-major units x classes.
    outgoing: Learned,
    /// Row-major cells x units, of the present batch.
    activity: Vec<f32>,
    slopes: Vec<f32>,
    /// Row-major cells x classes: this tile's part of the logits.
    logits: Vec<f32>,
}

/// The weights of a network: hidden x inputs, hidden, hidden x classes, classes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weights {
    pub inputs: usize,
    pub classes: usize,
    pub hidden_weights: Vec<f32>,
    pub hidden_biases: Vec<f32>,
    pub output_weights: Vec<f32>,
    pub output_biases: Vec<f32>,
}

/// A network that learns.
pub(super) struct Network {
    inputs: usize,
    classes: usize,
    tiles: Vec<Tile>,
    output_biases: Learned,
    steps: i32,
}

impl Network {
    /// Weights drawn uniformly from ±sqrt(6 / (inputs + outputs)) of each layer (Glorot & Bengio 2010), biases zero.
    pub fn new(inputs: usize, hidden: usize, classes: usize, random: &mut fastrand::Rng) -> Network {
        let mut draw = |count: usize, fan: usize| -> Vec<f32> {
            let bound = (6.0 / fan as f32).sqrt();
            (0..count).map(|_| (2.0 * random.f32() - 1.0) * bound).collect()
        };
        let tiles = (0..hidden)
            .step_by(TILE)
            .map(|first| {
                let units = TILE.min(hidden - first);
                Tile {
                    units,
                    incoming: Learned::new(draw(units * inputs, inputs + hidden), WEIGHT_DECAY),
                    biases: Learned::new(vec![0.0; units], 0.0),
                    outgoing: Learned::new(draw(units * classes, hidden + classes), WEIGHT_DECAY),
                    activity: Vec::new(),
                    slopes: Vec::new(),
                    logits: Vec::new(),
                }
            })
            .collect();
        Network { inputs, classes, tiles, output_biases: Learned::new(vec![0.0; classes], 0.0), steps: 0 }
    }

    pub fn weights(&self) -> Weights {
        let all = |part: fn(&Tile) -> &Learned| -> Vec<f32> {
            self.tiles.iter().flat_map(|tile| part(tile).values.iter().copied()).collect()
        };
        Weights {
            inputs: self.inputs,
            classes: self.classes,
            hidden_weights: all(|tile| &tile.incoming),
            hidden_biases: all(|tile| &tile.biases),
            output_weights: all(|tile| &tile.outgoing),
            output_biases: self.output_biases.values.clone(),
        }
    }

    /// One step of the optimiser on a batch: row-major cells x inputs, and the class of each cell.
    pub fn learn(&mut self, batch: &[f32], codes: &[u32]) {
        let (inputs, classes, cells) = (self.inputs, self.classes, codes.len());
        self.tiles.par_iter_mut().for_each(|tile| {
            widest(
                #[inline(always)]
                || tile.forward(batch, inputs, classes, cells),
            );
        });
        let mut slopes = self.logits(cells);
        for (row, &code) in slopes.chunks_exact_mut(classes).zip(codes) {
            softmax(row);
            row[code as usize] -= 1.0;
            row.iter_mut().for_each(|slope| *slope /= cells as f32);
        }
        self.steps = self.steps.saturating_add(1);
        let pace = Pace {
            first: 1.0 / (1.0 - MOMENTUM.powi(self.steps)),
            second: 1.0 / (1.0 - SQUARES.powi(self.steps)),
        };
        self.output_biases.gradient.fill(0.0);
        for row in slopes.chunks_exact(classes) {
            self.output_biases.gradient.iter_mut().zip(row).for_each(|(sum, slope)| *sum += slope);
        }
        self.output_biases.update(&pace);
        self.tiles.par_iter_mut().for_each(|tile| {
            widest(
                #[inline(always)]
                || tile.backward(batch, &slopes, inputs, classes, cells, &pace),
            );
        });
    }

    /// The sum of the tiles' logits in their order.
    fn logits(&self, cells: usize) -> Vec<f32> {
        let mut logits = self.output_biases.values.repeat(cells);
        for tile in &self.tiles {
            logits.iter_mut().zip(&tile.logits).for_each(|(sum, part)| *sum += part);
        }
        logits
    }
}

impl Tile {
    #[inline(always)]
    fn forward(&mut self, batch: &[f32], inputs: usize, classes: usize, cells: usize) {
        self.activity.resize(cells * self.units, 0.0);
        self.logits.resize(cells * classes, 0.0);
        hidden(&self.incoming.values, &self.biases.values, batch, inputs, &mut self.activity);
        output(&self.outgoing.values, &self.activity, self.units, Accum::Replace, &mut self.logits, classes);
    }

    #[inline(always)]
    fn backward(
        &mut self,
        batch: &[f32],
        slopes: &[f32],
        inputs: usize,
        classes: usize,
        cells: usize,
        pace: &Pace,
    ) {
        let units = self.units;
        self.slopes.resize(cells * units, 0.0);
        let errors = MatRef::from_column_major_slice(slopes, classes, cells);
        let outgoing = MatRef::from_column_major_slice(&self.outgoing.values, classes, units);
        let target = MatMut::from_column_major_slice_mut(&mut self.slopes, units, cells);
        matmul(target, Accum::Replace, outgoing.transpose(), errors, 1.0, Par::Seq);
        for (slope, &activity) in self.slopes.iter_mut().zip(&self.activity) {
            *slope = if activity > 0.0 { *slope } else { 0.0 };
        }
        self.biases.gradient.fill(0.0);
        for row in self.slopes.chunks_exact(units) {
            self.biases.gradient.iter_mut().zip(row).for_each(|(sum, slope)| *sum += slope);
        }
        let activity = MatRef::from_column_major_slice(&self.activity, units, cells);
        let target = MatMut::from_column_major_slice_mut(&mut self.outgoing.gradient, classes, units);
        matmul(target, Accum::Replace, errors, activity.transpose(), 1.0, Par::Seq);
        let (batch, slopes) = (
            MatRef::from_column_major_slice(batch, inputs, cells),
            MatRef::from_column_major_slice(&self.slopes, units, cells),
        );
        let target = MatMut::from_column_major_slice_mut(&mut self.incoming.gradient, inputs, units);
        matmul(target, Accum::Replace, batch, slopes.transpose(), 1.0, Par::Seq);
        self.incoming.update(pace);
        self.biases.update(pace);
        self.outgoing.update(pace);
    }
}

impl Weights {
    pub fn hidden(&self) -> usize {
        self.hidden_biases.len()
    }

    /// Probabilities of cells in row-major cells x inputs, as row-major cells x classes.
    pub fn probabilities(&self, batch: &[f32]) -> Vec<f32> {
        let cells = batch.len() / self.inputs;
        let mut activity = vec![0.0; cells * self.hidden()];
        let mut logits = self.output_biases.repeat(cells);
        hidden(&self.hidden_weights, &self.hidden_biases, batch, self.inputs, &mut activity);
        output(&self.output_weights, &activity, self.hidden(), Accum::Add, &mut logits, self.classes);
        logits.chunks_exact_mut(self.classes).for_each(softmax);
        logits
    }
}

/// Activity of hidden units, row-major cells x units: what is positive of `batch · weightsᵀ + biases`.
#[inline(always)]
fn hidden(weights: &[f32], biases: &[f32], batch: &[f32], inputs: usize, activity: &mut [f32]) {
    let (units, cells) = (biases.len(), batch.len() / inputs);
    let weights = MatRef::from_column_major_slice(weights, inputs, units).transpose();
    let batch = MatRef::from_column_major_slice(batch, inputs, cells);
    let target = MatMut::from_column_major_slice_mut(&mut *activity, units, cells);
    matmul(target, Accum::Replace, weights, batch, 1.0, Par::Seq);
    for row in activity.chunks_exact_mut(units) {
        row.iter_mut().zip(biases).for_each(|(value, bias)| *value = (*value + bias).max(0.0));
    }
}

/// What hidden units add to the logits, row-major cells x classes.
#[inline(always)]
fn output(weights: &[f32], activity: &[f32], units: usize, add: Accum, logits: &mut [f32], classes: usize) {
    let cells = activity.len() / units;
    let weights = MatRef::from_column_major_slice(weights, classes, units);
    let activity = MatRef::from_column_major_slice(activity, units, cells);
    let target = MatMut::from_column_major_slice_mut(logits, classes, cells);
    matmul(target, add, weights, activity, 1.0, Par::Seq);
}

fn softmax(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|score| *score = (*score - most).exp());
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|value| *value /= sum);
}
