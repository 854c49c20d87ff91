//! Weighted neighbour graphs.

mod components;
mod connectivities;
mod connectivity;

use rayon::prelude::*;

pub use connectivity::graph_connectivity;

/// Other ends with weights.
type Edges = Vec<(u32, f32)>;

/// Rows that one task builds at a time.
const ROWS: usize = 4096;

/// A symmetric weighted graph in compressed sparse rows: neighbours of a node ascending, no loops.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// `nodes + 1` offsets.
    pub indptr: Vec<usize>,
    pub indices: Vec<u32>,
    pub weights: Vec<f32>,
}

impl Graph {
    /// A graph of this many nodes without an edge.
    pub fn without_edges(nodes: usize) -> Graph {
        Graph { indptr: vec![0; nodes + 1], indices: Vec::new(), weights: Vec::new() }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The neighbours of one node and the weights of the edges.
    pub fn row(&self, node: usize) -> (&[u32], &[f32]) {
        let range = self.indptr[node]..self.indptr[node + 1];
        (&self.indices[range.clone()], &self.weights[range])
    }

    /// The neighbours of one node with the weights of the edges.
    pub fn edges(&self, node: usize) -> impl Iterator<Item = (usize, f32)> {
        let (indices, weights) = self.row(node);
        indices.iter().zip(weights).map(|(&other, &weight)| (other as usize, weight))
    }

    /// The graph of the named nodes (each once) and the edges among them; node `i` is `nodes[i]` of this graph.
    pub fn subgraph(&self, nodes: &[usize]) -> Graph {
        let mut position = vec![u32::MAX; self.len()];
        for (new, &old) in nodes.iter().enumerate() {
            position[old] = new as u32;
        }
        let ascending = nodes.is_sorted();
        Graph::from_rows(nodes.len(), |row, edges| {
            let kept = self.edges(nodes[row]).map(|(other, weight)| (position[other], weight));
            edges.extend(kept.filter(|&(other, _)| other != u32::MAX));
            if !ascending {
                edges.sort_unstable_by_key(|&(other, _)| other);
            }
        })
    }

    /// Builds rows in parallel: `row` puts the edges of a node, ascending, into an empty vector.
    fn from_rows(nodes: usize, row: impl Fn(usize, &mut Edges) + Sync) -> Graph {
        let pieces: Vec<(Vec<usize>, Edges)> = (0..nodes.div_ceil(ROWS))
            .into_par_iter()
            .map(|piece| {
                let (mut lengths, mut edges, mut own) = (Vec::with_capacity(ROWS), Vec::new(), Vec::new());
                for node in piece * ROWS..nodes.min((piece + 1) * ROWS) {
                    row(node, &mut own);
                    lengths.push(own.len());
                    edges.append(&mut own);
                }
                (lengths, edges)
            })
            .collect();
        let total = pieces.iter().map(|(_, edges)| edges.len()).sum();
        let mut graph = Graph {
            indptr: Vec::with_capacity(nodes + 1),
            indices: Vec::with_capacity(total),
            weights: Vec::with_capacity(total),
        };
        let mut end = 0;
        graph.indptr.push(end);
        for (lengths, edges) in pieces {
            graph.indptr.extend(lengths.into_iter().map(|length| {
                end += length;
                end
            }));
            graph.indices.extend(edges.iter().map(|&(other, _)| other));
            graph.weights.extend(edges.iter().map(|&(_, weight)| weight));
        }
        graph
    }
}

#[cfg(test)]
impl Graph {
    /// A graph of undirected edges, for tests.
    pub(crate) fn of_edges(nodes: usize, edges: &[(u32, u32, f32)]) -> Graph {
        Graph::from_rows(nodes, |node, row| {
            for &(a, b, weight) in edges {
                if a as usize == node {
                    row.push((b, weight));
                } else if b as usize == node {
                    row.push((a, weight));
                }
            }
            row.sort_by_key(|&(other, _)| other);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subgraph_keeps_the_edges_among_its_nodes() {
        let graph = Graph::of_edges(4, &[(0, 1, 0.5), (1, 2, 0.25), (2, 3, 1.0), (0, 3, 0.75)]);
        let part = graph.subgraph(&[3, 0, 2]);
        assert_eq!(part, Graph::of_edges(3, &[(0, 1, 0.75), (0, 2, 1.0)]));
        assert_eq!(graph.subgraph(&[0, 1, 2, 3]), graph);
        assert!(graph.subgraph(&[]).is_empty());
        assert_eq!(graph.subgraph(&[1, 3]), Graph::without_edges(2));
    }

    #[test]
    fn rows_of_several_pieces_are_joined_in_order() {
        let nodes = 2 * ROWS + 5;
        let ring: Vec<(u32, f32)> =
            (0..nodes).map(|node| (((node + 1) % nodes) as u32, node as f32)).collect();
        let graph = Graph::from_rows(nodes, |node, row| row.push(ring[node]));
        assert_eq!(graph.indptr, (0..=nodes).collect::<Vec<_>>());
        assert_eq!(graph.row(nodes - 1), (&[0][..], &[(nodes - 1) as f32][..]));
        assert_eq!(graph.row(ROWS), (&[ROWS as u32 + 1][..], &[ROWS as f32][..]));
    }
}
