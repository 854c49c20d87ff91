//! Cells in the space of a random walk over their graph.

use super::super::graph::Graph;
use super::super::points::Points;
use super::dense::largest;
use super::lanczos::{Eigenpairs, leading};
use super::transitions::Transitions;

/// The diffusion map of a graph.
pub(super) struct Map {
    /// Nodes x components.
    pub points: Points,
    /// The largest residual of the eigenpairs.
    pub residual: f64,
}

/// The diffusion map of a graph in at most `components` dimensions: each the entries of an eigenvector of
/// [`Transitions`] times `e / (1 - e)`, which sums the walk over all numbers of steps.
///
/// Eigenvalues are taken by magnitude. One that float32 holds as 1 (that of the resting walk) weighs 1, as in the
/// reference, which computes in float32 from there. Connected components are decomposed one by one: each has an
/// eigenvalue of 1 of its own. `None` if an eigendecomposition fails.
pub(super) fn map(graph: &Graph, components: usize) -> Option<Map> {
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (node, component) in graph.components().into_iter().enumerate() {
        if component as usize == members.len() {
            members.push(Vec::new());
        }
        members[component as usize].push(node);
    }
    let parts: Vec<Eigenpairs> = members
        .iter()
        .map(|nodes| leading(&Transitions::of(&graph.subgraph(nodes)), components))
        .collect::<Option<_>>()?;
    let all: Vec<f64> = parts.iter().flat_map(|part| part.values.iter().copied()).collect();
    let chosen = largest(&all, components.min(graph.len().saturating_sub(1)));
    let mut coordinate = vec![None; all.len()];
    chosen.iter().enumerate().for_each(|(place, &value)| coordinate[value] = Some(place));
    let dims = chosen.len();
    let mut values = vec![0f32; graph.len() * dims];
    let mut first = 0;
    for (nodes, part) in members.iter().zip(&parts) {
        let count = part.values.len();
        for (&node, entries) in nodes.iter().zip(part.vectors.chunks_exact(count)) {
            for (index, entry) in entries.iter().enumerate() {
                if let Some(place) = coordinate[first + index] {
                    values[node * dims + place] = (f64::from(*entry) * weight(part.values[index])) as f32;
                }
            }
        }
        first += count;
    }
    let residual = parts.iter().map(|part| part.residual).fold(0.0, f64::max);
    Some(Map { points: Points::new(values, dims), residual })
}

fn weight(eigenvalue: f64) -> f64 {
    if eigenvalue as f32 >= 1.0 { 1.0 } else { eigenvalue / (1.0 - eigenvalue) }
}
