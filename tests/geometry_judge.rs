//! The geometry kernel against its definitions in numpy, scipy and scikit-learn, which the tests run.
//!
//! `SCFOUNDRY_TEST_PYTHON` names a Python that has them; run with `cargo test --test geometry_judge -- --ignored judge`.

#[path = "judge/python.rs"]
mod python;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Largest relative difference of an exact metric.
const TOLERANCE: f64 = 1e-6;

/// Draws of the same pairs' mean lie this many standard errors apart at most.
const STANDARD_ERRORS: f64 = 4.0;

const EXACT: [&str; 11] = [
    "pr",
    "npr",
    "aniso_spec",
    "rnx_k15",
    "rnx_k30",
    "rnx_k50",
    "rnx_mean",
    "id_twonn_raw",
    "id_twonn_z",
    "partial_eta2_celltype",
    "partial_eta2_batch",
];

fn reference(words: &[&str]) -> Value {
    serde_json::from_slice(&python::run("geometry.py", words, "")).expect("the script prints JSON")
}

fn ours(folder: &Path, embedding: &str, data: &str) -> Value {
    let record = folder.join("record.json");
    let spec = json!({
        "embedding": embedding, "data": data, "embedding_file": embedding, "dataset": "judge", "method": "judge",
        "label_key": "cell_type", "batch_key": "batch_id", "max_cells": 20000, "seed": 0,
        "table": folder.join("table.csv"), "record": record,
    });
    let file = folder.join("spec.json");
    std::fs::write(&file, spec.to_string()).expect("the folder is writable");
    let output = Command::new(env!("CARGO_BIN_EXE_scfoundry"))
        .args(["kernel", "geometry", "--spec"])
        .arg(file)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = std::fs::read(record).expect("the record is written");
    serde_json::from_slice::<Value>(&bytes).expect("it is JSON")["row"].clone()
}

#[expect(clippy::print_stdout, reason = "shows how close the two are, beyond that they are close enough")]
fn compare(name: &str, ours: &Value, theirs: &Value) {
    let mut worst: f64 = 0.0;
    for metric in EXACT {
        match (ours[metric].as_f64(), theirs[metric].as_f64()) {
            (Some(a), Some(b)) => {
                let difference = (a - b).abs() / b.abs().max(1e-3);
                assert!(difference <= TOLERANCE, "{name}: {metric} is {a}, the reference {b}");
                worst = worst.max(difference);
            }
            (a, b) => assert_eq!(a, b, "{name}: {metric}"),
        }
    }
    for metric in ["aniso_cos", "aniso_cos_within_ct", "aniso_cos_between_ct"] {
        let a = ours[metric].as_f64().expect("there are pairs");
        let [b, error] = ["mean", "error"].map(|key| theirs[metric][key].as_f64().expect("a number"));
        assert!(
            (a - b).abs() <= STANDARD_ERRORS * error,
            "{name}: {metric} is {a}, over all pairs {b} ± {error}"
        );
    }
    for metric in ["id_twonn_raw_n_cells", "id_twonn_z_n_cells", "rnx_n_batches", "rnx_eligible_cells"] {
        assert_eq!(ours[metric], theirs[metric], "{name}: {metric}");
    }
    println!("{name}: largest relative difference {worst:.1e}");
}

#[test]
#[ignore = "judge: runs numpy and scikit-learn"]
fn judge_geometry_of_made_data() {
    for (cells, dims, genes, seed) in
        [("700", "20", "900", "1"), ("600", "700", "2600", "2"), ("5000", "40", "4000", "3")]
    {
        let folder = tempfile::tempdir().expect("there is room");
        let [embedding, data] = ["embedding.h5ad", "data.h5ad"]
            .map(|name| folder.path().join(name).to_str().expect("UTF-8").to_owned());
        reference(&["make", &embedding, &data, cells, dims, genes, seed]);
        let theirs = reference(&["judge", &embedding, &data]);
        compare(&format!("{cells} x {dims}"), &ours(folder.path(), &embedding, &data), &theirs);
    }
}
