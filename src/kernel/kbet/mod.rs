//! kBET: are batches, around each cell, as frequent as in its whole label?

mod basis;
mod dense;
mod diffusion;
mod lanczos;
mod survival;
mod transitions;

use rayon::prelude::*;

use super::graph::Graph;
use super::neighbours::{Neighbours, Search, Tick, nearest};
use super::omission::omission;
use super::parts;
use super::points::Classes;
use super::score::Score;
use survival::survival;

/// Significance level of the test.
const ALPHA: f64 = 0.05;

/// Dimensions of the diffusion map.
const COMPONENTS: usize = 100;

/// Bounds of the neighbours that are tested, the cell itself not counted.
const NEIGHBOURS: (usize, usize) = (10, 70);

/// Cells that a label has at least; with fewer, the smallest neighbourhood is the whole label.
const LABEL_CELLS: usize = NEIGHBOURS.0 + 2;

/// Residual of eigenpairs above which a note says so.
const CONVERGED: f64 = 1e-6;

/// What the test says of one label.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Share of tested cells whose neighbourhood passes the test.
    Accepted { rate: f64, cells: usize, neighbours: usize, exact: bool, converged: bool },
    /// More than a quarter of the cells are in small components of the label's graph: counted as 0.
    FellApart,
    /// Too few cells, or one batch: no score.
    Untested,
}

/// kBET acceptance rate, by labels, in diffusion space.
///
/// For every label: the graph of its cells; `k0`, a quarter of the mean batch size, from 10 to 70; the [`diffusion`] map
/// in 100 dimensions (at most cells - 1); for every cell a chi-square test (level 0.05) whether it and its `k0` nearest
/// hold the batches as often as the label does. The label's score is the share of cells that pass. Where the graph is in
/// several components, those below `3 k0` cells are left out; if they hold more than a quarter of the cells the score is
/// 0. The mean over labels. Range 0 (batches apart) to 1 (mixed); higher is better.
///
/// Labels with fewer than 12 cells or one batch have no score and are named in a note. NA where no label has one.
///
/// Reference: `scib_metrics.kbet_per_label` 0.5.10 on the same graph (connectivities of 50 neighbours, the cell
/// counted). Differences: neighbours are exact (there pynndescent's); a label of few cells does not lessen the dimensions
/// of the labels after it; eigenvalues stay float64; labels of 10 and 11 cells, whose 11 nearest are the whole
/// label, have no score.
pub fn kbet(connectivities: &Graph, labels: &Classes, batches: &Classes, tick: Tick<'_>) -> Score {
    let outcomes = kbet_per_label(connectivities, labels, batches, tick);
    let scores: Vec<f64> = outcomes.iter().filter_map(Outcome::score).collect();
    let score = match scores.len() {
        0 => Score::missing(format!("no label has {LABEL_CELLS} cells and two batches")),
        count => Score::number(scores.iter().sum::<f64>() / count as f64),
    };
    let named = |which: &dyn Fn(&Outcome) -> bool| -> Vec<&str> {
        let pairs = labels.names.iter().zip(&outcomes);
        pairs.filter(|(_, outcome)| which(outcome)).map(|(name, _)| name.as_str()).collect()
    };
    let list = |names: Vec<&str>, what: &str| match names.len() {
        0 => None,
        count => Some(format!("{what} in {count} of {} labels: {}", labels.len(), shortened(&names))),
    };
    let wide = |outcome: &Outcome| matches!(outcome, Outcome::Accepted { cells, neighbours, .. } if 3 * (neighbours + 1) > *cells);
    let notes = [
        omission(
            &named(&|outcome| *outcome == Outcome::Untested),
            &format!("fewer than {LABEL_CELLS} cells, or only one batch"),
        ),
        list(
            named(&|outcome| *outcome == Outcome::FellApart),
            "counted as 0, the neighbour graph falls into small pieces,",
        ),
        list(named(&wide), "10 neighbours are tested, more than a third of the cells,"),
        list(
            named(&|outcome| matches!(outcome, Outcome::Accepted { exact: false, .. })),
            "approximate neighbours in diffusion space",
        ),
        list(
            named(&|outcome| matches!(outcome, Outcome::Accepted { converged: false, .. })),
            "eigenvectors not fully converged",
        ),
    ];
    notes.into_iter().flatten().fold(score, Score::note)
}

