//! Fewer cells than genes: components through the cells x cells Gram matrix.
//!
//! With `Z` the centred scaled matrix, `Z Zᵀ` has the same non-zero eigenvalues as `Zᵀ Z`, and an eigenvector `u` of it
//! gives the component `Zᵀ u / σ` with `σ²` its eigenvalue. The rows that are multiplied are genes here, so the kept
//! counts (of few cells) are held in memory, gene by gene.

use rayon::prelude::*;

use super::gram::{Element, Gram};
use super::progress::Phases;
use super::scaling::Scaling;
use super::{Decomposition, Phase, eigen, trace};
use crate::error::Result;
use crate::matrix::RowBlocks;

/// Differences of scaled values from what a zero is scaled to, gene after gene.
struct GeneMajor {
    /// Start of each gene in the other two, and their end.
    starts: Vec<usize>,
    cells: Vec<u32>,
    differences: Vec<f64>,
}

impl GeneMajor {
    fn gene(&self, slot: usize) -> (&[u32], &[f64]) {
        let range = self.starts[slot]..self.starts[slot + 1];
        (&self.cells[range.clone()], &self.differences[range])
    }
}

/// Decomposes the scaled matrix like `decompose`, for fewer cells than genes.
pub(super) fn decompose(
    matrix: &dyn RowBlocks,
    scaling: &Scaling,
    count: usize,
    phases: &mut Phases,
) -> Result<Decomposition> {
    let cells = matrix.shape().0;
    let (genes, centre, gram) = phases.run(Phase::Gram, |done| {
        let genes = collect(matrix, scaling, done)?;
        let mean_difference = |slot| genes.gene(slot).1.iter().sum::<f64>() / cells as f64;
        let means: Vec<f64> = (0..scaling.genes.len()).map(mean_difference).collect();
        let mut gram = Gram::<f64>::new(cells);
        gram.extend(scaling.genes.len(), |slot, row| {
            row.fill(-means[slot]);
            let (cells, differences) = genes.gene(slot);
            for (&cell, &difference) in cells.iter().zip(differences) {
                row[cell as usize] += difference;
            }
        });
        let centre: Vec<f64> = means.iter().zip(&scaling.zero).map(|(mean, zero)| mean + zero).collect();
        Ok((genes, centre, gram.finish().0))
    })?;
    let trace = trace(&gram);
    phases.run(Phase::Eigen, |_| {
        let pairs = eigen::leading(gram, count, f64::NOISE)?;
        let freedom = (cells - 1) as f64;
        Ok(Decomposition {
            components: components(&genes, &centre, &scaling.zero, &pairs, cells),
            eigenvalues: pairs.values.iter().map(|value| value / freedom).collect(),
            total_variance: trace / freedom,
            centre,
        })
    })
}

/// Streams the matrix and turns it around.
fn collect(matrix: &dyn RowBlocks, scaling: &Scaling, done: &dyn Fn(usize)) -> Result<GeneMajor> {
    let mut rows: Vec<Vec<(u32, f64)>> = Vec::with_capacity(matrix.shape().0);
    matrix.for_each_block(&mut |block| {
        let row = |row| {
            let mut entries = Vec::new();
            scaling.visit_row(block.row(row), |slot, value| {
                entries.push((slot as u32, value - scaling.zero[slot]));
            });
            entries
        };
        rows.par_extend((0..block.rows()).into_par_iter().map(row));
        done(block.first_row + block.rows());
        Ok(())
    })?;
    let mut starts = vec![0; scaling.genes.len() + 1];
    for &(slot, _) in rows.iter().flatten() {
        starts[slot as usize + 1] += 1;
    }
    for slot in 0..scaling.genes.len() {
        starts[slot + 1] += starts[slot];
    }
    let stored = starts[scaling.genes.len()];
    let mut genes = GeneMajor { cells: vec![0; stored], differences: vec![0.0; stored], starts };
    let mut next = genes.starts.clone();
    for (cell, row) in (0u32..).zip(&rows) {
        for &(slot, difference) in row {
            let place = &mut next[slot as usize];
            genes.cells[*place] = cell;
            genes.differences[*place] = difference;
            *place += 1;
        }
    }
    Ok(genes)
}

/// Row-major components x genes from the eigenvectors over cells.
fn components(
    genes: &GeneMajor,
    centre: &[f64],
    zero: &[f64],
    pairs: &eigen::Eigenpairs,
    cells: usize,
) -> Vec<f64> {
    let slots = centre.len();
    let mut components = vec![0.0; pairs.values.len() * slots];
    let vectors = pairs.vectors.par_chunks(cells).zip(&pairs.values);
    components.par_chunks_mut(slots).zip(vectors).for_each(|(component, (vector, &value))| {
        if value == 0.0 {
            return;
        }
        let sum: f64 = vector.iter().sum();
        for (slot, entry) in component.iter_mut().enumerate() {
            let (cells, differences) = genes.gene(slot);
            let product: f64 = cells
                .iter()
                .zip(differences)
                .map(|(&cell, difference)| vector[cell as usize] * difference)
                .sum();
            *entry = (product + (zero[slot] - centre[slot]) * sum) / value.sqrt();
        }
    });
    components
}
