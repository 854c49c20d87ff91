//! Connectivities, Leiden, the sweep and agreement against scanpy 1.11.5, igraph 1.0.0, scib-metrics 0.5.10 and
//! scikit-learn 1.9.1, which the tests run.
//!
//! `SCFOUNDRY_TEST_PYTHON` names a Python that has them; run with `cargo test --test clusters_judge -- --ignored judge`.
#![expect(clippy::print_stdout, reason = "shows how close the two are, beyond that they are close enough")]

#[path = "judge/python.rs"]
mod python;

use scfoundry::kernel::agreement::Agreement;
use scfoundry::kernel::graph::{Graph, graph_connectivity};
use scfoundry::kernel::leiden::{leiden, modularity};
use scfoundry::kernel::neighbours::{Neighbours, Search};
use scfoundry::kernel::points::Classes;
use scfoundry::kernel::sweep::match_labels;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Runs of each resolution and sweep on both sides.
const SEEDS: u64 = 10;

/// Neighbours and what the references made of them.
#[derive(Deserialize)]
struct Answer {
    labels: Vec<String>,
    indices: Vec<u32>,
    distances: Vec<f32>,
    graph_indptr: Vec<usize>,
    graph_indices: Vec<u32>,
    graph_weights: Vec<f32>,
    graph_connectivity: f64,
    #[serde(default)]
    resolutions: Vec<f64>,
    /// By resolution, then seed.
    #[serde(default)]
    modularity: Vec<Vec<f64>>,
    /// By resolution, of the first seed.
    #[serde(default)]
    memberships: Vec<Vec<u32>>,
    /// By seed.
    #[serde(default)]
    sweeps: Vec<Sweep>,
}

#[derive(Deserialize)]
struct Sweep {
    resolution: f64,
    clusters: usize,
    nmi: f64,
    ari: f64,
}

#[derive(Deserialize)]
struct Partitions {
    truth: Vec<u32>,
    predicted: Vec<u32>,
    values: [f64; 5],
}

fn ask<T: DeserializeOwned>(case: &str) -> T {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/demo/pbmc_700.h5ad");
    serde_json::from_slice(&python::run("clusters.py", &[case, demo], "")).expect("the script prints JSON")
}

