mod draft;
mod judge;
mod methods;

use std::path::PathBuf;

use draft::Draft;

use super::*;
use crate::error::Kind;

fn case_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(name)
}

fn report(name: &str, request: &Request<'_>) -> Report {
    let mut report = check(&H5ad::open(&case_path(name)).unwrap(), request).unwrap();
    report.file = name.to_owned();
    report
}

fn plain(name: &str) -> Report {
    report(name, &Request::default())
}

fn labelled(name: &str, label_key: &str) -> Report {
    report(name, &Request { label_key: Some(label_key), ..Request::default() })
}

fn drafted(draft: &Draft) -> Report {
    check(&draft.open().data, &Request::default()).unwrap()
}

fn classes(report: &Report) -> Vec<(&str, usize)> {
    let labels = report.facts.labels.as_ref().unwrap();
    labels.classes.iter().map(|class| (class.name.as_str(), class.cells)).collect()
}

fn message<'a>(report: &'a Report, code: &str) -> &'a str {
    let finding = report.finding(code);
    &finding.unwrap_or_else(|| panic!("no finding {code} in\n{report}")).message
}

fn level(report: &Report, code: &str) -> Option<Level> {
    report.finding(code).map(|finding| finding.level)
}

#[test]
fn a01_old_categories_are_labels() {
    let report = plain("a01_categories_0_7.h5ad");
    assert_eq!(classes(&report), [("T cell", 27), ("B cell", 17), ("Monocyte", 16)]);
    assert_eq!(report.facts.batches.as_ref().unwrap().classes.len(), 2);
    assert_eq!(report.facts.matrix.as_ref().unwrap().sum, 1877.0);
    assert_eq!(report.verdict, Verdict::Pass, "{report}");
}

#[test]
fn a03_one_scalar_category_is_one_class() {
    let report = plain("a03_scalar_category.h5ad");
    assert_eq!(classes(&report), [("1", 20)]);
    assert_eq!(level(&report, "one-class"), Some(Level::Warn));
}

#[test]
fn a05_booleans_and_numbers_are_labels() {
    let missing = |report: &Report| report.facts.labels.as_ref().unwrap().missing;
    let flag = labelled("a05_nullable_bool_int.h5ad", "flag");
    assert_eq!(classes(&flag).iter().map(|class| class.1).collect::<Vec<_>>(), [15, 15]);
    let doublet = labelled("a05_nullable_bool_int.h5ad", "is_doublet");
    assert_eq!(classes(&doublet).iter().map(|class| class.1).collect::<Vec<_>>(), [10, 10]);
    assert_eq!(missing(&doublet), 10);
    assert_eq!(
        message(&doublet, "missing-labels"),
        "10 cells without a label in \"is_doublet\"; they are left out"
    );
    let cluster = labelled("a05_nullable_bool_int.h5ad", "cluster");
    assert_eq!(classes(&cluster), [("1", 10), ("2", 10), ("3", 10)]);
    let cluster_f = labelled("a05_nullable_bool_int.h5ad", "cluster_f");
    assert_eq!(classes(&cluster_f), [("1", 9), ("2", 9), ("3", 9)]);
    assert_eq!(missing(&cluster_f), 3);
}

#[test]
fn a06_the_layout_changes_nothing() {
    for layout in ["csr_int32", "csc_int64", "dense", "csr_unsorted_mixed"] {
        let report = plain(&format!("a06_{layout}.h5ad"));
        let matrix = report.facts.matrix.as_ref().unwrap();
        assert_eq!((matrix.sum, matrix.nnz, matrix.max, matrix.min), (3097.0, 1927, Some(9.0), Some(0.0)));
        assert_eq!((matrix.kind, matrix.integer), (ValueKind::Counts, true), "{layout}");
        assert_eq!(report.facts.counts_in, ["X"]);
        assert_eq!(report.verdict, Verdict::Pass, "{report}");
    }
}

#[test]
fn a06_as_text() {
    insta::assert_snapshot!(plain("a06_csr_int32.h5ad"));
}

#[test]
fn a08_files_that_are_none_are_errors() {
    for name in ["a08_truncated.h5ad", "a08_empty.h5ad", "a08_not_hdf5.h5ad"] {
        let error = H5ad::open(&case_path(name)).err().unwrap();
        assert_eq!(error.kind, Kind::Input, "{name}: {error}");
    }
}

#[test]
fn a12_a_slash_in_a_key_is_part_of_its_name() {
    for key in ["ann/level1", "cell_type"] {
        let report = labelled("a12_slash_key.h5ad", key);
        assert_eq!(classes(&report).iter().map(|class| class.1).collect::<Vec<_>>(), [12, 12, 12], "{key}");
        assert_ne!(report.verdict, Verdict::Fail, "{report}");
    }
}

#[test]
fn a14_counts_are_found_in_a_layer() {
    let report = plain("a14_lognorm_counts_in_layer.h5ad");
    assert_eq!(report.verdict, Verdict::Fail);
    let said = message(&report, "not-counts");
    assert!(said.contains("not counts (max 7.52); counts are in layers/counts"), "{said}");
    assert_eq!(report.facts.matrix.as_ref().unwrap().kind, ValueKind::LogNormalised);
    assert_eq!(report.facts.counts_in, ["layers/counts"]);
}

#[test]
fn a14_as_text() {
    insta::assert_snapshot!(plain("a14_lognorm_counts_in_layer.h5ad"));
}

