//! A model whose cells attend to each other: the groups in which it reads them are part of the result.

use std::path::Path;

use crate::place::{Done, Place, demo, embedding};
use crate::world::{command, python, run, weights, workspace};

fn line<'a>(data: &'a str, size: &'a str) -> [&'a str; 9] {
    ["embed", "--method", "cellplm", "--data", data, "--batch-size", size, "--outdir", size]
}

/// The values, and their largest difference from those of the package's model for groups of so many cells.
fn judged(place: &Place, data: &str, folder: &str, group: &str) -> (Vec<f64>, f64) {
    let result = place.join(format!("{folder}/embeddings/cellplm/pbmc_700.h5ad"));
    let words = ["cellplm", data, weights(), result.to_str().unwrap(), "20231027_85M.best.ckpt", group];
    (embedding(&result).1, python("judge.py", &words).trim().parse().unwrap())
}

#[test]
#[ignore = "models: cellplm against its package, by groups of cells"]
fn models_whose_cells_attend_to_each_other_read_them_in_fixed_groups() {
    let place = workspace();
    let data = demo().display().to_string();
    let mut found = Vec::new();
    for (size, group) in [("1", "1"), ("64", "64"), ("auto", "1024"), ("1024", "1024")] {
        run(&place, &line(&data, size)).expect(0);
        let (values, difference) = judged(&place, &data, size, group);
        assert!(difference < 2e-5, "groups of {size}: {difference}");
        found.push(values);
    }
    let largest = |other: &[f64]| {
        found[1].iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max)
    };
    assert!(largest(&found[0]) > 1e-3 && largest(&found[3]) > 1e-3, "the groups do not matter");
    assert_eq!(found[2], found[3], "the automatic size is not that of the profile");
}

#[test]
#[ignore = "models: memory for a part of a group"]
fn models_whose_cells_attend_to_each_other_say_that_memory_changed_the_groups() {
    let place = workspace();
    let data = demo().display().to_string();
    let mut disturbed = command(&place, &line(&data, "1024"));
    disturbed
        .env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models/small_memory"))
        .env("SCFOUNDRY_TEST_MOST_CELLS", "200")
        .env("SCFOUNDRY_TEST_BATCHES", place.join("batches"));
    let done = Done::of(&disturbed.output().unwrap());
    done.expect(0);
    let words = "cells attend to groups of 175 in place of 1024";
    assert!(done.stderr.contains(words), "{}", done.stderr);
    let (_, difference) = judged(&place, &data, "1024", "175");
    assert!(difference < 2e-5, "{difference}");
}
