//! How much of an embedding's variance cell types and batches explain beside each other.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::Groups;
use super::standard::Standard;
use crate::kernel::points::Points;
use crate::kernel::score::Score;

/// Fewest labelled cells.
const LEAST_CELLS: usize = 10;

/// A sum of squares below this is none.
const LEAST_SQUARES: f64 = 1e-12;

/// Partial eta squared of both effects.
#[derive(Debug, Clone, PartialEq)]
pub struct Effects {
    pub cell_type: Score,
    pub batch: Score,
    /// Coordinates that were averaged over.
    pub dims: usize,
    /// `n_labeled=..;n_celltypes=..;n_batches=..`, and `partially_aliased_effects` where the effects overlap.
    pub status: String,
}

/// Partial eta squared of cell type and batch in the additive model `z ~ 1 + cell_type + batch` of each standardised
/// coordinate: `SS_effect / (SS_effect + SSE_full)`, SS_effect being what the effect adds to a model with only the other.
///
/// From 0 to 1; of cell types higher is better, of batches lower. The mean over coordinates that vary among labelled cells.
/// Exact also where cell types and batches are confounded: the rank of the design follows from the connected components of
/// the graph of cell types and batches. Equals least squares on the dummy design (`numpy.linalg.lstsq`, numpy 2; type II sums
/// of squares of statsmodels). NA: fewer than 10 labelled cells, an effect with one group or none left beside the other
/// effect, no cell left for the error.
pub fn partial_eta2(points: &Points, standard: &Standard, labels: &Groups, batches: &Groups) -> Effects {
    let design = Design::of(labels, batches);
    let (types, groups, components) = (design.types.len(), design.batches.len(), design.components());
    let count = design.cells.len();
    let mut status = format!("n_labeled={count};n_celltypes={types};n_batches={groups}");
    if components > 1 && types > 1 && groups > 1 {
        status.push_str(";partially_aliased_effects");
    }
    let missing = |reason: String, status: String| Effects {
        cell_type: Score::missing(reason.clone()),
        batch: Score::missing(reason),
        dims: 0,
        status,
    };
    if count < LEAST_CELLS {
        let reason = format!("partial eta squared needs {LEAST_CELLS} labelled cells, there are {count}");
        return missing(reason, status);
    }
    if count <= types + groups - components {
        return missing("as many effects as cells: no variance is left for the error".to_owned(), status);
    }
    let solver = design.solver();
    let ratios: Vec<Option<[f64; 2]>> = (0..points.dims())
        .into_par_iter()
        .map(|dim| solver.ratios(|cell| standard.value(dim, points.row(cell)[dim])))
        .collect();
    let used: Vec<[f64; 2]> = ratios.into_iter().flatten().collect();
    let mean = |effect: usize| used.iter().map(|ratios| ratios[effect]).sum::<f64>() / used.len() as f64;
    let score = |effect: usize, groups: usize, name: &str| match (groups, groups - components.min(groups)) {
        (0 | 1, _) => Score::missing(format!("there is only one {name}")),
        (_, 0) => Score::missing(format!("{name} cannot be told apart from the other effect")),
        _ if used.is_empty() => Score::missing("no coordinate varies among labelled cells"),
        _ => Score::number(mean(effect)),
    };
    Effects {
        cell_type: score(0, types, "cell type"),
        batch: score(1, groups, "batch"),
        dims: used.len(),
        status,
    }
}

/// The labelled cells with their cell type and batch, numbered without gaps.
struct Design {
    cells: Vec<usize>,
    type_of: Vec<usize>,
    batch_of: Vec<usize>,
    /// Cells of each.
    types: Vec<f64>,
    batches: Vec<f64>,
}

impl Design {
    fn of(labels: &Groups, batches: &Groups) -> Design {
        let both = labels.codes.iter().zip(&batches.codes).enumerate();
        let labelled: Vec<(usize, u32, u32)> =
            both.filter_map(|(cell, (label, batch))| Some((cell, (*label)?, (*batch)?))).collect();
        let (type_of, types) = number(labelled.iter().map(|cell| cell.1));
        let (batch_of, batches) = number(labelled.iter().map(|cell| cell.2));
        Design { cells: labelled.into_iter().map(|cell| cell.0).collect(), type_of, batch_of, types, batches }
    }

    /// The connected part of each batch in the graph of cell types and batches that share a cell.
    fn parts(&self) -> Vec<usize> {
        let types = self.types.len();
        let mut part: Vec<usize> = (0..types + self.batches.len()).collect();
        fn root(part: &mut [usize], mut node: usize) -> usize {
            while part[node] != node {
                part[node] = part[part[node]];
                node = part[node];
            }
            node
        }
        for (&label, &batch) in self.type_of.iter().zip(&self.batch_of) {
            let (a, b) = (root(&mut part, label), root(&mut part, types + batch));
            part[a.max(b)] = a.min(b);
        }
        (types..part.len()).map(|node| root(&mut part, node)).collect()
    }

