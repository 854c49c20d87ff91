//! The cases from public reports (`tests/fixtures/cases/README.md`, part a).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::error::Kind;
use crate::matrix::RowBlocks;

fn case(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(name)
}

fn open(name: &str) -> H5ad {
    H5ad::open(&case(name)).unwrap()
}

/// Sum, number of non-zeros, least and greatest value.
fn summary(file: &H5ad, slot: &Slot) -> (f64, usize, f64, f64) {
    let (mut sum, mut stored, mut least, mut greatest) = (0.0, 0, f64::INFINITY, f64::NEG_INFINITY);
    let matrix = file.matrix(slot).unwrap();
    let mut next_row = 0;
    matrix
        .for_each_block(&mut |block| {
            assert_eq!(block.first_row, next_row);
            next_row += block.rows();
            for &value in block.values {
                (sum, stored) = (sum + value, stored + 1);
                (least, greatest) = (f64::min(least, value), f64::max(greatest, value));
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(next_row, file.n_obs());
    (sum, stored, least, greatest)
}

fn counts(frame: &Frame, column: &str) -> BTreeMap<String, usize> {
    let labels = frame.column(column).unwrap().labels();
    let mut counts = BTreeMap::new();
    for code in labels.codes {
        let class = code.map_or("(missing)", |code| &labels.classes[code as usize]);
        *counts.entry(class.to_owned()).or_default() += 1;
    }
    counts
}

fn expected(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts.iter().map(|&(class, count)| (class.to_owned(), count)).collect()
}

fn refusal(name: &str) -> Error {
    let error = H5ad::open(&case(name)).unwrap_err();
    assert_eq!(error.kind, Kind::Input);
    let text = error.to_string();
    assert!(text.contains(name) && !text.contains('\n'), "{text}");
    error
}

#[test]
fn a01_categories_by_reference() {
    let file = open("a01_categories_0_7.h5ad");
    assert_eq!((file.n_obs(), file.n_vars()), (60, 40));
    assert_eq!(file.obs().column_names(), ["cell_type", "batch_id", "n_counts"]);
    let cell_types = expected(&[("T cell", 27), ("B cell", 17), ("Monocyte", 16)]);
    assert_eq!(counts(file.obs(), "cell_type"), cell_types);
    assert_eq!(counts(file.obs(), "batch_id"), expected(&[("b0", 30), ("b1", 30)]));
    assert_eq!(file.obs().column("n_counts").unwrap().kind(), "float");
    assert_eq!(summary(&file, &Slot::X).0, 1877.0);
    assert_eq!(file.slots(), [Slot::X]);
}

#[test]
fn a03_scalar_category_of_a_compound_frame() {
    let file = open("a03_scalar_category.h5ad");
    assert_eq!(counts(file.obs(), "cell_type"), expected(&[("1", 20)]));
    assert_eq!(file.var().column_names(), ["n_cells"]);
    assert_eq!(file.var().column("n_cells").unwrap().kind(), "integer");
    assert_eq!(summary(&file, &Slot::X).1, 160);
}

#[test]
fn a05_missing_values() {
    let file = open("a05_nullable_bool_int.h5ad");
    let of = |column| counts(file.obs(), column);
    assert_eq!(of("flag"), expected(&[("True", 15), ("False", 15)]));
    assert_eq!(of("is_doublet"), expected(&[("True", 10), ("False", 10), ("(missing)", 10)]));
    assert_eq!(of("cluster"), expected(&[("1", 10), ("2", 10), ("3", 10)]));
    assert_eq!(of("cluster_f"), expected(&[("1", 9), ("2", 9), ("3", 9), ("(missing)", 3)]));
    let Column::Integer(umi) = file.obs().column("n_umi").unwrap() else { panic!("n_umi is not integer") };
    assert_eq!(umi.iter().filter(|value| value.is_none()).count(), 3);
}

#[test]
fn a06_four_layouts_are_one_matrix() {
    let whole = |name: &str| {
        let file = open(name);
        let mut rows = Vec::new();
        let matrix = file.matrix(&Slot::X).unwrap();
        for _ in 0..2 {
            rows.clear();
            matrix
                .for_each_block(&mut |block| {
                    rows.extend((0..block.rows()).map(|row| {
                        let (indices, values) = block.row(row);
                        (indices.to_vec(), values.to_vec())
                    }));
                    Ok(())
                })
                .unwrap();
        }
        let (sum, stored, _, greatest) = summary(&file, &Slot::X);
        assert_eq!((sum, stored, greatest), (3097.0, 1927, 9.0), "{name}");
        (rows, matrix.encoding(), matrix.dtype().to_owned())
    };
    let csr = whole("a06_csr_int32.h5ad");
    let csc = whole("a06_csc_int64.h5ad");
    let dense = whole("a06_dense.h5ad");
    let unsorted = whole("a06_csr_unsorted_mixed.h5ad");
    assert!(csr.0 == csc.0 && csr.0 == dense.0 && csr.0 == unsorted.0);
    assert_eq!((csr.1, csc.1, dense.1), (Encoding::Csr, Encoding::Csc, Encoding::Dense));
    assert_eq!((csr.2.as_str(), unsorted.2.as_str()), ("float32", "int64"));
}

#[test]
fn a08_broken_files_are_named() {
    assert!(refusal("a08_truncated.h5ad").message.ends_with("is truncated: it has 53918 of 89864 bytes"));
    assert!(refusal("a08_empty.h5ad").message.ends_with("is empty (0 bytes)"));
    assert!(refusal("a08_not_hdf5.h5ad").message.ends_with("is not an HDF5 file"));
    assert!(refusal("a08_no_such_file.h5ad").message.starts_with("cannot read "));
    let directory = H5ad::open(&case("")).unwrap_err();
    assert!(directory.message.ends_with("is a directory, not an .h5ad file"));
    let device = H5ad::open(Path::new("/dev/null")).unwrap_err();
    assert_eq!(device.message, "/dev/null is not a regular file");
}

#[test]
fn a10_lzf() {
    let file = open("a10_lzf.h5ad");
    assert_eq!(summary(&file, &Slot::X).0, 4073.0);
    assert_eq!(file.obs().column("cell_type").unwrap().labels().classes.len(), 3);
}

#[test]
fn a12_slashes_in_names() {
    let file = open("a12_slash_key.h5ad");
    for column in ["ann/level1", "cell_type"] {
        assert_eq!(counts(file.obs(), column).into_values().collect::<Vec<_>>(), [12, 12, 12]);
    }
    let layer = Slot::Layer("norm/log1p".into());
    assert_eq!(file.slots(), [Slot::X, layer.clone()]);
    assert_eq!(summary(&file, &layer).1, 355);
}

#[test]
fn a14_counts_elsewhere() {
    let file = open("a14_lognorm_counts_in_layer.h5ad");
    assert_eq!((summary(&file, &Slot::X).3 * 1e4).round(), 75245.0);
    let counts = summary(&file, &Slot::Layer("counts".into()));
    assert_eq!((counts.0, counts.3), (2452.0, 11.0));

    let file = open("a14_scaled_counts_in_raw.h5ad");
    assert_eq!((summary(&file, &Slot::X).2 * 1e4).round(), -11743.0);
    assert_eq!(summary(&file, &Slot::Raw).0, 3845.0);
    assert_eq!(file.raw_var().unwrap().index().len(), 80);
    assert_eq!(file.slots(), [Slot::X, Slot::Raw]);
}

#[test]
fn a18_categories_without_cells() {
    let file = open("a18_unused_categories.h5ad");
    assert_eq!(counts(file.obs(), "cell_type"), expected(&[("A", 30), ("B", 30), ("C", 30)]));
    assert_eq!(file.obsm_keys(), ["X_emb"]);
}

#[test]
fn a21_a_lock_of_another_process_does_not_matter() {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::copy(case("a06_csr_int32.h5ad"), &path).unwrap();
    let lock = std::fs::File::open(&path).unwrap();
    // Locks of flock(2) belong to the open file, so this one counts against our other opens too.
    lock.lock().unwrap();
    assert_eq!(summary(&H5ad::open(&path).unwrap(), &Slot::X).0, 3097.0);
}

#[test]
fn e03_numbers_as_gene_names() {
    let file = open("e03_integer_gene_index.h5ad");
    assert_eq!(file.var().index()[..3], ["0", "1", "2"]);
    assert_eq!(file.var().column("feature_name").unwrap().kind(), "text");
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let file = open("a12_slash_key.h5ad");
    let error = file.obs().column("batch").unwrap_err();
    assert!(error.message.contains("has no column \"batch\""), "{error}");
    assert!(error.hints[0].starts_with("obs has batch_id, "), "{:?}", error.hints);
    let error = file.matrix(&Slot::Raw).err().unwrap();
    assert_eq!(error.hints, ["it has X, layers/norm/log1p"]);
}

#[test]
fn an_open_file_can_be_shared_between_threads() {
    let file = open("a06_csc_int64.h5ad");
    let matrix = file.matrix(&Slot::X).unwrap();
    let sum = || {
        let mut sum = 0.0;
        matrix
            .for_each_block(&mut |block| {
                sum += block.values.iter().sum::<f64>();
                Ok(())
            })
            .unwrap();
        (sum, file.obs().column("cell_type").unwrap().labels().classes.len())
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(sum)).collect();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), (3097.0, 3));
        }
    });
}
