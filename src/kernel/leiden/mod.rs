//! Communities of a graph: the Leiden algorithm for modularity (Traag, Waltman and van Eck 2019).

mod moving;
mod network;
mod partition;
mod refinement;
#[cfg(test)]
pub(crate) mod tests;

use fastrand::Rng;

use super::graph::Graph;
use moving::move_nodes;
use network::{Aggregate, Network};
use partition::number_by_size;
use refinement::refine;

/// Clusters of a graph that maximise [`modularity`], numbered by size, largest first, equal ones by their first node.
///
/// Each iteration moves nodes, refines the communities, makes every refined part one node and goes on with those until
/// nothing merges; the next one starts from what the last one found. scanpy's `leiden(flavor="igraph")` runs 2.
/// Every cluster is connected; a node without edges is a cluster of its own. The result depends on `seed` and on
/// the order of nodes, and not on threads: a run is sequential. Memory: about 16 bytes an entry of the graph.
///
/// Reference: `community_leiden(objective_function="modularity", n_iterations=2)` of igraph 1.0.0, beta 0.01; equal in
/// the modularity reached, not in the random draws.
pub fn leiden(graph: &Graph, resolution: f64, iterations: usize, seed: u64) -> Vec<u32> {
    let mut labels: Vec<u32> = (0..graph.len() as u32).collect();
    let strengths = strengths(graph);
    let total: f64 = strengths.iter().sum();
    if total > 0.0 {
        let mut random = Rng::with_seed(seed);
        let network = Network {
            indptr: &graph.indptr,
            indices: &graph.indices,
            weights: &graph.weights,
            strengths: &strengths,
        };
        for _ in 0..iterations {
            iterate(network, &mut labels, resolution / total, &mut random);
        }
        labels = connected_parts(graph, &labels);
    }
    number_by_size(&mut labels);
    labels
}

/// Modularity of a partition: `1/2m` times the sum over pairs of nodes in the same cluster of
/// `weight - resolution k_i k_j / 2m`, where `k` is the sum of the weights at a node and `2m` that over all nodes.
///
/// Higher is better, at most 1; 0 for a graph without edges. `labels` number the clusters from 0. Reference:
/// `Graph.modularity` of igraph 1.0.0.
pub fn modularity(graph: &Graph, labels: &[u32], resolution: f64) -> f64 {
    let strengths = strengths(graph);
    let total: f64 = strengths.iter().sum();
    if total == 0.0 {
        return 0.0;
    }
    let mut clusters = vec![0.0; labels.iter().max().map_or(0, |&last| last as usize + 1)];
    let mut inside = 0.0;
    for (node, (&label, strength)) in labels.iter().zip(&strengths).enumerate() {
        clusters[label as usize] += strength;
        let own = graph.edges(node).filter(|&(other, _)| labels[other] == label);
        inside += own.map(|(_, weight)| f64::from(weight)).sum::<f64>();
    }
    let expected: f64 = clusters.iter().map(|strength| (strength / total).powi(2)).sum();
    inside / total - resolution * expected
}

fn strengths(graph: &Graph) -> Vec<f64> {
    let sum = |node| graph.row(node).1.iter().map(|&weight| f64::from(weight)).sum();
    (0..graph.len()).map(sum).collect()
}

/// One iteration over all levels.
fn iterate(network: Network<'_, f32>, labels: &mut [u32], penalty: f64, random: &mut Rng) {
    let Some(mut level) = Level::rise(network, labels, penalty, random) else { return };
    // The node of the present level that each node of the graph belongs to.
    let mut place = std::mem::take(&mut level.groups);
    while let Some(next) = Level::rise(level.aggregate.network(), &mut level.labels, penalty, random) {
        place.iter_mut().for_each(|node| *node = next.groups[*node as usize]);
        level = next;
    }
    for (label, &node) in labels.iter_mut().zip(&place) {
        *label = level.labels[node as usize];
    }
}

/// A network made of groups of the nodes of the one below.
struct Level {
    aggregate: Aggregate,
    /// The group of each node below.
    groups: Vec<u32>,
    /// The community of each node of this level.
    labels: Vec<u32>,
}

impl Level {
    /// Moves the nodes of a network and puts the next level on it; `None` when every node stays alone.
    fn rise<W: Copy + Into<f64>>(
        network: Network<'_, W>,
        labels: &mut [u32],
        penalty: f64,
        random: &mut Rng,
    ) -> Option<Level> {
        let communities = move_nodes(network, labels, penalty, random);
        if communities == network.len() {
            return None;
        }
        let (mut groups, mut count) = refine(network, labels, communities, penalty, random);
        if count == network.len() {
            // Nothing merged: go on with the communities themselves, or the next level would be this one again.
            (groups, count) = (labels.to_vec(), communities);
        }
        let mut of_groups = vec![0; count];
        for (&group, &label) in groups.iter().zip(labels.iter()) {
            of_groups[group as usize] = label;
        }
        Some(Level { aggregate: network.aggregate(&groups, count), groups, labels: of_groups })
    }
}

/// Splits communities into their connected components, which never lowers modularity.
fn connected_parts(graph: &Graph, labels: &[u32]) -> Vec<u32> {
    graph.components_along(|node, other| labels[node] == labels[other])
}
