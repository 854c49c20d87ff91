//! How a random walk moves over a graph.

use rayon::prelude::*;

use super::super::graph::Graph;

/// Rows that one task takes.
pub(super) const ROWS: usize = 1024;

/// The symmetric form of the transitions of a density-normalised random walk, as sparse as its graph.
///
/// `K = W / (q q')` with `q` the degrees, then `K / (z z')` with `z` the square roots of the row sums of `K`.
/// Its eigenvalues are those of the walk, between -1 and 1. (Coifman et al. 2005; scanpy's diffusion maps.)
pub(super) struct Transitions<'a> {
    graph: &'a Graph,
    values: Vec<f64>,
}

impl<'a> Transitions<'a> {
    pub fn of(graph: &'a Graph) -> Transitions<'a> {
        let inverse = |value: f64| if value > 0.0 { 1.0 / value } else { 0.0 };
        let rows = 0..graph.len();
        let degrees: Vec<f64> = rows
            .clone()
            .map(|node| inverse(graph.edges(node).map(|(_, weight)| f64::from(weight)).sum()))
            .collect();
        let mut values = Vec::with_capacity(graph.indices.len());
        let mut roots = Vec::with_capacity(graph.len());
        for node in rows.clone() {
            let first = values.len();
            values.extend(
                graph.edges(node).map(|(other, weight)| f64::from(weight) * (degrees[node] * degrees[other])),
            );
            roots.push(inverse(values[first..].iter().sum::<f64>().sqrt()));
        }
        for node in rows {
            for entry in graph.indptr[node]..graph.indptr[node + 1] {
                values[entry] *= roots[node] * roots[graph.indices[entry] as usize];
            }
        }
        Transitions { graph, values }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.graph.len()
    }

    /// The entries of a row.
    pub fn row(&self, node: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.graph.indptr[node]..self.graph.indptr[node + 1];
        let others = self.graph.indices[range.clone()].iter().map(|&other| other as usize);
        others.zip(self.values[range].iter().copied())
    }

    /// The product with a vector.
    pub fn apply(&self, vector: &[f64], product: &mut [f64]) {
        product.par_chunks_mut(ROWS).enumerate().for_each(|(piece, part)| {
            for (index, sum) in part.iter_mut().enumerate() {
                *sum = self.row(piece * ROWS + index).map(|(other, value)| value * vector[other]).sum();
            }
        });
    }
}
