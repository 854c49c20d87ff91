//! Classifiers on frozen embeddings: fitted to labelled reference cells, asked about query cells.
//!
//! | classifier | idea | input | parameters of the fit |
//! |---|---|---|---|
//! | [`prototype`] | cosine to class means | rows of unit length | classes x dims |
//! | [`knn`] | votes of the nearest cells by cosine | rows of unit length | the reference itself |
//! | [`logistic`] | multinomial logistic regression | z-scored dimensions | classes x (dims + 1) |
//! | [`perceptron`] | one hidden layer | z-scored dimensions | dims x (dims + classes) |
//!
//! A fit and its predictions are the same bits for any number of threads: rows are cut into lanes that do not depend on
//! it, and what lanes sum is added in their order.

pub mod knn;
mod lbfgs;
pub mod logistic;
mod model;
mod network;
pub mod npy;
pub mod perceptron;
mod prediction;
pub mod prototype;
pub mod report;
mod softmax;
mod standard;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::points::{Classes, Points};

pub use model::{Arrays, Fit, Model};
pub use prediction::Prediction;

/// Length below which a row is taken to have this length, so that a row of zeros stays one.
const NORM_FLOOR: f64 = 1e-12;

/// A kind of classifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Prototype,
    Knn,
    Logreg,
    Mlp,
}

impl Kind {
    /// All of them, the simplest first.
    pub const ALL: [Kind; 4] = [Kind::Prototype, Kind::Knn, Kind::Logreg, Kind::Mlp];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Prototype => "prototype",
            Kind::Knn => "knn",
            Kind::Logreg => "logreg",
            Kind::Mlp => "mlp",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub classifier: Kind,
    /// Neighbours that vote, of knn.
    pub knn_k: usize,
    /// Of the first weights, the held out cells and the order of cells, of mlp.
    pub seed: u64,
}

/// Rows scaled to unit length, as float32; the length is summed in float64 and floored at 1e-12.
fn unit_rows(points: &Points) -> Points {
    let mut values = Vec::with_capacity(points.values().len());
    for cell in 0..points.len() {
        let row = points.row(cell);
        let length = norm(row.iter().map(|&value| f64::from(value)));
        values.extend(row.iter().map(|&value| (f64::from(value) / length) as f32));
    }
    Points::new(values, points.dims())
}

/// Euclidean length, floored.
fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt().max(NORM_FLOOR)
}

/// Cells of each class, by name.
pub fn cells_per_class(classes: &Classes) -> Vec<(String, usize)> {
    classes.names.iter().cloned().zip(classes.sizes()).collect()
}

#[cfg(test)]
mod tests;