/// Fails unless connectivities and graph connectivity are those of the references; returns the graph.
fn assert_same_graph(name: &str, answer: &Answer) -> Graph {
    let neighbours = Neighbours {
        k: 14,
        indices: answer.indices.clone(),
        distances: answer.distances.clone(),
        search: Search::Exact,
    };
    let ours = Graph::connectivities(&neighbours);
    let theirs = Graph {
        indptr: answer.graph_indptr.clone(),
        indices: answer.graph_indices.clone(),
        weights: answer.graph_weights.clone(),
    };
    let mut worst = 0f32;
    for node in 0..ours.len() {
        let mut weights: std::collections::BTreeMap<usize, f32> = theirs.edges(node).collect();
        for (other, weight) in ours.edges(node) {
            worst = worst.max((weight - weights.remove(&other).unwrap_or(0.0)).abs());
        }
        worst = weights.values().fold(worst, |worst, weight| worst.max(*weight));
    }
    println!("{name}: {} edges, largest difference of weights {worst:.1e}", ours.indices.len());
    assert!(ours.len() == theirs.len() && worst < 1e-5, "{name}: weights differ by {worst}");
    let score = graph_connectivity(&neighbours, &Classes::of(&answer.labels)).value.expect("a value");
    let expected = answer.graph_connectivity;
    println!("{name}: graph connectivity {score}, scib-metrics {expected}");
    assert!((score - expected).abs() < 1e-12, "{name}: {score} {expected}");
    ours
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

/// Fails unless the median modularity of our runs is at least igraph's minus 0.1 %, at every resolution.
fn assert_modularity(name: &str, graph: &Graph, answer: &Answer) {
    for (index, &resolution) in answer.resolutions.iter().enumerate() {
        let again = modularity(graph, &answer.memberships[index], resolution);
        assert!((again - answer.modularity[index][0]).abs() < 1e-5, "{name} {resolution}: {again}");
        let runs: Vec<f64> = (0..SEEDS)
            .map(|seed| modularity(graph, &leiden(graph, resolution, 2, seed), resolution))
            .collect();
        let (ours, theirs) = (median(&runs), median(&answer.modularity[index]));
        println!("{name}: resolution {resolution}: modularity {ours:.5}, igraph {theirs:.5}");
        assert!(ours >= theirs - 1e-3 * theirs.abs(), "{name} {resolution}: {ours} {theirs}");
    }
}

/// Fails unless the chosen clustering agrees with the labels as igraph's do over its seeds, 0.005 beyond their spread.
fn assert_sweep(name: &str, graph: &Graph, answer: &Answer) {
    let truth = Classes::of(&answer.labels);
    let spread = |value: fn(&Sweep) -> f64| {
        let values = answer.sweeps.iter().map(value);
        (values.clone().fold(f64::MAX, f64::min) - 0.005, values.fold(f64::MIN, f64::max) + 0.005)
    };
    let (nmi, ari) = (spread(|sweep| sweep.nmi), spread(|sweep| sweep.ari));
    println!("{name}: igraph NMI {nmi:?} ARI {ari:?}");
    for sweep in &answer.sweeps {
        println!("{name}: igraph resolution {} clusters {}", sweep.resolution, sweep.clusters);
    }
    let found: Vec<_> = (0..SEEDS).map(|seed| match_labels(graph, &truth, seed, &|_| ())).collect();
    for one in &found {
        println!(
            "{name}: resolution {} clusters {} NMI {:.4} ARI {:.4}, {} tried",
            one.resolution, one.clusters, one.agreement.nmi, one.agreement.adjusted_rand, one.tried
        );
    }
    let within = |(low, high): (f64, f64), value: f64| (low..=high).contains(&value);
    let values: Vec<f64> = found.iter().map(|one| one.agreement.nmi).collect();
    assert!(within(nmi, values[0]) && within(nmi, median(&values)), "{name}: NMI {values:?} {nmi:?}");
    let values: Vec<f64> = found.iter().map(|one| one.agreement.adjusted_rand).collect();
    assert!(within(ari, values[0]) && within(ari, median(&values)), "{name}: ARI {values:?} {ari:?}");
}

#[test]
#[ignore = "judge: runs scanpy, igraph and scib-metrics"]
fn judge_clusters_on_pbmc() {
    let answer: Answer = ask("pbmc");
    let graph = assert_same_graph("pbmc", &answer);
    assert_modularity("pbmc", &graph, &answer);
    assert_sweep("pbmc", &graph, &answer);
}

#[test]
#[ignore = "judge: runs scanpy, igraph and scib-metrics"]
fn judge_clusters_on_overlapping_classes() {
    let answer: Answer = ask("overlap");
    let graph = assert_same_graph("overlap", &answer);
    assert_modularity("overlap", &graph, &answer);
    assert_sweep("overlap", &graph, &answer);
}

#[test]
#[ignore = "judge: runs scib-metrics"]
fn judge_connectivities_of_duplicates() {
    assert_same_graph("duplicates", &ask("duplicates"));
}

#[test]
#[ignore = "judge: runs scikit-learn"]
fn judge_agreement_equals_scikit_learn() {
    let answers: Vec<Partitions> = ask("agreement");
    assert!(answers.len() > 200);
    let mut worst = 0f64;
    for Partitions { truth, predicted, values } in &answers {
        let ours = Agreement::of(truth, predicted);
        let ours = [ours.nmi, ours.homogeneity, ours.completeness, ours.fowlkes_mallows, ours.adjusted_rand];
        for (a, b) in ours.iter().zip(values) {
            worst = worst.max((a - b).abs());
            assert!((a - b).abs() < 1e-12, "{truth:?} {predicted:?}: {ours:?}, scikit-learn {values:?}");
        }
    }
    println!("{} pairs of partitions, largest difference {worst:.1e}", answers.len());
}
