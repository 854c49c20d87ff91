//! How many cells there are, which are empty, whose names repeat.

use std::collections::HashSet;

use crate::method::{Category, Profile};

use super::report::{Finding, Level};
use super::scan::Scan;
use super::wording::{counted, listed, quoted};

/// 50 components and 50 neighbours need more cells than this.
const FEW_CELLS: usize = 50;

/// Fewer detected genes than this is the usual sign of an empty droplet in data of a whole transcriptome.
const FEW_GENES: u32 = 200;

/// Genes in the file from which on it counts as a whole transcriptome.
const WHOLE_TRANSCRIPTOME: usize = 5000;

/// Names that repeat an earlier one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Duplicates<'a> {
    pub count: usize,
    pub first: Option<&'a str>,
}

impl<'a> Duplicates<'a> {
    /// Memory: about 32 bytes a name while it runs.
    pub(super) fn of(names: &'a [String]) -> Duplicates<'a> {
        let mut seen = HashSet::with_capacity(names.len());
        let mut duplicates = Duplicates { count: 0, first: None };
        for name in names {
            if !seen.insert(name.as_str()) {
                duplicates.count += 1;
                duplicates.first.get_or_insert(name);
            }
        }
        duplicates
    }
}

/// The findings on the cells called `names`; `scan` is of X, where there is one.
pub(super) fn findings(
    names: &[String],
    duplicates: &Duplicates<'_>,
    scan: Option<&Scan>,
    profile: Option<&Profile>,
) -> Vec<Finding> {
    let mut findings = vec![number_of_cells(names.len(), profile)];
    if let Some(first) = duplicates.first {
        let message = format!(
            "{} {} an earlier one, first {}: results cannot be joined by name",
            counted(duplicates.count, "cell name"),
            if duplicates.count == 1 { "repeats" } else { "repeat" },
            quoted(first)
        );
        findings.push(
            Finding::warn("duplicate-cell-names", message).hint("in Python: adata.obs_names_make_unique()"),
        );
    }
    if let Some(scan) = scan {
        findings.extend(empty_cells(names, scan));
        findings.extend(poor_cells(scan));
    }
    findings
}

fn number_of_cells(cells: usize, profile: Option<&Profile>) -> Finding {
    let one_is_possible = profile.is_some_and(|profile| profile.category == Category::ZeroShot);
    match cells {
        0 => Finding::fail("no-cells", "the file has 0 cells"),
        1 => Finding::new(
            if one_is_possible { Level::Warn } else { Level::Fail },
            "few-cells",
            "the file has 1 cell: there is nothing to compare it with",
        ),
        2..=FEW_CELLS => Finding::warn(
            "few-cells",
            format!("{cells} cells are few: components, neighbours and clusters are cut to what they allow"),
        ),
        _ => Finding::ok("cells", format!("{cells} cells")),
    }
}

fn empty_cells(names: &[String], scan: &Scan) -> Option<Finding> {
    let empty: Vec<String> = (scan.per_cell.iter().zip(names))
        .filter(|(cell, _)| cell.genes == 0)
        .map(|(_, name)| quoted(name))
        .collect();
    (!empty.is_empty()).then(|| {
        let message =
            format!("{} without any value but 0: {}", counted(empty.len(), "cell"), listed(&empty, 3));
        Finding::warn("empty-cells", message).hint("in Python: sc.pp.filter_cells(adata, min_genes=1)")
    })
}

/// Cells with few genes, in data where few genes mean something.
fn poor_cells(scan: &Scan) -> Option<Finding> {
    if scan.genes < WHOLE_TRANSCRIPTOME {
        return None;
    }
    let poor = scan.per_cell.iter().filter(|cell| (1..FEW_GENES).contains(&cell.genes)).count();
    let level = if poor * 100 > scan.cells { Level::Warn } else { Level::Info };
    (poor > 0).then(|| {
        let message = format!(
            "{} with fewer than {FEW_GENES} genes ({:.1} %): empty droplets or debris, usually",
            counted(poor, "cell"),
            poor as f64 * 100.0 / scan.cells as f64
        );
        Finding::new(level, "cells-with-few-genes", message)
            .hint(format!("in Python: sc.pp.filter_cells(adata, min_genes={FEW_GENES})"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::scan::scan;
    use super::*;
    use crate::matrix::Csr;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|cell| format!("c{cell}")).collect()
    }

    fn levels(findings: &[Finding]) -> Vec<(&str, Level)> {
        findings.iter().map(|finding| (finding.code, finding.level)).collect()
    }

    fn find(names: &[String], scan: Option<&Scan>) -> Vec<Finding> {
        findings(names, &Duplicates::of(names), scan, None)
    }

    #[test]
    fn no_cell_and_one_cell_are_never_ready() {
        assert_eq!(levels(&find(&[], None)), [("no-cells", Level::Fail)]);
        assert_eq!(levels(&find(&names(1), None)), [("few-cells", Level::Fail)]);
        assert_eq!(levels(&find(&names(50), None)), [("few-cells", Level::Warn)]);
        assert_eq!(levels(&find(&names(51), None)), [("cells", Level::Ok)]);
    }

    #[test]
    fn repeated_names_are_counted_and_the_first_is_shown() {
        let mut names = names(60);
        names[5] = "c2".into();
        names[7] = "c2".into();
        names[9] = "c8".into();
        assert_eq!(Duplicates::of(&names), Duplicates { count: 3, first: Some("c2") });
        let finding = find(&names, None).remove(1);
        assert_eq!(finding.code, "duplicate-cell-names");
        assert!(
            finding.message.starts_with("3 cell names repeat an earlier one, first \"c2\""),
            "{}",
            finding.message
        );
    }

    #[test]
    fn empty_cells_are_named() {
        let matrix = Csr { columns: 2, indptr: vec![0, 1, 1, 1, 1, 1], indices: vec![0], values: vec![1.0] };
        let scan = scan(&matrix).unwrap();
        let finding = find(&names(5), Some(&scan)).remove(1);
        assert_eq!(finding.message, "4 cells without any value but 0: \"c1\", \"c2\", \"c3\" and 1 more");
    }

    #[test]
    fn few_genes_matter_in_a_whole_transcriptome_only() {
        let rows = |columns| {
            let matrix =
                Csr { columns, indptr: vec![0, 2, 4], indices: vec![0, 1, 0, 1], values: vec![1.0; 4] };
            levels(&find(&names(2), Some(&scan(&matrix).unwrap()))).len()
        };
        assert_eq!(rows(4999), 1);
        assert_eq!(rows(5000), 2);
    }
}
