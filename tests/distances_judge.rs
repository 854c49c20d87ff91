//! Neighbours, silhouettes and k-means against scikit-learn 1.9.1, which the tests run.
//!
//! `SCFOUNDRY_TEST_PYTHON` names a Python that has scikit-learn; run with
//! `cargo test --test distances_judge -- --ignored judge`.

#[path = "judge/python.rs"]
mod python;

use scfoundry::kernel::kmeans::kmeans;
use scfoundry::kernel::neighbours::nearest;
use scfoundry::kernel::points::{Classes, Points};
use scfoundry::kernel::silhouette::{asw, samples};
use serde::Deserialize;
use serde_json::{Value, json};

/// What scikit-learn was given and what it found.
#[derive(Deserialize)]
struct Answer {
    values: Vec<f32>,
    labels: Vec<String>,
    indices: Vec<u32>,
    distances: Vec<f64>,
    silhouettes: Vec<f64>,
    asw: f64,
    inertia: Option<f64>,
}

fn ask_scikit_learn(requests: &[Value]) -> Vec<Answer> {
    let answers = python::run("distances.py", &[Value::from(requests).to_string()], "");
    serde_json::from_slice(&answers).expect("the script prints JSON")
}

/// Embeddings of the demo's size and of 5,000 cells, at the origin and away from it, apart and overlapping.
fn requests() -> Vec<Value> {
    vec![
        json!({"seed": 1, "cells": 700, "dims": 50, "classes": 10, "spread": 0.7, "offset": 0, "k": 15, "clusters": 10}),
        json!({"seed": 2, "cells": 700, "dims": 12, "classes": 4, "spread": 0.2, "offset": 1000, "k": 90, "clusters": 6}),
        json!({"seed": 3, "cells": 5000, "dims": 50, "classes": 20, "spread": 0.5, "offset": 0, "k": 90, "clusters": 20}),
        json!({"seed": 4, "cells": 5000, "dims": 512, "classes": 15, "spread": 0.2, "offset": 1000, "k": 15, "clusters": 0}),
        json!({"seed": 5, "cells": 5000, "dims": 3, "classes": 8, "spread": 2, "offset": 1000, "k": 50, "clusters": 8}),
    ]
}

#[test]
#[ignore = "judge: runs scikit-learn"]
fn judge_distances_equal_scikit_learn() {
    let requests = requests();
    for (request, answer) in requests.iter().zip(ask_scikit_learn(&requests)) {
        let points = Points::new(answer.values, request["dims"].as_u64().expect("a number") as usize);
        let k = request["k"].as_u64().expect("a number") as usize;

        // Distances within 1e-6 of themselves, the same sets but for ties in float64.
        let found = nearest(&points, k, &|_| ());
        let mut worst = 0f64;
        let mut tied = 0;
        for cell in 0..points.len() {
            let (indices, distances) = found.row(cell);
            let (theirs, exact) = (&answer.indices[cell * k..][..k], &answer.distances[cell * k..][..k]);
            for (ours, theirs) in distances.iter().zip(exact) {
                worst = worst.max((f64::from(*ours) / theirs - 1.0).abs());
            }
            let (mut ours, mut theirs) = (indices.to_vec(), theirs.to_vec());
            ours.sort_unstable();
            theirs.sort_unstable();
            tied += usize::from(ours != theirs);
        }
        assert!(worst < 1e-6, "{request}: a distance is off by {worst} of itself");
        assert_eq!(tied, 0, "{request}: sets of neighbours differ");

        let classes = Classes::of(&answer.labels);
        let mut far = 0f64;
        for (ours, theirs) in samples(&points, &classes).iter().zip(&answer.silhouettes) {
            far = far.max((ours - theirs).abs() / theirs.abs().max(1e-3));
        }
        let width = asw(&points, &classes, &|_| ()).value.expect("a silhouette");
        let off = (width / answer.asw - 1.0).abs();
        println!("{request}: distances {worst:.1e}, silhouettes {far:.1e}, ASW {off:.1e} of themselves");
        assert!(far < 1e-6 && off < 1e-6, "{request}: silhouettes {far}, ASW {off}");

        if let Some(inertia) = answer.inertia {
            let clusters = request["clusters"].as_u64().expect("a number") as usize;
            let ours = kmeans(&points, clusters, 10, 1, &|_| ()).inertia;
            println!("{request}: inertia {ours}, scikit-learn {inertia}");
            assert!(ours <= inertia * 1.01, "{request}: inertia {ours}, scikit-learn {inertia}");
        }
    }
}
