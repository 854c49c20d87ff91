//! What one level of the algorithm works on: nodes with strengths, edges without loops.

use super::partition::Tally;

/// A symmetric weighted graph with the strength of each node.
#[derive(Clone, Copy)]
pub(super) struct Network<'a, W> {
    pub indptr: &'a [usize],
    pub indices: &'a [u32],
    pub weights: &'a [W],
    /// Sum of the weights at each node, those inside an aggregated node counted twice.
    pub strengths: &'a [f64],
}

impl<W: Copy + Into<f64>> Network<'_, W> {
    pub fn len(&self) -> usize {
        self.strengths.len()
    }

    #[inline(always)]
    pub fn edges(&self, node: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.indptr[node]..self.indptr[node + 1];
        let (indices, weights) = (&self.indices[range.clone()], &self.weights[range]);
        indices.iter().zip(weights).map(|(&other, &weight)| (other as usize, weight.into()))
    }

    /// Makes each of `count` groups one node. Weights inside a group stay in its strength only.
    pub fn aggregate(&self, groups: &[u32], count: usize) -> Aggregate {
        let members = Members::of(groups, count);
        let mut tally = Tally::new(count);
        let mut whole = Aggregate {
            indptr: Vec::with_capacity(count + 1),
            indices: Vec::new(),
            weights: Vec::new(),
            strengths: Vec::with_capacity(count),
        };
        whole.indptr.push(0);
        for group in 0..count {
            let mut strength = 0.0;
            for &node in members.of_group(group) {
                strength += self.strengths[node as usize];
                for (other, weight) in self.edges(node as usize) {
                    tally.add(groups[other], weight);
                }
            }
            for &other in tally.touched() {
                if other as usize != group {
                    whole.indices.push(other);
                    whole.weights.push(tally.get(other));
                }
            }
            tally.clear();
            whole.indptr.push(whole.indices.len());
            whole.strengths.push(strength);
        }
        whole
    }
}

/// A network that owns its edges.
pub(super) struct Aggregate {
    indptr: Vec<usize>,
    indices: Vec<u32>,
    weights: Vec<f64>,
    strengths: Vec<f64>,
}

impl Aggregate {
    pub fn network(&self) -> Network<'_, f64> {
        Network {
            indptr: &self.indptr,
            indices: &self.indices,
            weights: &self.weights,
            strengths: &self.strengths,
        }
    }
}

/// Nodes by group.
pub(super) struct Members {
    starts: Vec<usize>,
    nodes: Vec<u32>,
}

impl Members {
    /// The nodes of each group, ascending.
    pub fn of(groups: &[u32], count: usize) -> Members {
        Members::in_order(groups, count, 0..groups.len() as u32)
    }

    /// The nodes of each group in the order given.
    pub fn in_order(groups: &[u32], count: usize, order: impl Iterator<Item = u32>) -> Members {
        let mut starts = vec![0; count + 1];
        for &group in groups {
            starts[group as usize + 1] += 1;
        }
        for group in 0..count {
            starts[group + 1] += starts[group];
        }
        let (mut next, mut nodes) = (starts.clone(), vec![0; groups.len()]);
        for node in order {
            let place = &mut next[groups[node as usize] as usize];
            nodes[*place] = node;
            *place += 1;
        }
        Members { starts, nodes }
    }

    pub fn of_group(&self, group: usize) -> &[u32] {
        &self.nodes[self.starts[group]..self.starts[group + 1]]
    }
}