#[test]
fn a14_counts_are_found_in_raw() {
    let report = plain("a14_scaled_counts_in_raw.h5ad");
    assert_eq!(report.verdict, Verdict::Fail);
    let said = message(&report, "not-counts");
    assert!(said.contains("negative values; counts are in raw (80 genes)"), "{said}");
    assert_eq!(report.facts.counts_in, ["raw"]);
    assert_eq!(message(&report, "raw-has-more-genes"), "X has 50 genes, raw has 80: X was cut to fewer");
}

#[test]
fn a18_categories_without_cells_are_no_classes() {
    let report = plain("a18_unused_categories.h5ad");
    assert_eq!(classes(&report), [("A", 30), ("B", 30), ("C", 30)]);
}

#[test]
fn e03_numbers_as_index_point_to_the_names() {
    let report = plain("e03_integer_gene_index.h5ad");
    assert_eq!(report.verdict, Verdict::Fail);
    let finding = report.finding("gene-index-is-numbers").unwrap();
    assert_eq!(
        finding.message,
        "the gene index is numbers: the row numbers; var['feature_name'] looks like symbols"
    );
    assert_eq!(
        finding.hint.as_deref(),
        Some(
            "in Python: adata.var_names = adata.var[\"feature_name\"].astype(str); adata.var_names_make_unique()"
        )
    );
}

#[test]
fn one_odd_value_among_many_fails_and_is_named() {
    let counts = || Draft::new(100, 40);
    for (value, code, word) in [
        (-7.0, "negative-values", "values is negative; the first is -7 in"),
        (0.5, "fractional-values", "values is not a whole number; the first is 0.50 in"),
        (f32::NAN, "nan-values", "values is NaN; the first is NaN in"),
        (f32::INFINITY, "infinite-values", "values is infinite; the first is inf in"),
    ] {
        let report = drafted(&counts().set(63, 17, value));
        assert_eq!(level(&report, "not-counts"), Some(Level::Fail), "{report}");
        let said = message(&report, code);
        assert!(said.starts_with("1 of 32") && said.contains(word), "{said}");
        assert!(said.ends_with(" cell \"c63\", gene \"HOX17A\""), "{said}");
    }
    assert_eq!(drafted(&counts()).verdict, Verdict::Pass);
}

#[test]
fn log_normalised_values_elsewhere_are_not_taken_for_counts() {
    let mut draft = Draft::new(60, 40).set(3, 3, 0.25);
    let x = draft.x.clone().unwrap();
    draft.layers.push(("counts", x.iter().map(|value| value.ln_1p()).collect()));
    let report = drafted(&draft);
    assert!(message(&report, "not-counts").contains("no layer and no raw holds counts"), "{report}");
    assert!(message(&report, "other-matrix").starts_with("layers/counts looks "), "{report}");
    assert!(report.facts.counts_in.is_empty());
}

#[test]
fn no_cells_no_genes_and_no_x_are_findings() {
    assert_eq!(level(&drafted(&Draft::new(0, 10)), "no-cells"), Some(Level::Fail));
    assert_eq!(level(&drafted(&Draft::new(10, 0)), "no-genes"), Some(Level::Fail));
    assert_eq!(level(&drafted(&Draft::new(1, 10)), "few-cells"), Some(Level::Fail));
    let mut draft = Draft::new(60, 10);
    draft.layers.push(("counts", draft.x.take().unwrap()));
    let report = drafted(&draft);
    assert_eq!(message(&report, "no-x"), "the file has no X; counts are in layers/counts");
    assert_eq!(report.facts.matrix, None);
}

#[test]
fn pointers_and_indices_that_cannot_be_right_are_errors() {
    let sound = (vec![0, 1, 2], vec![0, 2]);
    assert!(Draft::check_csr(&sound.0, &sound.1).is_ok());
    for (what, indptr, indices) in [
        ("index beyond the genes", vec![0, 1, 2], vec![0, 3]),
        ("negative index", vec![0, 1, 2], vec![0, -1]),
        ("wrapped pointer", vec![0, -2_147_483_647, 2], vec![0, 2]),
        ("pointer that goes back", vec![0, 2, 1], vec![0, 2]),
        ("pointer beyond the values", vec![0, 1, 3], vec![0, 2]),
    ] {
        let error = Draft::check_csr(&indptr, &indices).expect_err(what);
        assert_eq!(error.kind, Kind::Input, "{what}: {error}");
    }
}

#[test]
fn repeated_names_and_empty_genes_are_counted() {
    let mut draft = Draft::new(60, 10);
    draft.cells[9] = "c2".into();
    draft.genes[7] = "HOX3A".into();
    draft.genes[8] = "HOX3A".into();
    for cell in 0..60 {
        draft = draft.set(cell, 4, 0.0);
    }
    let report = drafted(&draft);
    assert_eq!((report.facts.duplicate_cells, report.facts.duplicate_genes), (1, 2));
    assert!(message(&report, "duplicate-gene-names").contains("first \"HOX3A\""), "{report}");
    assert_eq!(message(&report, "empty-genes"), "3 genes of 10 without any value but 0");
}

#[test]
fn antibodies_among_the_genes_are_told() {
    let mut draft = Draft::new(60, 10);
    let mut types = vec!["Gene Expression".to_owned(); 10];
    types[9] = "Antibody Capture".to_owned();
    draft.var.push(("feature_types", types));
    assert_eq!(
        message(&drafted(&draft), "other-features"),
        "1 of 10 features are not genes: Antibody Capture"
    );
}
