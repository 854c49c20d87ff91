//! The classifiers, and the projection of a query, against scikit-learn 1.9.1 on the same embeddings.
//!
//! `SCFOUNDRY_TEST_PYTHON` names a Python that has it; run with `cargo test --test transfer_judge -- --ignored judge`.

#[path = "judge/python.rs"]
mod python;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use scfoundry::kernel::classify::npy::{self, Values};
use serde::Deserialize;
use serde_json::{Value, json};

const CLASSIFIERS: [&str; 4] = ["prototype", "knn", "logreg", "mlp"];

/// What scikit-learn found.
#[derive(Deserialize)]
struct Answer {
    classes: Vec<String>,
    truth: Vec<String>,
    prototype: Vec<Vec<f64>>,
    knn: Vec<Vec<f64>>,
    logreg: Vec<Vec<f64>>,
    mlp: Vec<Vec<f64>>,
    coefficients: Vec<Vec<f64>>,
    intercepts: Vec<f64>,
    scores: BTreeMap<String, Scores>,
    projected: Option<f64>,
}

#[derive(Deserialize)]
struct Scores {
    accuracy: f64,
    macro_f1: f64,
    confusion: Vec<Vec<usize>>,
}

impl Answer {
    fn probabilities(&self, classifier: &str) -> &[Vec<f64>] {
        match classifier {
            "prototype" => &self.prototype,
            "knn" => &self.knn,
            "logreg" => &self.logreg,
            _ => &self.mlp,
        }
    }
}

fn scikit_learn(words: &[&str]) -> Vec<u8> {
    python::run("transfer.py", words, "")
}

fn demo(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(name)
}

fn kernel(name: &str, folder: &Path, specification: &Value) {
    let path = folder.join(format!("{name}.json"));
    std::fs::write(&path, specification.to_string()).expect("a specification is written");
    let output = Command::new(env!("CARGO_BIN_EXE_scfoundry"))
        .args(["kernel", name, "--spec"])
        .arg(&path)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Fits and predicts with every classifier, each into a folder of its own.
fn classify(folder: &Path, projection: Option<&Path>) {
    for classifier in CLASSIFIERS {
        let own = folder.join(classifier);
        std::fs::create_dir(&own).expect("a folder is made");
        let specification = json!({
            "reference": folder.join("reference.h5ad"), "query": folder.join("query.h5ad"),
            "fitted": null, "projection": projection, "output": own.join("model"),
            "labels": own.join("predicted_labels.tsv"), "probabilities": own.join("predicted_probs.tsv"),
            "report": own.join("report.json"), "method": "pca", "label_key": "cell_type",
            "classifier": classifier, "knn_k": 15,
        });
        kernel("classify", &own, &specification);
    }
}

fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).expect("a table is there");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn most(row: &[f64]) -> usize {
    let largest = row.iter().copied().fold(f64::MIN, f64::max);
    row.iter().position(|&value| value == largest).expect("a row has a largest value")
}

/// Share of cells, in percent, whose most probable class is the true one.
fn accuracy(probabilities: &[Vec<f64>], answer: &Answer) -> f64 {
    let right =
        probabilities.iter().zip(&answer.truth).filter(|(row, truth)| answer.classes[most(row)] == **truth);
    100.0 * right.count() as f64 / answer.truth.len() as f64
}

