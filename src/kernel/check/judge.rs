//! What the values of a matrix are: counts, or what was made of them.

use serde::Serialize;

use super::scan::{LARGEST_COUNT, Scan};
use super::wording::number;

/// Logarithms of counts per 10,000 or per million stay below this, base 2 included.
const LARGEST_LOGARITHM: f64 = 20.0;

/// What a matrix holds, by all of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueKind {
    /// Whole numbers, none negative, not all 0.
    Counts,
    /// Every value is 0.
    AllZero,
    /// NaN or infinite values among them.
    NotFinite,
    /// Negative values among them: scaled, centred, residuals, or an embedding.
    Negative,
    /// Whole numbers beyond what is ever counted.
    TooLarge,
    /// `log1p` of counts that were scaled to one sum in each cell.
    LogNormalised,
    /// Scaled to one sum in each cell.
    Normalised,
    /// Fractions in the range of logarithms.
    Logarithmic,
    /// Other fractions: estimated or corrected counts, counts per million of a subset of genes, ….
    Fractional,
}

impl ValueKind {
    pub(super) fn of(scan: &Scan) -> ValueKind {
        let Some(range) = scan.range else { return ValueKind::NotFinite };
        if scan.nan.count + scan.infinite.count > 0 {
            ValueKind::NotFinite
        } else if scan.nnz == 0 {
            ValueKind::AllZero
        } else if scan.negative.count > 0 {
            ValueKind::Negative
        } else if scan.fractional.count == 0 {
            if range.max <= LARGEST_COUNT { ValueKind::Counts } else { ValueKind::TooLarge }
        } else if log_target(scan).is_some() {
            ValueKind::LogNormalised
        } else if sum_target(scan).is_some() {
            ValueKind::Normalised
        } else if range.max < LARGEST_LOGARITHM {
            ValueKind::Logarithmic
        } else {
            ValueKind::Fractional
        }
    }
}

/// The sum that every cell had before `log1p`; the sum of a single cell says nothing.
fn log_target(scan: &Scan) -> Option<f64> {
    let comparable = scan.whole_cells == 0 && scan.cells - scan.empty_cells() > 1;
    if comparable { scan.cell_expm1_sums?.constant() } else { None }
}

/// The sum that every cell has; the sum of a single cell says nothing.
fn sum_target(scan: &Scan) -> Option<f64> {
    if scan.cells - scan.empty_cells() > 1 { scan.cell_sums?.constant() } else { None }
}

/// What the values look like, as the end of "X looks …".
pub(super) fn appearance(kind: ValueKind, scan: &Scan) -> String {
    match kind {
        ValueKind::Counts => "like counts".into(),
        ValueKind::AllZero => "empty: every value is 0".into(),
        ValueKind::NotFinite => "broken: some values are not finite numbers".into(),
        ValueKind::Negative if scan.fractional.count == 0 => {
            "like counts with something subtracted: whole numbers, some negative".into()
        }
        ValueKind::Negative => "scaled or centred".into(),
        ValueKind::TooLarge => "too large: negative numbers that were read as unsigned, perhaps".into(),
        ValueKind::LogNormalised => {
            format!("log-normalised: expm1 sums to {} in every cell", target(log_target(scan)))
        }
        ValueKind::Normalised => {
            format!(
                "normalised without logarithm: the values sum to {} in every cell",
                target(sum_target(scan))
            )
        }
        ValueKind::Logarithmic => "log-transformed: fractions in the range of logarithms".into(),
        ValueKind::Fractional => {
            "like estimated, corrected or normalised counts: fractions, not whole numbers".into()
        }
    }
}

/// A normalisation target with the rounding of single precision removed.
fn target(sum: Option<f64>) -> String {
    let Some(sum) = sum else { return "a constant".into() };
    let unit = 10f64.powf(sum.log10().floor() - 3.0);
    number((sum / unit).round() * unit)
}

/// Why a matrix is not counts, as the end of "X …".
pub(super) fn objection(kind: ValueKind, scan: &Scan) -> String {
    let max = number(scan.range.map_or(f64::NAN, |range| range.max));
    match kind {
        ValueKind::Counts => "is counts".into(),
        ValueKind::AllZero => "is not counts (every value is 0)".into(),
        ValueKind::NotFinite => {
            format!(
                "has values that are not finite ({} NaN, {} infinite)",
                scan.nan.count, scan.infinite.count
            )
        }
        ValueKind::Negative => "has negative values".into(),
        _ => format!("is not counts (max {max})"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan::scan;
    use super::*;
    use crate::matrix::Csr;

    fn kind_of(rows: &[[f64; 3]]) -> (ValueKind, String) {
        let mut csr = Csr { columns: 3, indptr: vec![0], ..Csr::default() };
        for row in rows {
            for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                csr.indices.push(column as u32);
                csr.values.push(value);
            }
            csr.indptr.push(csr.values.len());
        }
        let scan = scan(&csr).unwrap();
        let kind = ValueKind::of(&scan);
        (kind, appearance(kind, &scan))
    }

    #[test]
    fn one_odd_value_is_enough() {
        let mut rows = vec![[1.0, 2.0, 0.0]; 1000];
        assert_eq!(kind_of(&rows).0, ValueKind::Counts);
        rows[777][2] = -7.0;
        assert_eq!(kind_of(&rows).0, ValueKind::Negative);
        rows[777][2] = 0.5;
        assert_eq!(kind_of(&rows).0, ValueKind::Logarithmic);
        rows[777][2] = f64::NAN;
        assert_eq!(kind_of(&rows).0, ValueKind::NotFinite);
        rows[777][2] = f64::INFINITY;
        assert_eq!(kind_of(&rows).0, ValueKind::NotFinite);
    }

    #[test]
    fn normalised_values_are_told_with_their_target() {
        let counts = [[1.0, 2.0, 4.0], [3.0, 0.0, 2.0], [0.0, 0.0, 9.0]];
        let normalised = counts.map(|row| {
            let sum: f64 = row.iter().sum();
            row.map(|value| f64::from((value / sum * 1e4) as f32))
        });
        let (kind, text) = kind_of(&normalised);
        assert_eq!((kind, text.contains("to 10000 in every")), (ValueKind::Normalised, true), "{text}");
        let (kind, text) = kind_of(&normalised.map(|row| row.map(|value| f64::from(value.ln_1p() as f32))));
        assert_eq!((kind, text.contains("to 10000 in every")), (ValueKind::LogNormalised, true), "{text}");
    }

    #[test]
    fn other_fractions() {
        assert_eq!(kind_of(&[[1.0, 4294967289.0, 1.0]]).0, ValueKind::TooLarge);
        assert_eq!(kind_of(&[[0.5, 100.25, 1.0], [1.0, 1.0, 1.0]]).0, ValueKind::Fractional);
        assert_eq!(kind_of(&[[0.0; 3]; 4]).0, ValueKind::AllZero);
        assert_eq!(
            kind_of(&[[-1.0, 2.0, 3.0]]).1,
            "like counts with something subtracted: whole numbers, some negative"
        );
    }
}
