//! Scores of one cell at a time.

use super::model::Model;
use super::scaling::Scaling;

/// Components whose sums are held in registers at once.
const GROUP: usize = 16;

/// A model laid out for sparse rows: the scores of a cell without counts, and what each count changes about them.
pub(super) struct Projection {
    scaling: Scaling,
    groups: Vec<Group>,
}

/// One number for each component of a group; whole cache lines.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Weights([f64; GROUP]);

/// Up to [`GROUP`] consecutive components; unused places are zero.
struct Group {
    /// Scores of a row of zeros.
    empty: Weights,
    /// Loadings of each gene.
    loadings: Vec<Weights>,
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
        let genes = model.genes.len();
        let group = |components: &[f64]| {
            let mut group = Group { empty: Weights::default(), loadings: vec![Weights::default(); genes] };
            for (place, weights) in components.chunks_exact(genes).enumerate() {
                for (slot, &weight) in weights.iter().enumerate() {
                    group.loadings[slot].0[place] = weight;
                    group.empty.0[place] += weight * (scaling.zero[slot] - model.centre[slot]);
                }
            }
            group
        };
        let groups = model.components.chunks(GROUP * genes).map(group).collect();
        Projection { scaling, groups }
    }

    /// Writes the scores of a row of counts; `differences` is scratch space.
    pub fn place(&self, row: (&[u32], &[f64]), differences: &mut Vec<(usize, f64)>, scores: &mut [f32]) {
        differences.clear();
        self.scaling.visit_row(row, |slot, value| differences.push((slot, value - self.scaling.zero[slot])));
        for (group, scores) in self.groups.iter().zip(scores.chunks_mut(GROUP)) {
            let mut sums = group.empty.0;
            for &(slot, difference) in differences.iter() {
                let Weights(loadings) = &group.loadings[slot];
                sums.iter_mut().zip(loadings).for_each(|(sum, loading)| *sum += difference * loading);
            }
            scores.iter_mut().zip(sums).for_each(|(score, sum)| *score = sum as f32);
        }
    }
}
