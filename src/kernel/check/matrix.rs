//! Whether X holds counts, and where they are if not.

use crate::error::Result;
use crate::h5ad::{Encoding, Frame, H5ad, Matrix, Slot};
use crate::matrix::RowBlocks;

use super::facts::MatrixFacts;
use super::judge::{ValueKind, appearance, objection};
use super::report::{Finding, Level};
use super::scan::{Scan, Tally, scan};
use super::wording::{counted, number, quoted};

/// What is known of X after every value of it, and of the other matrices where that was needed, was looked at.
#[derive(Default)]
pub(super) struct Examined {
    pub findings: Vec<Finding>,
    pub facts: Option<MatrixFacts>,
    pub scan: Option<Scan>,
    pub counts_in: Vec<String>,
}

/// A matrix that could hold the counts in place of X.
#[derive(Debug, Clone, PartialEq)]
struct Candidate {
    slot: Slot,
    genes: usize,
    /// What it is and looks like, or why it cannot be read.
    found: std::result::Result<(ValueKind, String), String>,
}

/// Looks at X, and at the layers and raw if X is not counts.
///
/// # Errors
/// X cannot be read soundly. A layer or raw that cannot be read is a finding: X is not affected.
pub(super) fn examine(data: &H5ad, needs_counts: bool) -> Result<Examined> {
    if data.n_obs() == 0 || data.n_vars() == 0 {
        return Ok(Examined::default());
    }
    let slots = data.slots();
    let Some(others) = slots.strip_prefix(&[Slot::X]) else {
        return Ok(without_x(candidates(data, &slots), needs_counts));
    };
    let matrix = data.matrix(&Slot::X)?;
    let scan = scan(&matrix)?;
    let facts = matrix_facts(&matrix, &scan);
    let mut findings = Vec::new();
    let mut counts_in = Vec::new();
    if facts.kind == ValueKind::Counts {
        counts_in.push("X".to_owned());
        findings.push(counts_finding(&facts));
    } else {
        let candidates = if needs_counts { candidates(data, others) } else { Vec::new() };
        counts_in.extend(holding_counts(&candidates).map(place));
        findings.push(main_finding(&scan, facts.kind, &candidates, needs_counts));
        findings.extend(candidate_findings(&candidates));
    }
    findings.extend(odd_values(&scan, data.obs(), data.var(), needs_counts));
    findings.extend(shallow(&facts, &scan));
    Ok(Examined { findings, facts: Some(facts), scan: Some(scan), counts_in })
}

fn without_x(candidates: Vec<Candidate>, needs_counts: bool) -> Examined {
    let mut message = "the file has no X".to_owned();
    message.push_str(&whereabouts(&candidates, needs_counts));
    let mut findings = vec![with_remedy(Finding::fail("no-x", message), &candidates)];
    findings.extend(candidate_findings(&candidates));
    let counts_in = holding_counts(&candidates).map(place).collect();
    Examined { findings, counts_in, ..Examined::default() }
}

fn matrix_facts(matrix: &Matrix<'_>, scan: &Scan) -> MatrixFacts {
    let encoding = match matrix.encoding() {
        Encoding::Dense => "dense",
        Encoding::Csr => "csr",
        Encoding::Csc => "csc",
    };
    MatrixFacts {
        encoding,
        dtype: matrix.dtype().to_owned(),
        kind: ValueKind::of(scan),
        nnz: scan.nnz,
        density: scan.density(),
        sum: scan.sum,
        min: scan.range.map(|range| range.min),
        max: scan.range.map(|range| range.max),
        integer: scan.fractional.count + scan.nan.count + scan.infinite.count == 0,
        negative: scan.negative.count,
        fractional: scan.fractional.count,
        nan: scan.nan.count,
        infinite: scan.infinite.count,
        empty_cells: scan.empty_cells(),
        empty_genes: scan.empty_genes(),
        median_cell_sum: scan.median(|cell| cell.sum),
        median_cell_genes: scan.median(|cell| f64::from(cell.genes)),
    }
}

/// Scans each of `slots`, one after the other.
fn candidates(data: &H5ad, slots: &[Slot]) -> Vec<Candidate> {
    slots
        .iter()
        .map(|slot| {
            let found = data.matrix(slot).and_then(|matrix| {
                let scan = scan(&matrix)?;
                let kind = ValueKind::of(&scan);
                Ok((matrix.shape().1, (kind, appearance(kind, &scan))))
            });
            match found {
                Ok((genes, found)) => Candidate { slot: slot.clone(), genes, found: Ok(found) },
                Err(error) => Candidate { slot: slot.clone(), genes: 0, found: Err(error.to_string()) },
            }
        })
        .collect()
}

fn holding_counts(candidates: &[Candidate]) -> impl Iterator<Item = &Candidate> {
    candidates.iter().filter(|candidate| matches!(candidate.found, Ok((ValueKind::Counts, _))))
}

