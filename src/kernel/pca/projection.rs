//! Scores of one cell at a time.

use super::model::Model;
use super::scaling::Scaling;

/// A model laid out for sparse rows: the scores of a cell without counts, and what each count changes about them.
pub(super) struct Projection {
    scaling: Scaling,
    /// Row-major genes x components.
    loadings: Vec<f64>,
    /// Scores of a row of zeros.
    empty: Vec<f64>,
}

impl Projection {
    pub fn new(model: &Model) -> Self {
        let scaling = Scaling::from_parts(
            model.columns,
            model.genes.clone(),
            model.mean.clone(),
            model.sd.clone(),
            model.target_sum,
            model.max_value,
        );
        let (genes, width) = (model.genes.len(), model.n_comps());
        let mut loadings = vec![0.0; genes * width];
        let mut empty = vec![0.0; width];
        for (component, weights) in model.components.chunks_exact(genes).enumerate() {
            for (slot, &weight) in weights.iter().enumerate() {
                loadings[slot * width + component] = weight;
                empty[component] += weight * (scaling.zero[slot] - model.centre[slot]);
            }
        }
        Projection { scaling, loadings, empty }
    }

    /// Writes the scores of a row of counts; `sums` is scratch space of the same length.
    pub fn place(&self, row: (&[u32], &[f64]), sums: &mut [f64], scores: &mut [f32]) {
        let width = sums.len();
        sums.copy_from_slice(&self.empty);
        self.scaling.visit_row(row, |slot, value| {
            let difference = value - self.scaling.zero[slot];
            let loadings = &self.loadings[slot * width..][..width];
            sums.iter_mut().zip(loadings).for_each(|(sum, loading)| *sum += difference * loading);
        });
        scores.iter_mut().zip(sums).for_each(|(score, sum)| *score = *sum as f32);
    }
}
