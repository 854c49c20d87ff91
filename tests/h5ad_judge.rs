//! h5py and anndata judge the reader and the writer of .h5ad.
//!
//! `SCFOUNDRY_TEST_PYTHON` names a Python with anndata, h5py, pandas and scipy.

// Helpers of an integration test are not in test functions, where clippy would allow it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use scfoundry::h5ad::{EmbeddingRef, Extent, Frame, H5ad, Slot, UnsValue, write_cells, write_embedding};
use scfoundry::matrix::RowBlocks;
use serde_json::Value;

fn python(script: &str, arguments: &[&Path]) {
    let python = std::env::var_os("SCFOUNDRY_TEST_PYTHON")
        .expect("set SCFOUNDRY_TEST_PYTHON to a Python with anndata, h5py, pandas and scipy");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/judge").join(script);
    let output = Command::new(python).arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn made(directory: &Path) -> BTreeMap<String, Value> {
    python("h5ad_make.py", &[directory]);
    serde_json::from_slice(&std::fs::read(directory.join("expected.json")).unwrap()).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn check_matrix(name: &str, file: &H5ad, slot: &Slot, expected: &Value) {
    let matrix = file.matrix(slot).unwrap_or_else(|error| panic!("{name} {slot}: {error}"));
    let (mut indptr, mut indices, mut bits) = (vec![0_u64], Vec::new(), Vec::new());
    matrix
        .for_each_block(&mut |block| {
            for row in 0..block.rows() {
                let (row_indices, values) = block.row(row);
                indices.extend(row_indices.iter().map(|&index| u64::from(index)));
                bits.extend(values.iter().map(|value| match value.is_nan() {
                    true => f64::NAN.to_bits().to_string(),
                    false => value.to_bits().to_string(),
                }));
                indptr.push(indices.len() as u64);
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{name} {slot}: {error}"));
    let (rows, columns) = matrix.shape();
    assert_eq!(serde_json::json!([rows, columns]), expected["shape"], "{name} {slot}");
    assert_eq!(serde_json::json!(indptr), expected["indptr"], "{name} {slot}");
    assert_eq!(serde_json::json!(indices), expected["indices"], "{name} {slot}");
    assert_eq!(serde_json::json!(bits), expected["bits"], "{name} {slot}");
}

fn check_frame(name: &str, frame: &Frame, expected: &Value) {
    assert_eq!(frame.index(), texts(&expected["index"]), "{name}");
    let columns = expected["columns"].as_object().unwrap();
    assert_eq!(frame.column_names(), columns.keys().cloned().collect::<Vec<_>>(), "{name}");
    for (column_name, expected) in columns {
        let column =
            frame.column(column_name).unwrap_or_else(|error| panic!("{name} {column_name}: {error}"));
        assert_eq!(column.kind(), expected["kind"], "{name} {column_name}");
        let labels = column.labels();
        assert_eq!(labels.classes, texts(&expected["classes"]), "{name} {column_name}");
        assert_eq!(serde_json::json!(labels.codes), expected["codes"], "{name} {column_name}");
    }
}

fn slot(name: &str) -> Slot {
    match name.strip_prefix("layers/") {
        Some(layer) => Slot::Layer(layer.to_owned()),
        None if name == "X" => Slot::X,
        None => Slot::Raw,
    }
}

#[test]
#[ignore = "judge: needs SCFOUNDRY_TEST_PYTHON"]
fn judge_h5ad_reads_what_h5py_and_anndata_write() {
    let directory = tempfile::tempdir().unwrap();
    let (mut matrices, mut frames, mut refusals) = (0, 0, 0);
    for (name, expected) in made(directory.path()) {
        let path = directory.path().join(format!("{name}.h5ad"));
        let file = H5ad::open(&path);
        if let Some(words) = expected.get("error") {
            let read = file.and_then(|file| {
                file.matrix(&Slot::X)?.for_each_block(&mut |_| Ok(()))?;
                Ok(())
            });
            let error = read.expect_err(&name).to_string();
            for word in texts(words) {
                assert!(error.contains(&word) && !error.contains('\n'), "{name}: no {word:?} in {error:?}");
            }
            refusals += 1;
            continue;
        }
        let file = file.unwrap_or_else(|error| panic!("{name}: {error}"));
        for (slot_name, expected) in expected["matrices"].as_object().unwrap() {
            check_matrix(&name, &file, &slot(slot_name), expected);
            matrices += 1;
        }
        for (slot_name, dtype) in expected.get("dtypes").and_then(Value::as_object).into_iter().flatten() {
            assert_eq!(file.matrix(&slot(slot_name)).unwrap().dtype(), dtype, "{name} {slot_name}");
        }
        if let Some(obs) = expected.get("obs") {
            check_frame(&name, file.obs(), obs);
            assert_eq!(file.obsm_keys(), texts(&expected["obsm"]), "{name}");
            frames += 1;
        }
    }
    assert!(matrices > 400 && frames >= 6 && refusals >= 15, "{matrices} {frames} {refusals}");
}

#[test]
#[ignore = "judge: needs SCFOUNDRY_TEST_PYTHON"]
fn judge_h5ad_embedding_comes_back_through_anndata() {
    let directory = tempfile::tempdir().unwrap();
    let (sources, results) = (directory.path().join("sources"), directory.path().join("results"));
    std::fs::create_dir(&sources).unwrap();
    std::fs::create_dir(&results).unwrap();
    let mut names: Vec<String> = made(&sources)
        .into_iter()
        .filter(|(_, case)| case.get("obs").is_some())
        .map(|(name, _)| name)
        .collect();
    let cases = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases");
    for case in [
        "a01_categories_0_7",
        "a05_nullable_bool_int",
        "a10_lzf",
        "a18_unused_categories",
        "b07_nan_inf_embedding",
    ] {
        std::fs::copy(cases.join(format!("{case}.h5ad")), sources.join(format!("{case}.h5ad"))).unwrap();
        names.push(case.to_owned());
    }
    for name in &names {
        let source = H5ad::open(&sources.join(format!("{name}.h5ad"))).unwrap();
        let dims = 5;
        let values: Vec<f32> = (0..source.n_obs() * dims).map(|position| (position as f32).sqrt()).collect();
        let uns = [
            ("scfoundry/method", UnsValue::Text("pca é".into())),
            ("scfoundry/cells", UnsValue::Integer(source.n_obs() as i64)),
            ("scfoundry/pca/total", UnsValue::Float(0.25)),
            ("pca/variance_ratio", UnsValue::Floats(vec![0.5, 0.25])),
            ("genes", UnsValue::Texts(vec!["CD3E".into(), "".into()])),
            ("none", UnsValue::Texts(vec![])),
        ];
        let path = results.join(format!("{name}.h5ad"));
        write_embedding(&path, EmbeddingRef { values: &values, dims, uns: &uns }, &source).unwrap();
    }
    python("h5ad_compare.py", &[&sources, &results]);
}

#[test]
#[ignore = "judge: needs SCFOUNDRY_TEST_PYTHON"]
fn judge_h5ad_chosen_cells_are_those_that_anndata_chooses() {
    let directory = tempfile::tempdir().unwrap();
    let (sources, results) = (directory.path().join("sources"), directory.path().join("results"));
    std::fs::create_dir(&sources).unwrap();
    std::fs::create_dir(&results).unwrap();
    let whole = directory.path().join("whole");
    std::fs::create_dir(&whole).unwrap();
    let mut names: Vec<String> = made(&sources)
        .into_iter()
        .filter(|(name, case)| case.get("obs").is_some() || name.starts_with("anndata"))
        .map(|(name, _)| name)
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [root.join("tests/fixtures/cases"), root.join("demo")];
    for path in folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let path = path.unwrap().path();
        // Those that cannot be read are there to be refused.
        if path.extension().is_some_and(|end| end == "h5ad") && H5ad::open(&path).is_ok() {
            std::fs::copy(&path, sources.join(path.file_name().unwrap())).unwrap();
            names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    let mut chosen = BTreeMap::new();
    for name in names {
        let source = H5ad::open(&sources.join(format!("{name}.h5ad"))).unwrap();
        let rows: Vec<usize> = (0..source.n_obs()).filter(|row| row % 3 == 1 || row % 7 == 0).collect();
        for (place, extent) in [(&results, Extent::Usual), (&whole, Extent::Whole)] {
            let path = place.join(format!("{name}.h5ad"));
            if let Err(error) = write_cells(&path, &source, &rows, extent, &|| Ok(())) {
                panic!("{name}: {error}");
            }
        }
        chosen.insert(name, rows);
    }
    std::fs::write(results.join("rows.json"), serde_json::to_vec(&chosen).unwrap()).unwrap();
    python("cells_chosen.py", &[&sources, &results, &whole]);
}