fn shortened(names: &[&str]) -> String {
    match names.len() {
        ..=5 => names.join(", "),
        more => format!("{} and {} more", names[..5].join(", "), more - 5),
    }
}

impl Outcome {
    /// The label's part in the mean.
    pub fn score(&self) -> Option<f64> {
        match self {
            Outcome::Accepted { rate, .. } => Some(*rate),
            Outcome::FellApart => Some(0.0),
            Outcome::Untested => None,
        }
    }
}

/// [`kbet`] of each label.
pub fn kbet_per_label(
    connectivities: &Graph,
    labels: &Classes,
    batches: &Classes,
    tick: Tick<'_>,
) -> Vec<Outcome> {
    parts::each(&labels.members(), tick, |_, cells, _| test(connectivities, cells, batches))
}

fn test(connectivities: &Graph, cells: &[usize], batches: &Classes) -> Outcome {
    let own = batches.select(cells);
    if cells.len() < LABEL_CELLS || own.len() < 2 {
        return Outcome::Untested;
    }
    let neighbours = (cells.len() / (4 * own.len())).clamp(NEIGHBOURS.0, NEIGHBOURS.1);
    let graph = connectivities.subgraph(cells);
    let large = in_large_components(&graph, 3 * neighbours);
    if 4 * large.len() < 3 * cells.len() {
        return Outcome::FellApart;
    }
    let own = own.select(&large);
    if own.len() < 2 {
        return Outcome::Untested;
    }
    let graph = if large.len() == cells.len() { graph } else { graph.subgraph(&large) };
    // A decomposition that fails is a rejection of all, as in the reference.
    let Some(map) = diffusion::map(&graph, COMPONENTS.min(graph.len() - 1)) else {
        return Outcome::FellApart;
    };
    let near = nearest(&map.points, neighbours, &|_| ());
    Outcome::Accepted {
        rate: accepted(&near, &own) as f64 / large.len() as f64,
        cells: large.len(),
        neighbours,
        exact: near.search == Search::Exact,
        converged: map.residual < CONVERGED,
    }
}

/// The nodes of components of at least so many nodes; all nodes where there is one component.
fn in_large_components(graph: &Graph, least: usize) -> Vec<usize> {
    let components = graph.components();
    let mut sizes = vec![0usize; components.iter().max().map_or(0, |&last| last as usize + 1)];
    components.iter().for_each(|&component| sizes[component as usize] += 1);
    let large = |&node: &usize| sizes.len() == 1 || sizes[components[node] as usize] >= least;
    (0..graph.len()).filter(large).collect()
}

/// Number of cells around which the batches are as frequent as among all.
fn accepted(near: &Neighbours, batches: &Classes) -> usize {
    let tested = (near.k + 1) as f64;
    let expected: Vec<f64> =
        batches.sizes().iter().map(|&size| tested * size as f64 / batches.codes.len() as f64).collect();
    let passes = |counts: &mut Vec<u32>, cell: usize| {
        counts.clear();
        counts.resize(expected.len(), 0);
        counts[batches.codes[cell] as usize] += 1;
        for &other in near.row(cell).0 {
            counts[batches.codes[other as usize] as usize] += 1;
        }
        let deviations = counts.iter().zip(&expected).map(|(&n, e)| (f64::from(n) - e).powi(2) / e);
        survival(expected.len() - 1, deviations.sum()) >= ALPHA
    };
    (0..near.len()).into_par_iter().map_init(Vec::new, passes).filter(|&passes| passes).count()
}

#[cfg(test)]
mod tests;
