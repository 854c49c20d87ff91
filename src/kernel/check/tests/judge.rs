//! The facts of every fixture against those of anndata and numpy.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::super::{Request, check};
use super::case_path;
use crate::h5ad::H5ad;

/// Fixtures that anndata 0.12 cannot read: broken ones, a scalar category, nested groups in obs.
const UNREADABLE_TO_ANNDATA: [&str; 5] = [
    "a03_scalar_category.h5ad",
    "a08_empty.h5ad",
    "a08_not_hdf5.h5ad",
    "a08_truncated.h5ad",
    "a12_slash_key.h5ad",
];

fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(case_path(""))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "h5ad"))
        .collect();
    let demo = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("demo/pbmc_700.h5ad");
    files.extend(demo.exists().then_some(demo));
    files.sort();
    files
}

fn judged(files: &[PathBuf]) -> Vec<Value> {
    let python = std::env::var_os("SCFOUNDRY_TEST_PYTHON")
        .expect("set SCFOUNDRY_TEST_PYTHON to a Python that has anndata");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/kernel/check/tests/judge.py");
    let output = Command::new(python).arg(script).args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn assert_close(ours: &Value, theirs: &Value, what: &str) {
    let (a, b) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{what}: {a} is not {b}");
}

/// Compares one file; gives the number of columns compared, which are those that could be labels.
fn compare(path: &Path, theirs: &Value) -> usize {
    let data = H5ad::open(path).unwrap();
    let name = path.display();
    let ours = serde_json::to_value(check(&data, &Request::default()).unwrap()).unwrap();
    assert_eq!((&ours["cells"], &ours["genes"]), (&theirs["cells"], &theirs["genes"]), "{name}");
    let matrix = &ours["facts"]["matrix"];
    for key in ["nnz", "integer", "negative", "fractional", "nan", "infinite", "empty_cells", "empty_genes"] {
        assert_eq!(matrix[key], theirs[key], "{name}: {key}");
    }
    for key in ["sum", "min", "max", "median_cell_sum", "median_cell_genes"] {
        assert_close(&matrix[key], &theirs[key], &format!("{name}: {key}"));
    }
    let is_continuous = |facts: &Value| facts["classes"].as_object().unwrap().len() > 100;
    let columns = theirs["columns"].as_object().unwrap().iter().filter(|column| !is_continuous(column.1));
    let mut compared = 0;
    for (column, theirs) in columns {
        compared += 1;
        let request = Request { label_key: Some(column), batch_key: Some(column), ..Request::default() };
        let report = serde_json::to_value(check(&data, &request).unwrap()).unwrap();
        for facts in [&report["facts"]["labels"], &report["facts"]["batches"]] {
            assert_eq!(facts["missing"], theirs["missing"], "{name}: {column}");
            let classes: serde_json::Map<String, Value> = (facts["classes"].as_array().unwrap().iter())
                .map(|class| (class["name"].as_str().unwrap().to_owned(), class["cells"].clone()))
                .collect();
            assert_eq!(Value::from(classes), theirs["classes"], "{name}: {column}");
        }
    }
    compared
}

#[test]
#[ignore = "judge: anndata"]
fn judge_facts_equal_anndata() {
    let files = files();
    let mut unreadable = Vec::new();
    let mut columns = 0;
    for (path, judged) in files.iter().zip(judged(&files)) {
        match &judged["facts"] {
            Value::Null => unreadable.push(path.file_name().unwrap().to_str().unwrap().to_owned()),
            facts => columns += compare(path, facts),
        }
    }
    assert_eq!(unreadable, UNREADABLE_TO_ANNDATA);
    assert!(files.len() >= 28 && columns >= 60, "{} files, {columns} columns", files.len());
}
