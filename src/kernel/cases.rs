//! The case files, as the tests of kernels read them.

use std::path::{Path, PathBuf};

use super::points::{Classes, Points};
use super::tasks::embedding;
use crate::h5ad::H5ad;

/// Where a case file is.
pub(super) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(name)
}

/// A case file.
pub(super) fn open(name: &str) -> H5ad {
    H5ad::open(&path(name)).unwrap()
}

/// The embedding in X of a case.
pub(super) fn points(name: &str) -> Points {
    embedding::points(&open(name)).unwrap()
}

/// A column of obs in which no cell lacks a value.
pub(super) fn classes(name: &str, column: &str) -> Classes {
    let labels = open(name).obs().column(column).unwrap().labels();
    let names: Vec<&str> =
        labels.codes.iter().map(|code| labels.classes[code.unwrap() as usize].as_str()).collect();
    Classes::of(&names)
}

/// The embedding of a case with its labels and its batches.
pub(super) fn labels_and_batches(name: &str) -> (Points, Classes, Classes) {
    (points(name), classes(name, "cell_type"), classes(name, "batch_id"))
}