/// `layers/NAME` or `raw`, as the Python library calls them.
fn place(candidate: &Candidate) -> String {
    match &candidate.slot {
        Slot::Raw => "raw".to_owned(),
        slot => slot.to_string(),
    }
}

fn counts_finding(facts: &MatrixFacts) -> Finding {
    let message = format!(
        "X holds counts: {} non-zero whole numbers ({:.1} %), max {}, sum {} ({} {})",
        facts.nnz,
        facts.density * 100.0,
        number(facts.max.unwrap_or_default()),
        number(facts.sum),
        facts.encoding,
        facts.dtype,
    );
    Finding::ok("counts", message)
}

fn main_finding(scan: &Scan, kind: ValueKind, candidates: &[Candidate], needs_counts: bool) -> Finding {
    let looks = appearance(kind, scan);
    if !needs_counts {
        let level = if kind == ValueKind::AllZero { Level::Warn } else { Level::Info };
        return Finding::new(level, "values", format!("X looks {looks}; the method needs no counts"));
    }
    let where_else = whereabouts(candidates, true);
    let mut message = format!("X {}{where_else}", objection(kind, scan));
    if !matches!(kind, ValueKind::NotFinite | ValueKind::AllZero) {
        message.push_str(&format!("; X looks {looks}"));
    }
    with_remedy(Finding::fail("not-counts", message), candidates)
}

/// Where the counts are, as the end of a sentence.
fn whereabouts(candidates: &[Candidate], needs_counts: bool) -> String {
    if !needs_counts {
        return String::new();
    }
    let places: Vec<String> = holding_counts(candidates)
        .map(|candidate| match candidate.slot {
            Slot::Raw => format!("raw ({})", counted(candidate.genes, "gene")),
            _ => place(candidate),
        })
        .collect();
    match (places.is_empty(), candidates.is_empty()) {
        (false, _) => format!("; counts are in {}", places.join(" and ")),
        (true, false) => "; no layer and no raw holds counts".to_owned(),
        (true, true) => "; the file has no layers and no raw to take counts from".to_owned(),
    }
}

fn with_remedy(finding: Finding, candidates: &[Candidate]) -> Finding {
    match holding_counts(candidates).next().map(|candidate| &candidate.slot) {
        Some(Slot::Layer(name)) => {
            finding.hint(format!("in Python: adata.X = adata.layers[{}]", quoted(name)))
        }
        Some(_) => finding.hint("in Python: adata = adata.raw.to_adata()"),
        None => finding.hint("start from the file that holds the raw counts"),
    }
}

fn candidate_findings(candidates: &[Candidate]) -> impl Iterator<Item = Finding> {
    candidates.iter().filter_map(|candidate| match &candidate.found {
        Ok((ValueKind::Counts, _)) => None,
        Ok((_, looks)) => Some(Finding::info("other-matrix", format!("{} looks {looks}", place(candidate)))),
        Err(error) => {
            Some(Finding::warn("unreadable-matrix", format!("{} cannot be read: {error}", place(candidate))))
        }
    })
}

/// Where the first negative, fractional, NaN and infinite values stand. Not finite values fail a method that needs no
/// counts; everything else has failed already where it matters.
fn odd_values(scan: &Scan, obs: &Frame, var: &Frame, needs_counts: bool) -> Vec<Finding> {
    let broken = if needs_counts { Level::Info } else { Level::Fail };
    let sorts = [
        (&scan.negative, "negative-values", "negative", "negative", Level::Info),
        (&scan.fractional, "fractional-values", "not a whole number", "not whole numbers", Level::Info),
        (&scan.nan, "nan-values", "NaN", "NaN", broken),
        (&scan.infinite, "infinite-values", "infinite", "infinite", broken),
    ];
    let describe = |(tally, code, one, many, level): (&Tally, _, _, _, _)| {
        let first = tally.first?;
        let verb = if tally.count == 1 { format!("is {one}") } else { format!("are {many}") };
        let message = format!(
            "{} of {} non-zero values {verb}; the first is {} in cell {}, gene {}",
            tally.count,
            scan.nnz,
            number(first.value),
            quoted(&obs.index()[first.row]),
            quoted(&var.index()[first.column]),
        );
        Some(Finding::new(level, code, message))
    };
    sorts.into_iter().filter_map(describe).collect()
}

/// Counts that are 1 wherever they are not 0 have lost what models rank genes by.
fn shallow(facts: &MatrixFacts, scan: &Scan) -> Option<Finding> {
    let ones = facts.kind == ValueKind::Counts && facts.max == Some(1.0) && scan.nnz > 0;
    ones.then(|| {
        Finding::warn("binary-counts", "every count is 0 or 1: the values look binarised")
            .hint("start from the file that holds the raw counts, unless the data are this shallow")
    })
}
