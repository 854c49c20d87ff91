//! The embedding that the command writes against the one that scanpy computes from the same file.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::place::{Place, case, demo, embedding};
use crate::python;

/// Leading components that are compared one by one.
const COMPARED: usize = 20;

#[derive(Deserialize)]
struct Answer {
    variance_ratio: Vec<f64>,
    scores: Vec<Vec<f64>>,
}

#[test]
#[ignore = "judge: runs scanpy, and the main job through the engine"]
fn judge_embeddings_of_the_command_equal_scanpy() {
    let place = Place::new();
    let layouts = ["a06_csr_int32", "a06_csc_int64", "a06_dense", "a06_csr_unsorted_mixed"];
    let mut files = vec![demo()];
    files.extend(layouts.map(|name| case(&format!("{name}.h5ad"))));
    let mut words: Vec<&str> = vec!["embed", "--method", "pca", "--data"];
    words.extend(files.iter().map(|file| file.to_str().unwrap()));
    let document = place.json(&words);
    let outputs: Vec<PathBuf> =
        document["outputs"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().into()).collect();

    let pairs: Vec<&str> =
        files.iter().zip(&outputs).flat_map(|(a, b)| [a.to_str().unwrap(), b.to_str().unwrap()]).collect();
    python::run("embedding_keeps.py", &pairs, "");

    let dims: Vec<usize> = outputs.iter().map(|output| embedding(output).0).collect();
    assert_eq!(dims, [50; 5]);
    let requests: Vec<Value> = files
        .iter()
        .zip(&dims)
        .map(|(file, dims)| json!({"case": file, "n_top": 2000, "n_comps": dims}))
        .collect();
    let answers: Vec<Answer> =
        serde_json::from_slice(&python::run("pca_scanpy.py", &[Value::from(requests).to_string()], ""))
            .unwrap();
    for (output, answer) in outputs.iter().zip(answers) {
        assert_equal(output, &answer);
    }
}

fn assert_equal(output: &Path, answer: &Answer) {
    let (dims, values) = embedding(output);
    assert_eq!(values.len(), dims * answer.scores.len());
    let file = hdf5_metno::File::open(output).unwrap();
    let ratios = file.dataset("uns/pca/variance_ratio").unwrap().read_raw::<f64>().unwrap();
    assert_eq!(ratios.len(), dims);
    for (component, (ours, theirs)) in ratios.iter().zip(&answer.variance_ratio).enumerate() {
        assert!((ours - theirs).abs() < 1e-4, "{}: ratio {component}: {ours} {theirs}", output.display());
    }
    for component in 0..COMPARED {
        let (mut product, mut ours_square, mut theirs_square) = (0.0, 0.0, 0.0);
        for (cell, theirs) in answer.scores.iter().enumerate() {
            let (ours, theirs) = (values[cell * dims + component], theirs[component]);
            product += ours * theirs;
            ours_square += ours * ours;
            theirs_square += theirs * theirs;
        }
        let cosine = product.abs() / (ours_square * theirs_square).sqrt();
        assert!(cosine > 0.9999, "{}: component {component}: |cos| {cosine}", output.display());
    }
}