#[expect(clippy::print_stdout, reason = "shows how close the two are, beyond that they are close enough")]
fn compare(name: &str, folder: &Path) -> Answer {
    let answer: Answer =
        serde_json::from_slice(&scikit_learn(&["judge", folder.to_str().expect("a plain path")]))
            .expect("JSON");
    for classifier in CLASSIFIERS {
        let own = folder.join(classifier);
        let table = rows(&own.join("predicted_probs.tsv"));
        assert_eq!(table[0][1..], answer.classes);
        let ours: Vec<Vec<f64>> = table[1..]
            .iter()
            .map(|row| row[1..].iter().map(|cell| cell.parse().expect("a number")).collect())
            .collect();
        let theirs = answer.probabilities(classifier);
        assert_eq!(ours.len(), theirs.len());
        let largest = ours
            .iter()
            .flatten()
            .zip(theirs.iter().flatten())
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        let equal =
            ours.iter().zip(theirs).filter(|(a, b)| most(a) == most(b)).count() as f64 / ours.len() as f64;
        let (own_accuracy, their_accuracy) = (accuracy(&ours, &answer), accuracy(theirs, &answer));
        println!(
            "{name}, {classifier}: largest difference of probabilities {largest:.1e}, {:.2} % of labels equal, \
             accuracy {own_accuracy:.2} %, scikit-learn {their_accuracy:.2} %",
            equal * 100.0
        );
        let tolerance = match classifier {
            "prototype" | "knn" => 1e-6,
            "logreg" => 1e-3,
            _ => 1.0,
        };
        assert!(largest <= tolerance, "{name}, {classifier}: probabilities differ by {largest}");
        assert!(classifier == "mlp" || equal >= 0.999, "{name}, {classifier}: {equal} of labels are equal");
        // Networks that stop early differ by the cells they hold out; scikit-learn's is the worse one on few cells.
        let (least, most_off) =
            if classifier == "mlp" { (their_accuracy - 2.0, 100.0) } else { (their_accuracy - 1.0, 1.0) };
        assert!(
            own_accuracy >= least && (own_accuracy - their_accuracy).abs() <= most_off,
            "{name}, {classifier}: {own_accuracy} {their_accuracy}"
        );
        let report: Value =
            serde_json::from_slice(&std::fs::read(own.join("report.json")).expect("a report")).expect("JSON");
        let (ours, theirs) = (&report["scores"], &answer.scores[classifier]);
        assert_eq!(ours["accuracy"]["value"].as_f64(), Some(theirs.accuracy), "{name}, {classifier}");
        let macro_f1 = ours["macro_f1"]["value"].as_f64().expect("a number");
        assert!(
            (macro_f1 - theirs.macro_f1).abs() < 1e-12,
            "{name}, {classifier}: {macro_f1} {}",
            theirs.macro_f1
        );
        assert_eq!(ours["confusion"], json!(theirs.confusion), "{name}, {classifier}");
    }
    coefficients(folder, &answer);
    answer
}

/// The weights of logistic regression, within 1e-4 of the largest.
fn coefficients(folder: &Path, answer: &Answer) {
    let array = |name: &str| {
        let bytes = std::fs::read(folder.join("logreg/model").join(name)).expect("an array");
        match npy::decode(&bytes).expect("NumPy's format").values {
            Values::Float64(values) => values,
            other => panic!("{other:?}"),
        }
    };
    let theirs: Vec<f64> = answer.coefficients.iter().flatten().copied().collect();
    let largest = theirs.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    for (ours, theirs) in
        [(array("coefficients.npy"), theirs), (array("intercepts.npy"), answer.intercepts.clone())]
    {
        let worst = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert_eq!(ours.len(), theirs.len());
        assert!(worst < 1e-4 * largest.max(1.0), "weights differ by {worst} of {largest}");
    }
}

#[test]
#[ignore = "judge: runs scikit-learn"]
fn judge_classifiers_equal_scikit_learn_on_seeded_embeddings() {
    for (cells, dims) in [(5000, 40), (400, 8)] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_str().expect("a plain path");
        scikit_learn(&["make", path, &cells.to_string(), &dims.to_string()]);
        classify(folder.path(), None);
        compare(&format!("{cells} cells"), folder.path());
    }
}

#[test]
#[ignore = "judge: runs scikit-learn"]
fn judge_transfer_with_pca_equals_scikit_learn_on_the_demo_pair() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    kernel(
        "pca",
        folder.path(),
        &json!({"data": demo("pbmc_reference_500.h5ad"), "output": at("reference.h5ad"), "projection": at("projection")}),
    );
    std::fs::copy(demo("pbmc_query_200.h5ad"), at("query_counts.h5ad")).expect("a copy");
    kernel(
        "pca-project",
        folder.path(),
        &json!({"data": at("query_counts.h5ad"), "output": at("query.h5ad"), "projection": at("projection")}),
    );
    classify(folder.path(), Some(&at("projection")));
    let answer = compare("demo", folder.path());
    let difference = answer.projected.expect("the projection is judged");
    assert!(difference < 1e-4, "the projection differs by {difference}");
}
