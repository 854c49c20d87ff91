//! Models that read the cells around a cell.

use crate::place::{demo, embedding};
use crate::world::{python, run, weights, workspace};

#[test]
#[ignore = "models: novae against the steps of its package, and slides that it cannot take"]
fn models_embed_cells_with_those_around_them() {
    let place = workspace();
    let plain = demo().display().to_string();
    let data = place.join("spatial.h5ad").display().to_string();
    python("variants.py", &["spatial", &plain, &data]);
    let line = ["embed", "--method", "novae", "--data", &data];
    let done = run(&place, &[&line[..], &["--novae_prototypes", "16"]].concat());
    done.expect(0);
    assert!(done.stderr.contains("cells have no valid neighbourhood"), "{}", done.stderr);
    let result = place.join("results/embeddings/novae/spatial.h5ad");
    assert_eq!(embedding(&result).0, 8);
    let words = ["novae", &data, weights(), result.to_str().unwrap(), "novae-human-0"];
    let difference: f64 = python("judge.py", &words).trim().parse().unwrap();
    assert!(difference < 2e-5, "{difference}");

    let many = run(&place, &[&line[..], &["--novae_prototypes", "690"]].concat());
    many.expect(3);
    assert!(many.error().contains("novae cannot embed the cells of spatial.h5ad"), "{}", many.stderr);
    let nowhere = run(&place, &["embed", "--method", "novae", "--data", &plain]);
    nowhere.expect(3);
    assert!(nowhere.error().contains("does not tell where its cells are"), "{}", nowhere.stderr);
}
