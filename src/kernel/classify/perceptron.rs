//! One hidden layer, trained with early stopping.

use rayon::prelude::*;
use serde_json::{Value, json};

use super::network::{LEARNING_RATE, Network, WEIGHT_DECAY, Weights};
use super::npy::{Array, Values};
use super::standard::Standard;
use super::{Arrays, Prediction};
use crate::error::{Error, Result};
use crate::kernel::neighbours::Tick;
use crate::kernel::points::{Classes, Points};

/// Cells of one step of the optimiser.
pub const BATCH: usize = 64;

/// Passes over the training cells, at most.
pub const EPOCHS: usize = 200;

/// Epochs without a lower loss on the held out cells, after which training stops.
pub const PATIENCE: usize = 10;

/// One of so many cells of each class is held out.
pub const HELD_OUT: usize = 5;

/// Cells whose probabilities are computed at once.
const BLOCK: usize = 256;

/// The least probability in a logarithm.
const FLOOR: f32 = 1e-12;

/// A network of one hidden layer as wide as the embedding (ReLU), a softmax on top, on z-scored dimensions.
///
/// Cross entropy is minimised with AdamW (learning rate 1e-3, weight decay 1e-4) in batches of [`BATCH`] cells, for
/// [`EPOCHS`] epochs or until [`PATIENCE`] epochs have not lowered the loss on the held out cells: a fifth of each class,
/// drawn with the seed; a class of fewer than five cells is in the training whole. The weights of the best epoch are
/// kept. No dropout: early stopping and decay regularise enough for frozen embeddings. The counterpart in scikit-learn
/// 1.9.1 is `MLPClassifier(hidden_layer_sizes=(dims,), early_stopping=True)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Perceptron {
    standard: Standard,
    weights: Weights,
}

impl Perceptron {
    /// The files: z-scores (float64, dims), weights (float32) of hidden x dims, hidden, hidden x classes and classes.
    const MEAN: &str = "mean";
    const SCALE: &str = "scale";
    const HIDDEN_WEIGHTS: &str = "hidden_weights";
    const HIDDEN_BIASES: &str = "hidden_biases";
    const OUTPUT_WEIGHTS: &str = "output_weights";
    const OUTPUT_BIASES: &str = "output_biases";

    /// # Errors
    /// Input: no class has five cells, so none can be held out.
    pub(super) fn fit(
        points: &Points,
        classes: &Classes,
        seed: u64,
        tick: Tick<'_>,
    ) -> Result<(Perceptron, Vec<String>)> {
        let mut random = fastrand::Rng::with_seed(seed);
        let (training, held_out) = split(classes, &mut random);
        if held_out.is_empty() {
            return Err(Error::input(format_args!(
                "mlp holds out a fifth of each class to know when to stop; no class of the reference has {HELD_OUT} cells"
            ))
            .hint("use `--classifier prototype`, `knn` or `logreg`"));
        }
        let small = classes.sizes().iter().filter(|&&size| size < HELD_OUT).count();
        let mut notes = Vec::new();
        if small > 0 {
            notes.push(format!(
                "mlp: {small} of {} classes have fewer than {HELD_OUT} cells; none of theirs is held out",
                classes.len()
            ));
        }
        let standard = Standard::of(points);
        let data = Data { points, codes: &classes.codes, standard: &standard };
        let dims = points.dims();
        let mut network = Network::new(dims, dims, classes.len(), &mut random);
        // Within the pool from the start: a batch is too short to be handed over twice.
        let (weights, stopped) =
            rayon::scope(|_| train(&mut network, &data, training, &held_out, &mut random, tick));
        if !stopped {
            notes.push(format!("mlp: the loss on held out cells was still falling after {EPOCHS} epochs"));
        }
        Ok((Perceptron { standard, weights }, notes))
    }

    pub(super) fn predict(&self, points: &Points) -> Prediction {
        let codes = &[];
        let data = Data { points, codes, standard: &self.standard };
        let cells: Vec<usize> = (0..points.len()).collect();
        let blocks: Vec<Vec<f32>> =
            cells.par_chunks(BLOCK).map(|cells| self.weights.probabilities(&data.batch(cells))).collect();
        let probabilities = blocks.into_iter().flatten().map(f64::from).collect();
        Prediction::new(self.weights.classes, probabilities)
    }

    pub(super) fn hyperparameters(seed: u64) -> Value {
        json!({
            "hidden": "dim",
            "optimiser": "AdamW",
            "learning_rate": f64::from(LEARNING_RATE),
            "weight_decay": f64::from(WEIGHT_DECAY),
            "batch": BATCH,
            "epochs": EPOCHS,
            "patience": PATIENCE,
            "held_out": 1.0 / HELD_OUT as f64,
            "seed": seed,
        })
    }

