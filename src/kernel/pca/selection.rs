//! Highly variable genes, Seurat flavour: the genes most dispersed among genes of similar mean.
//!
//! Reference: scanpy 1.11.5, `pp.highly_variable_genes(flavor="seurat", n_top_genes=…)` with its 20 bins, which follows
//! Seurat's `mean.var.plot`.

use super::statistics::Gene;

/// Bins of equal width over the log of the mean.
const BINS: usize = 20;

/// The mean taken for a gene without counts, so that its dispersion is 0 and not 0 / 0.
const UNSEEN_MEAN: f64 = 1e-12;

/// Dispersions closer than this (relative above 1, absolute below) are one: their difference is rounding.
const TIE: f64 = 1e-10;

/// The columns of the `top` most variable genes, ascending.
///
/// All genes that tie with the last one are kept as well, so there may be more; genes that do not vary, or that alone in
/// a bin have a log dispersion of 0, have no normalised dispersion and are never kept, so there may be fewer.
pub(super) fn highly_variable(genes: &[Gene], top: usize) -> Vec<u32> {
    let dispersions = normalized_dispersions(genes);
    let mut ranked: Vec<f64> = dispersions.iter().copied().filter(|value| !value.is_nan()).collect();
    ranked.sort_unstable_by(|a, b| b.total_cmp(a));
    let Some(&last) = ranked.get(top.min(ranked.len()).saturating_sub(1)) else {
        return Vec::new();
    };
    let cutoff = if last.is_finite() { last - TIE * last.abs().max(1.0) } else { last };
    (0u32..).zip(&dispersions).filter(|(_, value)| **value >= cutoff).map(|(gene, _)| gene).collect()
}

/// Per gene the log dispersion, less its bin's mean, over its bin's standard deviation; NaN where there is none.
fn normalized_dispersions(genes: &[Gene]) -> Vec<f64> {
    let mean_of = |gene: &Gene| if gene.mean == 0.0 { UNSEEN_MEAN } else { gene.mean };
    let log_means: Vec<f64> = genes.iter().map(|gene| mean_of(gene).ln_1p()).collect();
    let dispersions: Vec<f64> =
        genes.iter().map(|gene| log_dispersion(gene.variance / mean_of(gene))).collect();
    let bins = equal_bins(&log_means);
    let mut spreads = [Spread::default(); BINS];
    for (&bin, &dispersion) in bins.iter().zip(&dispersions) {
        if !dispersion.is_nan() {
            spreads[bin].add(dispersion);
        }
    }
    let normalized = |(&bin, &dispersion): (&usize, &f64)| {
        let (centre, deviation) = spreads[bin].centre_and_deviation();
        (dispersion - centre) / deviation
    };
    bins.iter().zip(&dispersions).map(normalized).collect()
}

fn log_dispersion(dispersion: f64) -> f64 {
    if dispersion == 0.0 { f64::NAN } else { dispersion.ln() }
}

/// The bin of each value among [`BINS`] of equal width from the smallest to the largest value, upper edges inclusive.
///
/// As `pandas.cut(values, 20)`: the lowest edge is moved down by a thousandth of the range; where all values are equal
/// the range is widened by a thousandth of the value on both sides instead.
fn equal_bins(values: &[f64]) -> Vec<usize> {
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let margin = if smallest == largest { 1e-3 * smallest.abs() } else { 0.0 };
    let (low, high) = (smallest - margin, largest + margin);
    let step = (high - low) / BINS as f64;
    let upper = |bin: usize| if bin + 1 == BINS { high } else { (bin + 1) as f64 * step + low };
    let edges: Vec<f64> = (0..BINS).map(upper).collect();
    values.iter().map(|&value| edges.partition_point(|&edge| edge < value).min(BINS - 1)).collect()
}

/// Mean and spread of a bin's dispersions, by Welford's update: equal values give a deviation of exactly 0.
#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let before = value - self.mean;
        self.mean += before / self.count;
        self.squares += before * (value - self.mean);
    }

    /// What a bin's dispersions are normalised with: mean and standard deviation (`n - 1`).
    ///
    /// A gene alone in its bin has no deviation; 0 and its own dispersion give it a normalised dispersion of 1.
    fn centre_and_deviation(&self) -> (f64, f64) {
        if self.count < 2.0 {
            return (0.0, self.mean);
        }
        (self.mean, (self.squares / (self.count - 1.0)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_those_of_pandas_cut() {
        // pandas.cut([0, 1, 2, 3, 40, 2.0000001], 20, labels=False)
        assert_eq!(equal_bins(&[0.0, 1.0, 2.0, 3.0, 40.0, 2.000_000_1]), [0, 0, 0, 1, 19, 1]);
        // pandas.cut([5, 5, 5], 20, labels=False)
        assert_eq!(equal_bins(&[5.0, 5.0, 5.0]), [9, 9, 9]);
    }

    fn gene(mean: f64, variance: f64) -> Gene {
        Gene { mean, variance, log_mean: mean, log_variance: variance }
    }

    #[test]
    fn a_gene_alone_in_its_bin_has_a_normalised_dispersion_of_one() {
        let genes = [gene(0.0, 0.0), gene(1.0, 4.0), gene(1.0, 2.0), gene(1000.0, 9000.0)];
        let values = normalized_dispersions(&genes);
        assert!(values[0].is_nan(), "a gene without counts has none");
        let half = 0.5f64.sqrt();
        assert!((values[1] - half).abs() < 1e-12 && (values[2] + half).abs() < 1e-12, "{values:?}");
        assert_eq!(values[3], 1.0);
    }

    #[test]
    fn ties_with_the_last_gene_are_kept_and_constant_genes_are_not() {
        let genes = [gene(0.0, 0.0), gene(1.0, 4.0), gene(1.0, 2.0), gene(1.0, 2.0), gene(9.0, 0.0)];
        assert_eq!(highly_variable(&genes, 1), [1]);
        assert_eq!(highly_variable(&genes, 2), [1, 2, 3]);
        assert_eq!(highly_variable(&genes, 100), [1, 2, 3]);
        assert!(highly_variable(&[gene(0.0, 0.0), gene(3.0, 0.0)], 2).is_empty());
    }
}
