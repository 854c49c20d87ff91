//! The case files that the metrics of labels and batches are tested on.

use std::path::Path;

use super::points::{Classes, Points};
use super::tasks::embedding;
use crate::h5ad::H5ad;

/// The embedding of a case with its labels (`cell_type`) and its batches (`batch_id`).
pub(super) fn read(name: &str) -> (Points, Classes, Classes) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(name);
    let file = H5ad::open(&file).unwrap();
    let classes = |column: &str| {
        let labels = file.obs().column(column).unwrap().labels();
        let names: Vec<&str> =
            labels.codes.iter().map(|code| labels.classes[code.unwrap() as usize].as_str()).collect();
        Classes::of(&names)
    };
    (embedding::points(&file).unwrap(), classes("cell_type"), classes("batch_id"))
}
