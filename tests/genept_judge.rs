//! The genept kernel against NumPy, with tables of gene vectors as Python pickles them.
//!
//! `SCFOUNDRY_TEST_PYTHON` names a Python that has it; run with `cargo test --test genept_judge -- --ignored judge`.

#[path = "judge/python.rs"]
mod python;

use std::path::Path;
use std::process::{Command, Output};

use scfoundry::h5ad::{H5ad, Slot};
use scfoundry::matrix::RowBlocks;
use serde::Deserialize;
use serde_json::json;

const DIMS: usize = 77;

/// What NumPy found, and the tables that all have the same vectors.
#[derive(Deserialize)]
struct Answer {
    tables: Vec<String>,
    expected: Vec<f64>,
    shared: Vec<f64>,
    matched: usize,
}

/// Embeds the demo file with a table of `folder`.
fn embed(folder: &Path, table: &str, demo: &Path) -> Output {
    let (spec, output) = (folder.join("spec.json"), folder.join("embedding.h5ad"));
    let rules = json!({"columns": ["feature_name"], "minimum_matched": 0.1});
    let told = json!({
        "data": demo, "output": output, "model": table, "model_files": [folder.join(table)], "genes": rules,
    });
    std::fs::write(&spec, told.to_string()).expect("the file can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_scfoundry"));
    command.args(["kernel", "genept", "--spec"]).arg(&spec).output().expect("the program starts")
}

fn values(folder: &Path) -> Vec<f64> {
    let file = H5ad::open(&folder.join("embedding.h5ad")).expect("an embedding");
    let mut values = vec![0.0; file.n_obs() * DIMS];
    let matrix = file.matrix(&Slot::X).expect("X");
    assert_eq!(matrix.shape(), (700, DIMS));
    matrix
        .for_each_block(&mut |block| {
            for row in 0..block.rows() {
                let (columns, entries) = block.row(row);
                for (column, entry) in columns.iter().zip(entries) {
                    values[(block.first_row + row) * DIMS + *column as usize] = *entry;
                }
            }
            Ok(())
        })
        .expect("X can be read");
    values
}

fn worst(ours: &[f64], theirs: &[f64]) -> f64 {
    assert_eq!(ours.len(), theirs.len());
    let size = theirs.iter().map(|value| value * value).sum::<f64>() / theirs.len() as f64;
    ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / size.sqrt()
}

#[test]
#[ignore = "judge: runs NumPy"]
fn judge_genept_equals_numpy_with_tables_as_python_pickles_them() {
    let folder = tempfile::tempdir().expect("a place for files");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/pbmc_700.h5ad");
    let words = [folder.path().as_os_str(), demo.as_os_str()];
    let answer: Answer =
        serde_json::from_slice(&python::run("genept.py", &words, "")).expect("the script prints JSON");
    assert!(answer.tables.len() > 10);
    let cases = answer.tables.iter().map(|table| (table.as_str(), &answer.expected));
    for (table, expected) in cases.chain([("shared.pickle", &answer.shared)]) {
        let ended = embed(folder.path(), table, &demo);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{table}: {said}");
        assert!(
            said.contains(&format!("{} of 765 genes have a vector, by var_names", answer.matched)),
            "{said}"
        );
        let worst = worst(&values(folder.path()), expected);
        println!("{table}: largest difference {worst:.1e} of the mean size");
        assert!(worst < 1e-5, "{table}: {worst}");
    }
}