    pub(super) fn arrays(&self) -> Vec<(&'static str, Array)> {
        let Weights { inputs, classes, .. } = self.weights;
        let hidden = self.weights.hidden();
        let double = |values: &[f64]| Array { shape: vec![inputs], values: Values::Float64(values.to_vec()) };
        let single =
            |shape: Vec<usize>, values: &[f32]| Array { shape, values: Values::Float32(values.to_vec()) };
        vec![
            (Self::MEAN, double(&self.standard.mean)),
            (Self::SCALE, double(&self.standard.scale)),
            (Self::HIDDEN_WEIGHTS, single(vec![hidden, inputs], &self.weights.hidden_weights)),
            (Self::HIDDEN_BIASES, single(vec![hidden], &self.weights.hidden_biases)),
            (Self::OUTPUT_WEIGHTS, single(vec![hidden, classes], &self.weights.output_weights)),
            (Self::OUTPUT_BIASES, single(vec![classes], &self.weights.output_biases)),
        ]
    }

    pub(super) fn from_arrays(arrays: &mut Arrays, classes: usize, dims: usize) -> Result<Perceptron> {
        let standard = arrays.standard(Self::MEAN, Self::SCALE, dims)?;
        let hidden = arrays.length(Self::HIDDEN_BIASES)?;
        let weights = Weights {
            inputs: dims,
            classes,
            hidden_weights: arrays.float32(Self::HIDDEN_WEIGHTS, &[hidden, dims])?,
            hidden_biases: arrays.float32(Self::HIDDEN_BIASES, &[hidden])?,
            output_weights: arrays.float32(Self::OUTPUT_WEIGHTS, &[hidden, classes])?,
            output_biases: arrays.float32(Self::OUTPUT_BIASES, &[classes])?,
        };
        Ok(Perceptron { standard, weights })
    }
}

/// Cells to train on and cells to hold out: of each class one of [`HELD_OUT`], rounded down.
pub(super) fn split(classes: &Classes, random: &mut fastrand::Rng) -> (Vec<usize>, Vec<usize>) {
    let (mut training, mut held_out) = (Vec::new(), Vec::new());
    for mut cells in classes.members() {
        random.shuffle(&mut cells);
        let count = cells.len() / HELD_OUT;
        held_out.extend(cells.drain(..count));
        training.extend(cells);
    }
    training.sort_unstable();
    held_out.sort_unstable();
    (training, held_out)
}

/// Labelled cells.
struct Data<'a> {
    points: &'a Points,
    codes: &'a [u32],
    standard: &'a Standard,
}

impl Data<'_> {
    /// Standard scores of some cells, row-major.
    fn batch(&self, cells: &[usize]) -> Vec<f32> {
        let mut scores = vec![0.0; self.points.dims()];
        let mut batch = Vec::with_capacity(cells.len() * self.points.dims());
        for &cell in cells {
            self.standard.row(self.points.row(cell), &mut scores);
            batch.extend(scores.iter().map(|&score| score as f32));
        }
        batch
    }

    /// Mean cross entropy of some cells.
    fn loss(&self, weights: &Weights, cells: &[usize]) -> f64 {
        let blocks: Vec<f64> = cells
            .par_chunks(BLOCK)
            .map(|cells| {
                let probabilities = weights.probabilities(&self.batch(cells));
                let rows = probabilities.chunks_exact(weights.classes).zip(cells);
                rows.map(|(row, &cell)| -f64::from(row[self.codes[cell] as usize].max(FLOOR).ln())).sum()
            })
            .collect();
        blocks.iter().sum::<f64>() / cells.len() as f64
    }
}

/// The weights of the best epoch, and whether training stopped because it got no better.
fn train(
    network: &mut Network,
    data: &Data<'_>,
    mut training: Vec<usize>,
    held_out: &[usize],
    random: &mut fastrand::Rng,
    tick: Tick<'_>,
) -> (Weights, bool) {
    let mut best = network.weights();
    let mut least = data.loss(&best, held_out);
    let mut since = 0;
    for epoch in 0..EPOCHS {
        random.shuffle(&mut training);
        for cells in training.chunks(BATCH) {
            let codes: Vec<u32> = cells.iter().map(|&cell| data.codes[cell]).collect();
            network.learn(&data.batch(cells), &codes);
        }
        let weights = network.weights();
        let loss = data.loss(&weights, held_out);
        if loss < least {
            (best, least, since) = (weights, loss, 0);
        } else {
            since += 1;
        }
        if since == PATIENCE {
            return (best, true);
        }
        tick((epoch + 1) as f64 / EPOCHS as f64);
    }
    (best, false)
}
