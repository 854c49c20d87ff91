use super::*;
use crate::kernel::neighbours::nearest;
use crate::kernel::points::Points;

/// Cells of overlapping classes: uniform noise of this width around random centres.
pub(crate) fn blobs(
    cells: usize,
    dims: usize,
    classes: usize,
    width: f32,
    seed: u64,
) -> (Points, Vec<String>) {
    let mut random = Rng::with_seed(seed);
    let centres: Vec<f32> = (0..classes * dims).map(|_| random.f32() * 2.0).collect();
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..cells {
        let class = random.usize(..classes);
        labels.push(format!("class {class}"));
        values.extend(centres[class * dims..][..dims].iter().map(|centre| centre + random.f32() * width));
    }
    (Points::new(values, dims), labels)
}

pub(crate) fn graph_of(points: &Points) -> Graph {
    Graph::connectivities(&nearest(points, 14, &|_| ()))
}

/// Two cliques of five with one edge between them.
fn cliques() -> Graph {
    let mut edges = vec![(4, 5, 1.0)];
    for a in 0..5u32 {
        for b in a + 1..5 {
            edges.extend([(a, b, 1.0), (a + 5, b + 5, 1.0)]);
        }
    }
    Graph::of_edges(10, &edges)
}

#[test]
fn cliques_are_found() {
    let graph = cliques();
    for seed in 0..20 {
        assert_eq!(leiden(&graph, 1.0, 2, seed), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    }
    assert_eq!(leiden(&graph, 0.0, 2, 0), [0; 10]);
    assert_eq!(leiden(&graph, 50.0, 2, 0), (0..10).collect::<Vec<u32>>());
    // 20 of 21 edges inside, half of the strength in each.
    let labels = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1];
    assert!((modularity(&graph, &labels, 1.0) - (20.0 / 21.0 - 0.5)).abs() < 1e-15);
    assert!((modularity(&graph, &labels, 2.0) - (20.0 / 21.0 - 1.0)).abs() < 1e-15);
}

#[test]
fn graphs_without_edges_and_isolated_nodes() {
    assert!(leiden(&Graph::without_edges(0), 1.0, 2, 0).is_empty());
    assert_eq!(leiden(&Graph::without_edges(3), 1.0, 2, 0), [0, 1, 2]);
    assert_eq!(modularity(&Graph::without_edges(3), &[0, 1, 2], 1.0), 0.0);
    let graph = Graph::of_edges(4, &[(1, 3, 0.5)]);
    assert_eq!(leiden(&graph, 1.0, 2, 0), [1, 0, 2, 0]);
}

#[test]
fn every_cluster_is_connected() {
    for seed in 0..6 {
        let (points, _) = blobs(700, 3, 6, 1.5, seed);
        let graph = graph_of(&points);
        for resolution in [0.1, 1.0, 4.0] {
            let labels = leiden(&graph, resolution, 2, seed);
            let clusters = labels.iter().max().map_or(0, |&last| last as usize + 1);
            let members = (0..clusters as u32)
                .map(|cluster| (0..700).filter(|&node| labels[node] == cluster).collect::<Vec<usize>>());
            let mut last = usize::MAX;
            for own in members {
                assert!(own.len() <= last && !own.is_empty());
                last = own.len();
                assert!(graph.subgraph(&own).components().iter().all(|&part| part == 0));
            }
        }
    }
}

#[test]
fn more_iterations_and_better_partitions_never_lose() {
    let (points, labels) = blobs(900, 5, 7, 1.6, 3);
    let graph = graph_of(&points);
    let truth = crate::kernel::points::Classes::of(&labels);
    let once = modularity(&graph, &leiden(&graph, 1.0, 1, 5), 1.0);
    let often = modularity(&graph, &leiden(&graph, 1.0, 6, 5), 1.0);
    assert!(often >= once && once > modularity(&graph, &truth.codes, 1.0));
}

#[test]
fn the_unit_of_the_weights_hardly_matters_and_the_seed_decides() {
    let (points, _) = blobs(600, 4, 5, 1.5, 8);
    let graph = graph_of(&points);
    assert_eq!(leiden(&graph, 1.0, 2, 7), leiden(&graph, 1.0, 2, 7));
    let mut scaled = graph.clone();
    scaled.weights.iter_mut().for_each(|weight| *weight *= 1024.0);
    let (plain, scaled) = (leiden(&graph, 1.0, 2, 7), leiden(&scaled, 1.0, 2, 7));
    assert!((modularity(&graph, &plain, 1.0) - modularity(&graph, &scaled, 1.0)).abs() < 0.02);
}

#[test]
fn disconnected_communities_are_split() {
    let graph = Graph::of_edges(5, &[(0, 1, 1.0), (2, 3, 1.0)]);
    assert_eq!(connected_parts(&graph, &[0, 0, 0, 0, 0]), [0, 0, 1, 1, 2]);
}

#[test]
fn clusters_are_numbered_by_size() {
    let mut labels = vec![9, 4, 4, 2, 2, 2, 7];
    number_by_size(&mut labels);
    assert_eq!(labels, [2, 1, 1, 0, 0, 0, 3]);
}
