//! Embeddings with every coordinate centred and divided by its standard deviation.

use rayon::prelude::*;

use crate::kernel::points::Points;

/// A coordinate that spreads less than this is constant.
pub const LEAST_SD: f64 = 1e-8;

/// Coordinates that are worked on by one thread.
const STRIP: usize = 16;

/// How each coordinate of an embedding is standardised: by its mean and its population standard deviation.
///
/// Coordinates with a deviation of at most [`LEAST_SD`] become 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Standard {
    pub mean: Vec<f64>,
    /// One over the standard deviation, 0 for a constant coordinate.
    pub scale: Vec<f64>,
}

impl Standard {
    /// Two passes, so that a large mean does not hide a small deviation.
    pub fn of(points: &Points) -> Standard {
        let (cells, dims) = (points.len(), points.dims());
        let mut mean = vec![0.0; dims];
        let mut scale = vec![0.0; dims];
        mean.par_chunks_mut(STRIP).zip(scale.par_chunks_mut(STRIP)).enumerate().for_each(
            |(strip, (mean, scale))| {
                let first = strip * STRIP;
                let columns = first..first + mean.len();
                for cell in 0..cells {
                    let values = &points.row(cell)[columns.clone()];
                    mean.iter_mut().zip(values).for_each(|(sum, value)| *sum += f64::from(*value));
                }
                mean.iter_mut().for_each(|sum| *sum /= cells.max(1) as f64);
                for cell in 0..cells {
                    let values = &points.row(cell)[columns.clone()];
                    for ((sum, mean), value) in scale.iter_mut().zip(mean.iter()).zip(values) {
                        *sum += (f64::from(*value) - mean).powi(2);
                    }
                }
                for sum in scale {
                    let deviation = (*sum / cells.max(1) as f64).sqrt();
                    *sum = if deviation > LEAST_SD { 1.0 / deviation } else { 0.0 };
                }
            },
        );
        Standard { mean, scale }
    }

    /// A standardised coordinate.
    pub fn value(&self, dim: usize, raw: f32) -> f64 {
        (f64::from(raw) - self.mean[dim]) * self.scale[dim]
    }

    /// Coordinates that are constant.
    pub fn constant(&self) -> usize {
        self.scale.iter().filter(|&&scale| scale == 0.0).count()
    }

    /// The standardised embedding, rounded to float32.
    pub fn points(&self, raw: &Points) -> Points {
        let dims = raw.dims();
        let mut values = vec![0f32; raw.values().len()];
        values.par_chunks_mut(dims.max(1)).enumerate().for_each(|(cell, row)| {
            for (dim, (target, value)) in row.iter_mut().zip(raw.row(cell)).enumerate() {
                *target = self.value(dim, *value) as f32;
            }
        });
        Points::new(values, dims)
    }
}
