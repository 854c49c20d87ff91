//! Neighbours as a weighted graph: the fuzzy simplicial set of UMAP.

use rayon::prelude::*;

use super::{Edges, Graph, ROWS};
use crate::kernel::neighbours::Neighbours;

/// How close to its target the sum of a cell's memberships has to be.
const TOLERANCE: f64 = 1e-5;
/// The smallest bandwidth, as a share of the mean distance.
const SMALLEST_BANDWIDTH: f64 = 1e-3;
/// Bounds the search for a bandwidth: enough to walk from 1 to either end of float32 and then to converge.
const STEPS: usize = 256;

impl Graph {
    /// The connectivities of all neighbours: [`Graph::connectivities_within`] of `neighbours.k`.
    pub fn connectivities(neighbours: &Neighbours) -> Graph {
        Graph::connectivities_within(neighbours, neighbours.k)
    }

    /// The connectivities of the `k` nearest of the neighbours: weights in (0, 1], one where a cell's nearest
    /// neighbour is.
    ///
    /// Each cell gives neighbour `j` the membership `exp(-max(0, d_j - rho) / sigma)`, where `rho` is its smallest
    /// distance above zero and `sigma` makes the memberships sum to `log2(k + 1)`; an edge has the fuzzy union
    /// `a + b - a b` of the memberships of its two ends. Equals `fuzzy_simplicial_set` of umap-learn 0.5.12, thus
    /// `scanpy.pp.neighbors` 1.11.5 and `knn_graph_connectivities` of scib-metrics 0.5.10, whose `n_neighbors`
    /// counts the cell itself: their 15 are 14 here. The search for `sigma` goes on where umap-learn stops after 64
    /// steps, which matters at distances beyond 1e19 or below 1e-15 only.
    ///
    /// Memory: 16 bytes for each of the cells x `k` neighbours and again for each entry of the result.
    pub fn connectivities_within(neighbours: &Neighbours, k: usize) -> Graph {
        let k = k.min(neighbours.k);
        let out = Memberships::of(neighbours, k);
        let back = out.transposed();
        Graph::from_rows(neighbours.len(), |cell, edges| unite(out.row(cell), back.row(cell), edges))
    }
}

/// Directed edges with their memberships, by row, columns ascending.
struct Memberships {
    indptr: Vec<usize>,
    edges: Edges,
}

impl Memberships {
    fn of(neighbours: &Neighbours, k: usize) -> Memberships {
        let cells = neighbours.len();
        let mean = mean_distance(neighbours, k);
        let mut edges = vec![(0, 0.0); cells * k];
        edges.par_chunks_mut(k.max(1)).enumerate().for_each(|(cell, row)| {
            let (others, distances) = neighbours.row(cell);
            let (rho, sigma) = bandwidth(&distances[..k], mean);
            for ((edge, &other), &distance) in row.iter_mut().zip(others).zip(distances) {
                *edge = (other, membership(f64::from(distance) - rho, sigma) as f32);
            }
            row.sort_unstable_by_key(|&(other, _)| other);
        });
        Memberships { indptr: (0..=cells).map(|cell| cell * k).collect(), edges }
    }

    fn row(&self, cell: usize) -> &[(u32, f32)] {
        &self.edges[self.indptr[cell]..self.indptr[cell + 1]]
    }

    fn transposed(&self) -> Memberships {
        let cells = self.indptr.len() - 1;
        let mut indptr = vec![0; cells + 1];
        for &(column, _) in &self.edges {
            indptr[column as usize + 1] += 1;
        }
        for cell in 0..cells {
            indptr[cell + 1] += indptr[cell];
        }
        let mut next = indptr.clone();
        let mut edges = vec![(0, 0.0); self.edges.len()];
        for cell in 0..cells {
            for &(column, weight) in self.row(cell) {
                edges[next[column as usize]] = (cell as u32, weight);
                next[column as usize] += 1;
            }
        }
        Memberships { indptr, edges }
    }
}

/// Mean distance over all cells, each of them its own neighbour at distance 0.
fn mean_distance(neighbours: &Neighbours, k: usize) -> f64 {
    let cells = neighbours.len();
    let sums: Vec<f64> = (0..cells.div_ceil(ROWS))
        .into_par_iter()
        .map(|piece| {
            let rows = piece * ROWS..cells.min((piece + 1) * ROWS);
            rows.map(|cell| sum(&neighbours.row(cell).1[..k])).sum()
        })
        .collect();
    sums.iter().sum::<f64>() / (cells * (k + 1)).max(1) as f64
}

fn sum(distances: &[f32]) -> f64 {
    distances.iter().map(|&distance| f64::from(distance)).sum()
}

fn membership(beyond: f64, sigma: f64) -> f64 {
    if beyond <= 0.0 || sigma == 0.0 { 1.0 } else { (-beyond / sigma).exp() }
}

/// The distance up to which a cell is fully connected, and the scale of the decay beyond.
fn bandwidth(distances: &[f32], mean_of_all: f64) -> (f64, f64) {
    let rho = distances.iter().find(|&&distance| distance > 0.0).map_or(0.0, |&distance| f64::from(distance));
    let mean = if rho > 0.0 { sum(distances) / (distances.len() + 1) as f64 } else { mean_of_all };
    (rho, decay(distances, rho).max(SMALLEST_BANDWIDTH * mean))
}

