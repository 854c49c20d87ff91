//! The nearest class mean by cosine.

use super::npy::{Array, Values};
use super::softmax::softmax;
use super::{Arrays, NORM_FLOOR, Prediction, norm};
use crate::error::Result;
use crate::kernel::points::{Classes, Points};

/// What similarities are divided by before they become probabilities.
pub const TEMPERATURE: f64 = 0.1;

/// Class means of unit rows, themselves brought to unit length.
///
/// A cell's score for a class is the cosine to its mean, from -1 to 1, higher is nearer; probabilities are the softmax
/// of scores over [`TEMPERATURE`]. A row of zeros has the cosine 0 to all, so all classes are equally probable.
#[derive(Debug, Clone, PartialEq)]
pub struct Prototype {
    dims: usize,
    /// Row-major classes x dims.
    means: Vec<f64>,
}

impl Prototype {
    /// The file of the class means (float64, classes x dims).
    const MEANS: &str = "prototypes";

    pub(super) fn fit(points: &Points, classes: &Classes) -> Prototype {
        let dims = points.dims();
        let mut means = vec![0.0; classes.len() * dims];
        for (cell, &code) in classes.codes.iter().enumerate() {
            let mean = &mut means[code as usize * dims..][..dims];
            let length = norm(points.row(cell).iter().map(|&value| f64::from(value)));
            mean.iter_mut().zip(points.row(cell)).for_each(|(sum, &value)| *sum += f64::from(value) / length);
        }
        // The mean differs from the sum by a factor, which the length takes away; the floor is the mean's.
        for (mean, size) in means.chunks_exact_mut(dims).zip(classes.sizes()) {
            let length = norm(mean.iter().copied().map(|sum| sum / size as f64)).max(NORM_FLOOR);
            mean.iter_mut().for_each(|sum| *sum = *sum / size as f64 / length);
        }
        Prototype { dims, means }
    }

    pub(super) fn predict(&self, points: &Points) -> Prediction {
        let classes = self.means.len() / self.dims;
        let mut probabilities = vec![0.0; points.len() * classes];
        for (cell, scores) in probabilities.chunks_exact_mut(classes).enumerate() {
            let row = points.row(cell);
            let length = norm(row.iter().map(|&value| f64::from(value)));
            for (score, mean) in scores.iter_mut().zip(self.means.chunks_exact(self.dims)) {
                let product: f64 = row.iter().zip(mean).map(|(&value, mean)| f64::from(value) * mean).sum();
                *score = product / length / TEMPERATURE;
            }
            softmax(scores);
        }
        Prediction::new(classes, probabilities)
    }

    pub(super) fn arrays(&self) -> Vec<(&'static str, Array)> {
        let shape = vec![self.means.len() / self.dims, self.dims];
        vec![(Self::MEANS, Array { shape, values: Values::Float64(self.means.clone()) })]
    }

    pub(super) fn from_arrays(arrays: &mut Arrays, classes: usize, dims: usize) -> Result<Prototype> {
        Ok(Prototype { dims, means: arrays.float64(Self::MEANS, &[classes, dims])? })
    }
}