    fn components(&self) -> usize {
        self.parts().into_iter().collect::<BTreeSet<usize>>().len()
    }

    /// What batches add to cell types, by the normal equations with the cell types eliminated.
    ///
    /// One batch of each connected part is left out, which makes the rest of full rank.
    fn solver(&self) -> Solver<'_> {
        let mut seen = BTreeSet::new();
        let kept: Vec<usize> = self
            .parts()
            .into_iter()
            .enumerate()
            .filter(|(_, part)| !seen.insert(*part))
            .map(|(batch, _)| batch)
            .collect();
        let batches = self.batches.len();
        let mut shared = vec![0.0; self.types.len() * batches];
        for (&label, &batch) in self.type_of.iter().zip(&self.batch_of) {
            shared[label * batches + batch] += 1.0;
        }
        let size = kept.len();
        let mut normal = vec![0.0; size * size];
        for (row, &a) in kept.iter().enumerate() {
            for (column, &b) in kept.iter().enumerate().take(row + 1) {
                let rest: f64 = (0..self.types.len())
                    .map(|label| {
                        shared[label * batches + a] * shared[label * batches + b] / self.types[label]
                    })
                    .sum();
                normal[row * size + column] = if a == b { self.batches[a] - rest } else { -rest };
            }
        }
        cholesky(&mut normal, size);
        Solver { design: self, kept, shared, factor: normal }
    }
}

struct Solver<'a> {
    design: &'a Design,
    kept: Vec<usize>,
    /// Cells of each cell type and batch, row-major.
    shared: Vec<f64>,
    /// Lower triangle, row-major, of the batches kept.
    factor: Vec<f64>,
}

impl Solver<'_> {
    /// The two ratios of one coordinate; `None` where it does not vary.
    fn ratios(&self, value: impl Fn(usize) -> f64) -> Option<[f64; 2]> {
        let design = self.design;
        let count = design.cells.len() as f64;
        let mean = design.cells.iter().map(|&cell| value(cell)).sum::<f64>() / count;
        let (mut total, mut by_type, mut by_batch) =
            (0.0, vec![0.0; design.types.len()], vec![0.0; design.batches.len()]);
        for (place, &cell) in design.cells.iter().enumerate() {
            let value = value(cell) - mean;
            total += value * value;
            by_type[design.type_of[place]] += value;
            by_batch[design.batch_of[place]] += value;
        }
        if total <= LEAST_SQUARES {
            return None;
        }
        let explained = |sums: &[f64], sizes: &[f64]| -> f64 {
            sums.iter().zip(sizes).map(|(sum, size)| sum * sum / size).sum()
        };
        let types = explained(&by_type, &design.types);
        let batches = explained(&by_batch, &design.batches);
        let added = self.added(&by_type, &by_batch);
        let error = (total - types - added).max(0.0);
        let type_effect = (types + added - batches).max(0.0);
        let ratio = |effect: f64| {
            let whole = effect + error;
            if whole > LEAST_SQUARES { effect / whole } else { 0.0 }
        };
        (error + type_effect.max(added) > LEAST_SQUARES).then(|| [ratio(type_effect), ratio(added)])
    }

    /// The sum of squares that batches explain beyond cell types.
    fn added(&self, by_type: &[f64], by_batch: &[f64]) -> f64 {
        let (batches, size) = (by_batch.len(), self.kept.len());
        let mut solution = Vec::with_capacity(size);
        for (row, &batch) in self.kept.iter().enumerate() {
            let expected: f64 = by_type
                .iter()
                .zip(&self.design.types)
                .enumerate()
                .map(|(label, (sum, cells))| self.shared[label * batches + batch] * sum / cells)
                .sum();
            let known: f64 = (0..row).map(|column| self.factor[row * size + column] * solution[column]).sum();
            solution.push((by_batch[batch] - expected - known) / self.factor[row * size + row]);
        }
        solution.iter().map(|value| value * value).sum()
    }
}

/// Codes numbered without gaps, and how often each occurs.
fn number(codes: impl Iterator<Item = u32> + Clone) -> (Vec<usize>, Vec<f64>) {
    let present: Vec<u32> = codes.clone().collect::<BTreeSet<u32>>().into_iter().collect();
    let numbers: Vec<usize> = codes.map(|code| present.partition_point(|&other| other < code)).collect();
    let mut sizes = vec![0.0; present.len()];
    numbers.iter().for_each(|&number| sizes[number] += 1.0);
    (numbers, sizes)
}

/// The lower Cholesky factor of a positive definite row-major matrix, in place of its lower triangle.
fn cholesky(matrix: &mut [f64], size: usize) {
    for row in 0..size {
        for column in 0..=row {
            let known: f64 = (0..column).map(|k| matrix[row * size + k] * matrix[column * size + k]).sum();
            let rest = matrix[row * size + column] - known;
            matrix[row * size + column] =
                if row == column { rest.sqrt() } else { rest / matrix[column * size + column] };
        }
    }
}