/// The `sigma` at which the memberships sum to `log2(k + 1)`; 0 when ties at `rho` alone sum to more.
fn decay(distances: &[f32], rho: f64) -> f64 {
    let target = ((distances.len() + 1) as f64).log2();
    let near = distances.iter().filter(|&&distance| f64::from(distance) <= rho).count();
    let far = &distances[near..];
    if near as f64 > target {
        return 0.0;
    }
    let (mut low, mut middle, mut high) = (0.0, 1.0, f64::INFINITY);
    for _ in 0..STEPS {
        let beyond = far.iter().map(|&distance| (-(f64::from(distance) - rho) / middle).exp());
        let reached = near as f64 + beyond.sum::<f64>();
        if (reached - target).abs() < TOLERANCE {
            break;
        }
        if reached > target {
            high = middle;
        } else {
            low = middle;
        }
        middle = if high.is_finite() { f64::midpoint(low, high) } else { middle * 2.0 };
    }
    middle
}

/// The fuzzy union of the edges from a cell and the edges to it.
fn unite(out: &[(u32, f32)], back: &[(u32, f32)], edges: &mut Edges) {
    let (mut out, mut back) = (out.iter().peekable(), back.iter().peekable());
    loop {
        let other = match (out.peek(), back.peek()) {
            (Some(a), Some(b)) => a.0.min(b.0),
            (Some(only), None) | (None, Some(only)) => only.0,
            (None, None) => return,
        };
        let a = out.next_if(|edge| edge.0 == other).map_or(0.0, |edge| f64::from(edge.1));
        let b = back.next_if(|edge| edge.0 == other).map_or(0.0, |edge| f64::from(edge.1));
        let weight = (a + b - a * b) as f32;
        if weight > 0.0 {
            edges.push((other, weight));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::neighbours::{Search, nearest};
    use crate::kernel::points::Points;

    fn random_points(cells: usize, dims: usize, seed: u64) -> Points {
        let mut random = fastrand::Rng::with_seed(seed);
        Points::new((0..cells * dims).map(|_| random.f32()).collect(), dims)
    }

    #[test]
    fn memberships_sum_to_their_target() {
        let neighbours = nearest(&random_points(300, 5, 1), 14, &|_| ());
        let out = Memberships::of(&neighbours, 14);
        for cell in 0..300 {
            let reached: f64 = out.row(cell).iter().map(|edge| f64::from(edge.1)).sum();
            assert!((reached - 15f64.log2()).abs() < 2e-5, "{cell}: {reached}");
        }
    }

    #[test]
    fn the_graph_is_symmetric_and_has_no_loops() {
        let neighbours = nearest(&random_points(200, 3, 2), 14, &|_| ());
        let graph = Graph::connectivities(&neighbours);
        for cell in 0..graph.len() {
            assert!(graph.row(cell).0.is_sorted());
            for (other, weight) in graph.edges(cell) {
                assert!(other != cell && weight > 0.0 && weight <= 1.0);
                assert!(graph.edges(other).any(|edge| edge == (cell, weight)));
            }
        }
    }

    #[test]
    fn fewer_neighbours_are_the_first_ones() {
        let points = random_points(100, 4, 3);
        let (many, few) = (nearest(&points, 30, &|_| ()), nearest(&points, 14, &|_| ()));
        assert_eq!(Graph::connectivities_within(&many, 14), Graph::connectivities(&few));
        assert_eq!(Graph::connectivities_within(&few, 99), Graph::connectivities(&few));
    }

    #[test]
    fn the_unit_of_the_distances_does_not_matter() {
        let plain = nearest(&random_points(150, 3, 4), 14, &|_| ());
        let expected = Graph::connectivities(&plain);
        for scale in [1e-30f32, 1e-6, 1e6, 1e30] {
            let mut scaled = plain.clone();
            scaled.distances.iter_mut().for_each(|distance| *distance *= scale);
            let graph = Graph::connectivities(&scaled);
            assert_eq!(graph.indices, expected.indices, "{scale}");
            for (a, b) in graph.weights.iter().zip(&expected.weights) {
                assert!((a - b).abs() < 4e-5, "{scale}: {a} {b}");
            }
        }
    }

    #[test]
    fn duplicates_are_fully_connected() {
        let graph = Graph::connectivities(&nearest(&Points::new(vec![3.0; 80], 2), 14, &|_| ()));
        assert!(graph.weights.iter().all(|&weight| weight == 1.0));
        assert_eq!(graph.len(), 40);
    }

    #[test]
    fn one_cell_has_no_neighbours() {
        let none = Neighbours { k: 0, indices: Vec::new(), distances: Vec::new(), search: Search::Exact };
        assert!(Graph::connectivities(&none).is_empty());
        let two = nearest(&Points::new(vec![0.0, 5.0], 1), 14, &|_| ());
        assert_eq!(Graph::connectivities(&two), Graph::of_edges(2, &[(0, 1, 1.0)]));
    }
}
