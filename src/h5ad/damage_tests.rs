//! Damaged files are refused or read soundly; nothing panics.
//!
//! The damage is the same in every run. About one flipped file in a thousand sends the C library (1.14.6) into an endless
//! loop: a size in the header of an object of the global heap, where strings are, is not checked there.

use std::path::{Path, PathBuf};

use super::*;
use crate::matrix::RowBlocks;

const FILES: [&str; 7] = [
    "a01_categories_0_7.h5ad",
    "a03_scalar_category.h5ad",
    "a05_nullable_bool_int.h5ad",
    "a06_csc_int64.h5ad",
    "a10_lzf.h5ad",
    "a14_scaled_counts_in_raw.h5ad",
    "a18_unused_categories.h5ad",
];

fn bytes(name: &str) -> Vec<u8> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases");
    std::fs::read(directory.join(name)).unwrap()
}

/// Reads all there is; what comes out must keep the promises of blocks and columns.
fn read_all(path: &Path) -> Result<()> {
    let file = H5ad::open(path)?;
    for frame in [Some(file.obs()), Some(file.var()), file.raw_var()].into_iter().flatten() {
        for name in frame.column_names() {
            // Each column by itself may be refused.
            if let Ok(column) = frame.column(name) {
                let labels = column.labels();
                assert!(labels.codes.iter().flatten().all(|&code| (code as usize) < labels.classes.len()));
            }
        }
    }
    for slot in file.slots() {
        let matrix = file.matrix(&slot)?;
        let columns = matrix.shape().1;
        matrix.for_each_block(&mut |block| {
            for row in 0..block.rows() {
                let (indices, values) = block.row(row);
                assert!(indices.windows(2).all(|pair| pair[0] < pair[1]));
                assert!(indices.iter().all(|&index| (index as usize) < columns));
                assert!(values.iter().all(|&value| value != 0.0));
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn check(damaged: &[u8], path: &Path) -> bool {
    std::fs::write(path, damaged).unwrap();
    match read_all(path) {
        Ok(()) => true,
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains(path.to_str().unwrap()) && !text.contains('\n'), "{text}");
            false
        }
    }
}

/// Numbers that look random, the same in every run.
fn sequence(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |state| {
        Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    })
    .skip(1)
    .map(|state| state >> 20)
}

#[test]
fn cut_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut.h5ad");
    for name in FILES {
        let whole = bytes(name);
        for position in
            (0..whole.len()).step_by(whole.len() / 40).chain([1, 7, 8, 9, 47, 48, 95, whole.len() - 1])
        {
            assert!(
                !check(&whole[..position], &path),
                "{name} was read with {position} of {} bytes",
                whole.len()
            );
        }
    }
}

#[test]
fn holes_and_flipped_bytes_do_no_harm() {
    let rounds: usize = std::env::var("SCFOUNDRY_TEST_DAMAGE").map_or(60, |rounds| rounds.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("damaged.h5ad");
    let mut refused = 0;
    for (seed, name) in FILES.iter().enumerate() {
        let whole = bytes(name);
        let mut random = sequence(seed as u64);
        let mut below = |limit: usize| random.next().unwrap() as usize % limit;
        for round in 0..rounds {
            let mut damaged = whole.clone();
            if round % 4 == 0 {
                // A download with a hole: the size is right, the rest is zero.
                let start = 96 + below(whole.len() - 96);
                damaged[start..].fill(0);
            } else {
                for _ in 0..=below(3) {
                    let position = below(whole.len());
                    damaged[position] ^= 1 << below(8);
                }
            }
            refused += usize::from(!check(&damaged, &path));
        }
    }
    assert!(refused > 0);
}
