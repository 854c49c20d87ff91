//! The metrics of labels and batches against scib-metrics 0.5.10 and scikit-learn 1.9, which the tests run.
//!
//! `SCFOUNDRY_TEST_PYTHON` names a Python that has them; run with `cargo test --test mixing_judge -- --ignored judge`.

#[path = "judge/python.rs"]
mod python;

use std::path::Path;

use scfoundry::kernel::accuracy::{folds, knn_accuracy};
use scfoundry::kernel::bras::bras;
use scfoundry::kernel::graph::Graph;
use scfoundry::kernel::kbet::{kbet, kbet_per_label};
use scfoundry::kernel::lisi::{clisi, ilisi, lisi};
use scfoundry::kernel::neighbours::{Neighbours, Search, nearest};
use scfoundry::kernel::points::{Classes, Points};
use serde::Deserialize;
use serde_json::{Value, json};

/// Share of cells that kBET may judge otherwise than the same steps in numpy: neighbours nearly as far as the last.
const KBET_STEPS: f64 = 1e-3;

/// Difference allowed of a label's kBET from the published one, whose neighbours are approximate.
const KBET_PUBLISHED: f64 = 0.02;

/// What the references were given and what they found.
#[derive(Deserialize)]
struct Answer {
    dims: usize,
    points: Vec<f32>,
    labels: Vec<String>,
    batches: Vec<String>,
    indices: Vec<u32>,
    distances: Vec<f32>,
    lisi_labels: Vec<f64>,
    lisi_batches: Vec<f64>,
    clisi: f64,
    ilisi: f64,
    bras: f64,
    accuracy: Option<f64>,
    kbet: Option<Kbet>,
}

#[derive(Deserialize)]
struct Kbet {
    indptr: Vec<usize>,
    indices: Vec<u32>,
    weights: Vec<f32>,
    exact: Vec<Option<f64>>,
    published: Vec<Option<f64>>,
}

fn ask(request: &Value) -> Answer {
    let answer = python::run::<&str>("mixing.py", &[], &request.to_string());
    serde_json::from_slice(&answer).expect("the script prints JSON")
}

fn largest_relative(ours: &[f64], theirs: &[f64]) -> f64 {
    assert_eq!(ours.len(), theirs.len());
    ours.iter().zip(theirs).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max)
}

/// Fails unless every metric is what the references find.
#[expect(clippy::print_stdout, reason = "shows how close the two are, beyond that they are close enough")]
fn assert_equal(name: &str, mut request: Value) {
    let first = ask(&request);
    let labels = Classes::of(&first.labels);
    let seed = 42;
    let dealt: Vec<i32> = folds(&labels, seed).iter().map(|fold| fold.map_or(-1, i32::from)).collect();
    request["folds"] = json!(dealt);
    request["kbet"] = json!(true);
    let answer = ask(&request);
    let (points, batches) = (Points::new(answer.points, answer.dims), Classes::of(&answer.batches));

    let given =
        Neighbours { k: 89, indices: answer.indices, distances: answer.distances, search: Search::Exact };
    let of_labels = largest_relative(&lisi(&given, &labels, 30.0), &answer.lisi_labels);
    let of_batches = largest_relative(&lisi(&given, &batches, 30.0), &answer.lisi_batches);
    println!("{name}: LISI off by {of_labels:.1e} and {of_batches:.1e} of itself");
    assert!(of_labels < 1e-6 && of_batches < 1e-6, "{name}: {of_labels} {of_batches}");
    // The published scores rest on entropies that are off by up to 1e-5.
    let scores = [
        ("cLISI", clisi(&given, &labels, 30.0), answer.clisi, 1e-4),
        ("iLISI", ilisi(&given, &batches, 30.0), answer.ilisi, 1e-4),
        ("BRAS", bras(&points, &labels, &batches), answer.bras, 1e-6),
        (
            "accuracy",
            knn_accuracy(&points, &nearest(&points, 89, &|_| ()), &labels, seed),
            answer.accuracy.expect("folds were given"),
            1e-12,
        ),
    ];
    for (metric, score, theirs, tolerance) in scores {
        let ours = score.value.expect(metric);
        println!("{name}: {metric} {ours:.8}, reference {theirs:.8}");
        assert!((ours - theirs).abs() < tolerance, "{name}: {metric} {ours} {theirs}");
    }

    let theirs = answer.kbet.expect("kBET was asked for");
    let graph = Graph { indptr: theirs.indptr, indices: theirs.indices, weights: theirs.weights };
    let outcomes = kbet_per_label(&graph, &labels, &batches, &|_| ());
    for (index, outcome) in outcomes.iter().enumerate() {
        let (ours, label) = (outcome.score(), &labels.names[index]);
        let (exact, published) = (theirs.exact[index], theirs.published[index]);
        println!("{name}: kBET of {label} {ours:?}, the same steps {exact:?}, published {published:?}");
        let (Some(ours), Some(exact), Some(published)) = (ours, exact, published) else {
            assert!(ours.is_none() && exact.is_none(), "{name}: {label} {ours:?} {exact:?}");
            continue;
        };
        let cells = labels.sizes()[index] as f64;
        assert!((ours - exact).abs() <= KBET_STEPS.max(1.01 / cells), "{name}: {label} {ours} {exact}");
        assert!((ours - published).abs() < KBET_PUBLISHED, "{name}: {label} {ours} {published}");
    }
    let whole = kbet(&graph, &labels, &batches, &|_| ());
    assert!(whole.value.is_some(), "{whole:?}");
}

#[test]
#[ignore = "judge: runs scib-metrics"]
fn judge_mixing_equals_scib_on_pbmc() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/pbmc_700.h5ad");
    assert_equal("pbmc", json!({"case": "pbmc", "file": file}));
}

#[test]
#[ignore = "judge: runs scib-metrics"]
fn judge_mixing_equals_scib_on_blobs() {
    assert_equal("blobs", json!({"case": "blobs", "seed": 1, "cells": 5000}));
}
