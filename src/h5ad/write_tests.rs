//! What was written is read again; the other reader, anndata, judges in `tests/h5ad_judge.rs`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;
use crate::matrix::RowBlocks;

fn case(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(name)
}

fn embedding(cells: usize, dims: usize) -> Vec<f32> {
    (0..cells * dims).map(|position| position as f32 * 0.25 + 1.0).collect()
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn equal_contents_are_equal_bytes_whenever_they_are_written() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a01_categories_0_7.h5ad", "a05_nullable_bool_int.h5ad", "a06_csc_int64.h5ad"] {
        let source = H5ad::open(&case(name)).unwrap();
        let values = embedding(source.n_obs(), 3);
        let uns = [
            ("scfoundry/method", UnsValue::Text("pca".into())),
            ("pca/variance", UnsValue::Floats(vec![1.0, 0.5])),
        ];
        let write = |path: &Path| {
            write_embedding(path, EmbeddingRef { values: &values, dims: 3, uns: &uns }, &source).unwrap();
            std::fs::read(path).unwrap()
        };
        let first = write(&directory.path().join("first"));
        // HDF5 counts whole seconds.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert!(first == write(&directory.path().join("second")), "{name}");
    }
}

#[test]
fn frames_of_every_age_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    for name in [
        "a01_categories_0_7.h5ad",
        "a03_scalar_category.h5ad",
        "a05_nullable_bool_int.h5ad",
        "a06_csc_int64.h5ad",
        "a10_lzf.h5ad",
        "a12_slash_key.h5ad",
        "a18_unused_categories.h5ad",
        "e03_integer_gene_index.h5ad",
    ] {
        let source = H5ad::open(&case(name)).unwrap();
        let values = embedding(source.n_obs(), 3);
        let path = directory.path().join(name);
        let uns = [("scfoundry/method", UnsValue::Text("pca".into()))];
        write_embedding(&path, EmbeddingRef { values: &values, dims: 3, uns: &uns }, &source).unwrap();

        let file = H5ad::open(&path).unwrap();
        assert_eq!(file.var().index(), ["V1", "V2", "V3"], "{name}");
        assert_eq!(file.obs().index(), source.obs().index(), "{name}");
        assert_eq!(file.obsm_keys(), source.obsm_keys(), "{name}");
        let columns = source.obs().column_names();
        assert_eq!(file.obs().column_names().len(), columns.len(), "{name}");
        for (old, new) in columns.iter().zip(file.obs().column_names()) {
            assert_eq!(*new, old.replace('/', "_"));
            assert_eq!(source.obs().find(old), Some(old.as_str()), "{name}");
            assert_eq!(file.obs().find(old), Some(new.as_str()), "{name}");
            let (old, new) = (source.obs().column(old).unwrap(), file.obs().column(new).unwrap());
            // NaN differs from itself, so what is compared is what is printed.
            assert_eq!(format!("{old:?}"), format!("{new:?}"), "{name}");
        }
        let matrix = file.matrix(&Slot::X).unwrap();
        assert_eq!((matrix.encoding(), matrix.dtype()), (Encoding::Dense, "float32"));
        let mut read = Vec::new();
        let mut collect = |block: crate::matrix::RowBlock<'_>| {
            read.extend(block.values.iter().map(|&value| value as f32));
            Ok(())
        };
        matrix.for_each_block(&mut collect).unwrap();
        assert_eq!(read, values, "{name}");
    }
    assert_eq!(entries(directory.path()).len(), 8);
}

#[test]
fn the_file_is_as_public_as_the_umask_allows() {
    let directory = tempfile::tempdir().unwrap();
    let source = H5ad::open(&case("a18_unused_categories.h5ad")).unwrap();
    let values = embedding(90, 2);
    let path = directory.path().join("out.h5ad");
    write_embedding(&path, EmbeddingRef { values: &values, dims: 2, uns: &[] }, &source).unwrap();
    let plain = directory.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&plain));
}

#[test]
fn a_failure_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let source = H5ad::open(&case("a18_unused_categories.h5ad")).unwrap();
    let path = directory.path().join("out.h5ad");
    let values = embedding(90, 2);
    let uns = [("a", UnsValue::Integer(1)), ("a", UnsValue::Integer(2))];
    let error =
        write_embedding(&path, EmbeddingRef { values: &values, dims: 2, uns: &uns }, &source).unwrap_err();
    assert!(error.message.starts_with("cannot write "), "{error}");
    let nul = [("a", UnsValue::Text("x\0y".into()))];
    let error =
        write_embedding(&path, EmbeddingRef { values: &values, dims: 2, uns: &nul }, &source).unwrap_err();
    assert!(error.to_string().contains("uns/a holds a NUL character"), "{error}");
    let error = write_embedding(&path, EmbeddingRef { values: &values[1..], dims: 2, uns: &[] }, &source);
    assert!(error.is_err());
    assert!(entries(directory.path()).is_empty());
    let nowhere = directory.path().join("no/such/out.h5ad");
    let error =
        write_embedding(&nowhere, EmbeddingRef { values: &values, dims: 2, uns: &[] }, &source).unwrap_err();
    assert!(error.message.starts_with("cannot write "), "{error}");
}

#[test]
fn a_file_may_replace_its_own_source() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.h5ad");
    std::fs::copy(case("a06_dense.h5ad"), &path).unwrap();
    let source = H5ad::open(&path).unwrap();
    let values = embedding(80, 1);
    write_embedding(&path, EmbeddingRef { values: &values, dims: 1, uns: &[] }, &source).unwrap();
    assert_eq!(source.matrix(&Slot::X).unwrap().shape(), (80, 50));
    assert_eq!(H5ad::open(&path).unwrap().n_vars(), 1);
    assert_eq!(entries(directory.path()), ["data.h5ad"]);
}
