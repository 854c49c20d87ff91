//! The harmony kernel against harmonypy 0.0.10, which the tests run.
//!
//! `SCFOUNDRY_TEST_PYTHON` names a Python that has it; run with `cargo test --test harmony_judge -- --ignored judge`.

#[path = "judge/python.rs"]
mod python;

use std::path::Path;
use std::process::Command;

use scfoundry::h5ad::{H5ad, Slot};
use scfoundry::kernel::classify::npy;
use scfoundry::kernel::harmony::{Params, harmonise, harmonise_from};
use scfoundry::kernel::points::{Classes, Points};
use scfoundry::matrix::RowBlocks;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn ask<T: DeserializeOwned>(requests: &[Value]) -> Vec<T> {
    let answers = python::run("harmony.py", &[Value::from(requests).to_string()], "");
    serde_json::from_slice(&answers).expect("the script prints JSON")
}

/// What harmonypy was given and what it found.
#[derive(Deserialize)]
struct Exact {
    points: Vec<f32>,
    batches: Vec<String>,
    centroids: Vec<f64>,
    corrected: Vec<f64>,
    objective: Vec<f64>,
    rounds: Vec<usize>,
}

#[test]
#[ignore = "judge: runs harmonypy"]
fn judge_harmony_equals_harmonypy_from_the_same_start() {
    let requests = [
        json!({"case": "exact", "seed": 1, "cells": 600, "dims": 20, "batches": 2, "clusters": 20, "block_size": 1.0}),
        json!({"case": "exact", "seed": 2, "cells": 1500, "dims": 30, "batches": 3, "clusters": 50, "block_size": 0.05}),
        json!({"case": "exact", "seed": 3, "cells": 2111, "dims": 11, "batches": 7, "clusters": 33, "block_size": 0.05}),
        json!({"case": "exact", "seed": 4, "cells": 400, "dims": 50, "batches": 2, "clusters": 13, "block_size": 0.3}),
    ];
    for (request, answer) in requests.iter().zip(ask::<Exact>(&requests)) {
        let dims = request["dims"].as_u64().expect("a number") as usize;
        let share = request["block_size"].as_f64().expect("a number");
        let params = Params { block_share: share, shuffle: false, ..Params::default() };
        let points = Points::new(answer.points, dims);
        let batches = Classes::of(&answer.batches);
        let ours = harmonise_from(&points, &batches, &answer.centroids, &params, &|_, _| ());
        let size =
            answer.corrected.iter().map(|value| value * value).sum::<f64>() / answer.corrected.len() as f64;
        let pairs = ours.values.iter().zip(&answer.corrected);
        let worst = pairs.map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max) / size.sqrt();
        let moved = points.values().iter().zip(&answer.corrected);
        let moved = moved.map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max) / size.sqrt();
        println!(
            "{request}: largest difference {worst:.1e} of the mean size, where cells move by up to {moved:.2}"
        );
        assert_eq!(ours.rounds, answer.rounds, "{request}: rounds");
        assert!(worst < 1e-5, "{request}: {worst}");
        for (a, b) in ours.objective.iter().zip(&answer.objective) {
            assert!((a / b - 1.0).abs() < 1e-5, "{request}: objective {a}, harmonypy {b}");
        }
    }
}

#[derive(Debug, Deserialize)]
struct Scores {
    batch_lisi: f64,
    type_lisi: f64,
    accuracy: f64,
}

#[derive(Debug, Deserialize)]
struct Compared {
    before: Scores,
    harmonypy: Scores,
    ours: Scores,
}

/// Asks how embeddings (row-major, cells x dims) score beside what harmonypy makes of the same points with its own start.
#[expect(clippy::print_stdout, reason = "shows how close the two are, beyond that they are close enough")]
fn compared(embeddings: Vec<(Value, Vec<f32>, usize)>) -> Vec<Compared> {
    let folder = tempfile::tempdir().expect("a place for files");
    let requests: Vec<Value> = embeddings
        .into_iter()
        .enumerate()
        .map(|(index, (of, values, dims))| {
            let given = folder.path().join(format!("{index}.npy"));
            let array =
                npy::Array { shape: vec![values.len() / dims, dims], values: npy::Values::Float32(values) };
            std::fs::write(&given, npy::encode(&array)).expect("the file can be written");
            json!({"case": "score", "of": of, "given": given})
        })
        .collect();
    let answers: Vec<Compared> = ask(&requests);
    for (request, answer) in requests.iter().zip(&answers) {
        println!("{}: {answer:?}", request["of"]);
    }
    answers
}

