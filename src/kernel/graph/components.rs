//! Connected components of an undirected graph.

use super::Graph;

impl Graph {
    /// The connected component of each node; components are numbered from 0 by their first node.
    pub fn components(&self) -> Vec<u32> {
        self.components_along(|_, _| true)
    }

    /// [`Graph::components`] when only the edges between nodes that `joins` counts.
    pub fn components_along(&self, joins: impl Fn(usize, usize) -> bool) -> Vec<u32> {
        const NONE: u32 = u32::MAX;
        let mut component = vec![NONE; self.len()];
        let (mut waiting, mut found) = (Vec::new(), 0);
        for first in 0..self.len() {
            if component[first] != NONE {
                continue;
            }
            component[first] = found;
            waiting.push(first);
            while let Some(node) = waiting.pop() {
                for &other in self.row(node).0 {
                    let other = other as usize;
                    if component[other] == NONE && joins(node, other) {
                        component[other] = found;
                        waiting.push(other);
                    }
                }
            }
            found += 1;
        }
        component
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_numbered_by_their_first_node() {
        let graph = Graph::of_edges(7, &[(0, 4, 1.0), (4, 6, 1.0), (1, 2, 1.0), (5, 2, 1.0)]);
        assert_eq!(graph.components(), [0, 1, 1, 2, 0, 1, 0]);
        assert_eq!(Graph::without_edges(3).components(), [0, 1, 2]);
        assert!(Graph::without_edges(0).components().is_empty());
    }
}
