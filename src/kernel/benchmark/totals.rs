//! Totals over metrics and samples, and the order of methods.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Sample;
use super::metrics::{Group, METRICS, Metric};

/// Weight of bio conservation in the overall score; batch mixing has the rest. As in scIB (Luecken et al. 2022).
pub const BIO_WEIGHT: f64 = 0.6;

/// A method's place among those scored together.
///
/// A metric's mean is taken over the samples that have it, on the scale from 0 to 1 of [`Metric::scaled`]; a total is the
/// mean of the metrics that count in it. A metric that is NA in every sample is left out of the total, and `notes` say so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodTotal {
    /// 1 is best; equal scores share a rank; absent without any total.
    pub rank: Option<usize>,
    pub method: String,
    pub n_samples: usize,
    /// 0.6 bio + 0.4 batch; absent unless both are there.
    pub overall: Option<f64>,
    pub bio: Option<f64>,
    pub batch: Option<f64>,
    /// Mean of each metric over samples, unscaled, in the order of [`METRICS`].
    pub metrics: Vec<Option<f64>>,
    pub notes: Vec<String>,
}

impl MethodTotal {
    /// What methods are ordered by: overall; where batches were not scored, the total that there is.
    fn order(&self) -> Option<f64> {
        self.overall.or(self.bio).or(self.batch)
    }
}

/// The methods of `samples`, best first; those without any total last, by name.
pub fn rank(samples: &[Sample]) -> Vec<MethodTotal> {
    let methods: BTreeSet<&str> = samples.iter().map(|sample| sample.method.as_str()).collect();
    let everywhere: BTreeSet<&str> = samples.iter().map(|sample| sample.sample_id.as_str()).collect();
    let mut totals: Vec<MethodTotal> = methods
        .iter()
        .map(|method| {
            let own: Vec<&Sample> = samples.iter().filter(|sample| sample.method == *method).collect();
            let mut total = total(method, &own);
            let missing: Vec<&str> = everywhere
                .iter()
                .filter(|id| !own.iter().any(|sample| sample.sample_id == **id))
                .copied()
                .collect();
            if !missing.is_empty() {
                total.notes.push(format!("not scored on {}", missing.join(", ")));
            }
            total
        })
        .collect();
    let order = |total: &MethodTotal| total.order().unwrap_or(f64::NEG_INFINITY);
    totals.sort_by(|a, b| order(b).total_cmp(&order(a)));
    // Ranks compare only what is measured alike.
    for position in 0..totals.len() {
        let Some(own) = totals[position].order() else { continue };
        let equal = position.checked_sub(1).filter(|&before| totals[before].order() == Some(own));
        totals[position].rank = equal.map_or(Some(position + 1), |before| totals[before].rank);
    }
    totals
}

fn total(method: &str, samples: &[&Sample]) -> MethodTotal {
    let mut notes = Vec::new();
    let metrics: Vec<Option<f64>> = METRICS.iter().map(|metric| mean(samples, metric, |v| v)).collect();
    let mut group_total = |group: Group| {
        let counted: Vec<&Metric> = group.metrics().filter(|metric| metric.in_total).collect();
        let asked = samples.iter().any(|sample| sample.score(counted[0].name).is_some());
        let scaled: Vec<(&Metric, Option<f64>)> = counted
            .into_iter()
            .map(|metric| (metric, mean(samples, metric, |value| metric.scaled(value))))
            .collect();
        let left_out: Vec<&str> =
            scaled.iter().filter(|(_, mean)| mean.is_none()).map(|(metric, _)| metric.name).collect();
        let known: Vec<f64> = scaled.iter().filter_map(|(_, mean)| *mean).collect();
        if asked && !left_out.is_empty() {
            notes.push(format!("{} without {} (NA)", group.name(), left_out.join(", ")));
        }
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let bio = group_total(Group::BioConservation);
    let batch = group_total(Group::BatchMixing);
    let overall = bio.zip(batch).map(|(bio, batch)| BIO_WEIGHT * bio + (1.0 - BIO_WEIGHT) * batch);
    MethodTotal {
        rank: None,
        method: method.to_owned(),
        n_samples: samples.len(),
        overall,
        bio,
        batch,
        metrics,
        notes,
    }
}

/// The mean of a metric over the samples that have it.
fn mean(samples: &[&Sample], metric: &Metric, scale: impl Fn(f64) -> f64) -> Option<f64> {
    let values: Vec<f64> =
        samples.iter().filter_map(|sample| sample.score(metric.name)?.value).map(scale).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn a_total_leaves_na_out_and_says_so() {
        let samples = [sample(
            "pca",
            "colon",
            &[("NMI", Some(0.8)), ("ARI", Some(0.6)), ("ASW", Some(0.0)), ("cLISI", None)],
        )];
        let totals = rank(&samples);
        assert!((totals[0].bio.unwrap() - (0.8 + 0.6 + 0.5) / 3.0).abs() < 1e-12);
        assert_eq!((totals[0].batch, totals[0].overall, totals[0].rank), (None, None, Some(1)));
        assert!(totals[0].notes[0].contains("cLISI"), "{:?}", totals[0].notes);
    }

    #[test]
    fn methods_are_ordered_by_the_overall_score() {
        let both = |method, bio, batch| sample(method, "colon", &[("NMI", Some(bio)), ("kBET", Some(batch))]);
        let totals = rank(&[both("a", 0.5, 0.5), both("b", 0.9, 0.1), both("c", 0.5, 0.5)]);
        let order: Vec<(&str, Option<usize>)> =
            totals.iter().map(|total| (total.method.as_str(), total.rank)).collect();
        assert_eq!(order, [("b", Some(1)), ("a", Some(2)), ("c", Some(2))]);
        assert!((totals[0].overall.unwrap() - 0.58).abs() < 1e-12);
    }

    #[test]
    fn a_method_that_lacks_a_sample_is_marked() {
        let totals = rank(&[
            sample("a", "colon", &[("NMI", Some(0.5))]),
            sample("a", "lung", &[("NMI", Some(0.7))]),
            sample("b", "lung", &[("NMI", None)]),
        ]);
        assert_eq!((totals[0].method.as_str(), totals[0].bio, totals[0].n_samples), ("a", Some(0.6), 2));
        assert_eq!(totals[1].rank, None);
        assert!(totals[1].notes.contains(&"not scored on colon".to_owned()));
    }
}
