//! Weighted neighbour graphs.

/// A symmetric weighted graph in compressed sparse rows: neighbours of a node ascending, no loops.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// `nodes + 1` offsets.
    pub indptr: Vec<usize>,
    pub indices: Vec<u32>,
    pub weights: Vec<f32>,
}

impl Graph {
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
}
