//! The integrations that Seurat does, in R.

use crate::place::{Place, demo};
use crate::world::{python, run, workspace};

/// A file of the demo's cells in two lanes, one of which counts some genes more often.
fn shifted(place: &Place) -> String {
    let path = place.join("shifted.h5ad").display().to_string();
    python("variants.py", &["shifted", demo().to_str().unwrap(), &path]);
    path
}

/// The share of neighbours of the own batch, and of the own label.
fn shares(place: &Place, method: &str) -> (f64, f64) {
    let embedding = place.join(format!("results/embeddings/{method}/shifted.h5ad"));
    let said = python("mixing.py", &[embedding.to_str().unwrap()]);
    let mut numbers = said.lines().map(|line| line.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
#[ignore = "models: Seurat moves batches together, and keeps the order of the cells"]
fn models_seurat_mixes_batches_and_keeps_cells_in_order() {
    let place = workspace();
    let data = shifted(&place);
    run(&place, &["embed", "--method", "pca", "--data", &data]).expect(0);
    let (apart, labels) = shares(&place, "pca");
    assert!(apart > 0.8, "{apart}");
    for method in ["seurat_cca", "seurat_rpca"] {
        let done = run(&place, &["embed", "--method", method, "--data", &data, "--batch-key", "lane"]);
        done.expect(0);
        // Cells in another order would have neighbours of any label.
        let (own, held) = shares(&place, method);
        assert!(
            own < 0.62 && held > labels - 0.05,
            "{method}: {own} of the batch, {held} of {labels} labels"
        );
        let task = &place.json(&["cost"])["tasks"][0];
        assert_eq!((&task["cells"], &task["genes"]), (&700.into(), &765.into()), "{method}");
    }
}

#[test]
#[ignore = "models: batches that Seurat cannot use are refused"]
fn models_seurat_refuses_small_batches() {
    let place = workspace();
    let data = shifted(&place);
    let line = [
        "embed",
        "--method",
        "seurat_rpca",
        "--data",
        &data,
        "--batch-key",
        "phase",
        "--seurat_n_pcs",
        "250",
    ];
    let done = run(&place, &line);
    done.expect(3);
    assert!(done.stderr.contains("anchors need more cells in every batch"), "{}", done.stderr);
}
