//! A fitted classifier of any kind, and the arrays it is kept in.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::knn::Knn;
use super::logistic::Logistic;
use super::npy::{Array, Values};
use super::perceptron::Perceptron;
use super::prototype::Prototype;
use super::standard::Standard;
use super::{Kind, Prediction, Settings, logistic, prototype};
use crate::error::{Error, Result};
use crate::kernel::neighbours::Tick;
use crate::kernel::points::{Classes, Points};

/// A fitted classifier.
#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    Prototype(Prototype),
    Knn(Knn),
    Logistic(Logistic),
    Perceptron(Perceptron),
}

/// A fit with what there is to say about it.
#[derive(Debug, Clone)]
pub struct Fit {
    pub model: Model,
    pub notes: Vec<String>,
}

impl Model {
    /// Fits a classifier to labelled cells: `classes` has a class for every cell of `points`.
    ///
    /// # Errors
    /// Input: no cell; one class, for logreg and mlp; no class that is large enough to hold cells out, for mlp.
    pub fn fit(points: &Points, classes: &Classes, settings: Settings, tick: Tick<'_>) -> Result<Fit> {
        let kind = settings.classifier;
        if points.is_empty() {
            return Err(Error::input(format_args!("{kind} has no labelled cell to learn from")));
        }
        if let ([only], Kind::Logreg | Kind::Mlp) = (classes.names.as_slice(), kind) {
            return Err(Error::input(format_args!(
                "{kind} needs at least 2 classes, the reference has only {only:?}"
            ))
            .hint("use a reference with more labels, or `--classifier prototype`"));
        }
        let (model, notes) = match kind {
            Kind::Prototype => (Model::Prototype(Prototype::fit(points, classes)), Vec::new()),
            Kind::Knn => {
                let (model, notes) = Knn::fit(points, classes, settings.knn_k);
                (Model::Knn(model), notes)
            }
            Kind::Logreg => {
                let (model, note) = Logistic::fit(points, classes, tick);
                (Model::Logistic(model), note.into_iter().collect())
            }
            Kind::Mlp => {
                let (model, notes) = Perceptron::fit(points, classes, settings.seed, tick)?;
                (Model::Perceptron(model), notes)
            }
        };
        tick(1.0);
        Ok(Fit { model, notes })
    }

    /// The probabilities of every class for every cell, and what there is to say about them.
    ///
    /// `points` has as many dimensions as the reference had.
    pub fn predict(&self, points: &Points, tick: Tick<'_>) -> (Prediction, Option<String>) {
        match self {
            Model::Prototype(model) => (model.predict(points), None),
            Model::Knn(model) => model.predict(points, tick),
            Model::Logistic(model) => (model.predict(points), None),
            Model::Perceptron(model) => (model.predict(points), None),
        }
    }

    /// What a user may want to know of how it was fitted, by name.
    pub fn hyperparameters(&self, settings: Settings) -> Value {
        match self {
            Model::Prototype(_) => json!({ "metric": "cosine", "temperature": prototype::TEMPERATURE }),
            Model::Knn(model) => json!({ "metric": "cosine", "weights": "uniform", "k": model.k() }),
            Model::Logistic(_) => json!({
                "C": logistic::C,
                "iterations": logistic::ITERATIONS,
                "tolerance": logistic::TOLERANCE,
            }),
            Model::Perceptron(_) => Perceptron::hyperparameters(settings.seed),
        }
    }

    /// What the model consists of, by name.
    pub fn arrays(&self) -> Vec<(&'static str, Array)> {
        match self {
            Model::Prototype(model) => model.arrays(),
            Model::Knn(model) => model.arrays(),
            Model::Logistic(model) => model.arrays(),
            Model::Perceptron(model) => model.arrays(),
        }
    }

    /// The names of the arrays of a kind.
    pub fn array_names(kind: Kind) -> &'static [&'static str] {
        match kind {
            Kind::Prototype => &["prototypes"],
            Kind::Knn => &["reference", "labels"],
            Kind::Logreg => &["mean", "scale", "coefficients", "intercepts"],
            Kind::Mlp => {
                &["mean", "scale", "hidden_weights", "hidden_biases", "output_weights", "output_biases"]
            }
        }
    }

    /// The model that consists of `arrays`.
    ///
    /// # Errors
    /// Input: an array is absent, has another shape or type, or holds a value that is not finite.
    pub fn from_arrays(mut arrays: Arrays, settings: Settings, classes: usize, dims: usize) -> Result<Model> {
        let arrays = &mut arrays;
        Ok(match settings.classifier {
            Kind::Prototype => Model::Prototype(Prototype::from_arrays(arrays, classes, dims)?),
            Kind::Knn => Model::Knn(Knn::from_arrays(arrays, classes, dims, settings.knn_k)?),
            Kind::Logreg => Model::Logistic(Logistic::from_arrays(arrays, classes, dims)?),
            Kind::Mlp => Model::Perceptron(Perceptron::from_arrays(arrays, classes, dims)?),
        })
    }
}

/// Arrays by name, to be taken out one by one.
#[derive(Debug, Default)]
pub struct Arrays(BTreeMap<String, Array>);

impl Arrays {
    pub fn add(&mut self, name: &str, array: Array) {
        self.0.insert(name.to_owned(), array);
    }

    /// The length of an array's first dimension.
    pub(super) fn length(&self, name: &str) -> Result<usize> {
        self.0.get(name).and_then(|array| array.shape.first().copied()).ok_or_else(|| absent(name))
    }

    pub(super) fn float32(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        match self.take(name, shape)? {
            Values::Float32(values) if values.iter().all(|value| value.is_finite()) => Ok(values),
            Values::Float32(_) => Err(not_finite(name)),
            _ => Err(another_type(name, "float32")),
        }
    }

    pub(super) fn float64(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f64>> {
        match self.take(name, shape)? {
            Values::Float64(values) if values.iter().all(|value| value.is_finite()) => Ok(values),
            Values::Float64(_) => Err(not_finite(name)),
            _ => Err(another_type(name, "float64")),
        }
    }

    pub(super) fn unsigned(&mut self, name: &str, shape: &[usize]) -> Result<Vec<u32>> {
        match self.take(name, shape)? {
            Values::Unsigned(values) => Ok(values),
            _ => Err(another_type(name, "uint32")),
        }
    }

    pub(super) fn standard(&mut self, mean: &str, scale: &str, dims: usize) -> Result<Standard> {
        let standard = Standard { mean: self.float64(mean, &[dims])?, scale: self.float64(scale, &[dims])? };
        match standard.scale.iter().all(|&scale| scale > 0.0) {
            true => Ok(standard),
            false => Err(Error::input(format_args!("{scale}.npy holds a deviation that is not above 0"))),
        }
    }

    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Values> {
        let array = self.0.remove(name).ok_or_else(|| absent(name))?;
        if array.shape != shape {
            let found = array.shape;
            return Err(Error::input(format_args!("{name}.npy has the shape {found:?}, not {shape:?}")));
        }
        Ok(array.values)
    }
}

fn absent(name: &str) -> Error {
    Error::input(format_args!("{name}.npy is missing"))
}

fn another_type(name: &str, wanted: &str) -> Error {
    Error::input(format_args!("{name}.npy is not {wanted}"))
}

fn not_finite(name: &str) -> Error {
    Error::input(format_args!("{name}.npy holds a value that is not finite"))
}