#[derive(Deserialize)]
struct Given {
    points: Vec<f32>,
    batches: Vec<String>,
}

#[test]
#[ignore = "judge: runs harmonypy"]
fn judge_harmony_mixes_batches_as_harmonypy_does_from_its_own_start() {
    let requests = [
        json!({"case": "points", "seed": 11, "cells": 3000, "dims": 30, "types": 8, "batches": 3}),
        json!({"case": "points", "seed": 12, "cells": 2000, "dims": 20, "types": 5, "batches": 6}),
    ];
    let ours = requests.iter().zip(ask::<Given>(&requests)).map(|(request, given)| {
        let dims = request["dims"].as_u64().expect("a number") as usize;
        let points = Points::new(given.points, dims);
        let ours = harmonise(&points, &Classes::of(&given.batches), &Params::default(), &|_, _| ());
        (request.clone(), ours.values, dims)
    });
    for Compared { before, harmonypy, ours } in compared(ours.collect()) {
        // These batches are far apart: hardly any cell has a neighbour of another one.
        assert!(before.batch_lisi < 1.1 && ours.batch_lisi > before.batch_lisi + 0.5, "{before:?}, {ours:?}");
        assert!((ours.batch_lisi / harmonypy.batch_lisi - 1.0).abs() < 0.05, "{ours:?}, {harmonypy:?}");
        assert!((ours.type_lisi - harmonypy.type_lisi).abs() < 0.03, "{ours:?}, {harmonypy:?}");
        assert!((ours.accuracy - harmonypy.accuracy).abs() < 0.01, "{ours:?}, {harmonypy:?}");
    }
}

#[test]
#[ignore = "judge: runs harmonypy"]
fn judge_harmony_of_the_demo_file_is_like_scanpy_and_harmonypy() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/pbmc_700.h5ad");
    let folder = tempfile::tempdir().expect("a place for files");
    let (spec, output) = (folder.path().join("spec.json"), folder.path().join("embedding.h5ad"));
    let told = json!({"data": data, "output": output, "batch_key": "batch_id", "seurat_n_hvg": 300, "seurat_n_pcs": 30});
    std::fs::write(&spec, told.to_string()).expect("the file can be written");
    let ended = Command::new(env!("CARGO_BIN_EXE_scfoundry"))
        .args(["kernel", "harmony", "--spec"])
        .arg(&spec)
        .output();
    let ended = ended.expect("the program starts");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let file = H5ad::open(&output).expect("an embedding");
    let mut values = vec![0f32; file.n_obs() * 30];
    let matrix = file.matrix(&Slot::X).expect("X");
    matrix
        .for_each_block(&mut |block| {
            for row in 0..block.rows() {
                let (columns, entries) = block.row(row);
                for (column, entry) in columns.iter().zip(entries) {
                    values[(block.first_row + row) * 30 + *column as usize] = *entry as f32;
                }
            }
            Ok(())
        })
        .expect("X can be read");
    let of = json!({"case": "demo", "data": data, "n_top": 300, "n_comps": 30});
    for Compared { before, harmonypy, ours } in compared(vec![(of, values, 30)]) {
        // The wells of one run mix by themselves: nothing is to be gained here, and no type to be lost.
        assert!(ours.batch_lisi > before.batch_lisi - 0.1, "{before:?}, {ours:?}");
        assert!((ours.batch_lisi / harmonypy.batch_lisi - 1.0).abs() < 0.05, "{ours:?}, {harmonypy:?}");
        assert!((ours.type_lisi - harmonypy.type_lisi).abs() < 0.05, "{ours:?}, {harmonypy:?}");
        assert!((ours.accuracy - harmonypy.accuracy).abs() < 0.02, "{ours:?}, {harmonypy:?}");
    }
}
