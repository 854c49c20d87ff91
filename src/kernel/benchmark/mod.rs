//! Scores of an embedding: whether labels stay together and batches mix.
//!
//! ```text
//! draw -> score -> Sample -> totals -> tables, plot
//! ```
//!
//! Peak memory of n cells in d dimensions, in bytes: at most n (4 d + 3,200) + 40 MB with two threads, and about 600 n for each
//! further one, which runs a Leiden clustering of its own. The embedding takes 4 n d of it, its 89 neighbours 712 n, and
//! the graph of kBET the most. Above 200,000 cells, where neighbours and silhouettes need the cells once more in another
//! order, it is n (8 d + 1,300) + 40 MB if that is more. Nothing is cells x cells. `tests/bench/benchmark.py` prints the peak
//! beside the formula.

pub mod draw;
pub mod metrics;
pub mod plot;
pub mod score;
pub mod tables;
pub mod totals;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::usage::Phase;
use metrics::{Group, Metric};

/// The clustering that is compared with the labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clustering {
    /// At the resolution whose number of clusters is nearest to the number of labels.
    Leiden,
    /// As many clusters as labels.
    Kmeans,
}

impl Clustering {
    pub fn name(self) -> &'static str {
        match self {
            Clustering::Leiden => "leiden",
            Clustering::Kmeans => "kmeans",
        }
    }
}

/// The groups of metrics to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metrics {
    Bio,
    Batch,
    All,
}

impl Metrics {
    /// Whether the group is asked for.
    pub fn include(self, group: Group) -> bool {
        match self {
            Metrics::All => true,
            Metrics::Bio => group == Group::BioConservation,
            Metrics::Batch => group == Group::BatchMixing,
        }
    }
}

/// One embedding, scored: what the tables are made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub schema: u32,
    pub sample_id: String,
    pub method: String,
    pub clustering: Clustering,
    pub n_dims: usize,
    /// What holds for all scores: cells left out, how neighbours were found.
    pub notes: Vec<String>,
    pub scores: Vec<MetricScore>,
    /// Wall time and peak memory of each part of the work.
    pub phases: Vec<Phase>,
}

impl Sample {
    /// The score of a metric; `None` where it was not asked for.
    pub fn score(&self, metric: &str) -> Option<&MetricScore> {
        self.scores.iter().find(|score| score.metric == metric)
    }
}

/// One metric of one embedding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricScore {
    pub metric: String,
    pub group: Group,
    /// Null is NA, and the first note says why.
    pub value: Option<f64>,
    pub notes: Vec<String>,
    pub n_cells: usize,
    pub n_labels: usize,
    pub n_batches: Option<usize>,
}

impl MetricScore {
    /// The metric, which is one of [`metrics::METRICS`] unless the file is another version's.
    pub fn known(&self) -> Option<&'static Metric> {
        Metric::of(&self.metric)
    }
}

/// Time and peak memory by metric, where the part it belongs to was measured.
pub fn costs(sample: &Sample) -> BTreeMap<&str, &Phase> {
    let phase = |score: &MetricScore| {
        let name = score.known()?.phase;
        sample.phases.iter().find(|phase| phase.name == name)
    };
    sample.scores.iter().filter_map(|score| Some((score.metric.as_str(), phase(score)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample with the scores given and nothing else.
    pub fn sample(method: &str, id: &str, values: &[(&str, Option<f64>)]) -> Sample {
        let score = |&(metric, value): &(&str, Option<f64>)| MetricScore {
            metric: metric.to_owned(),
            group: Metric::of(metric).unwrap().group,
            value,
            notes: value.is_none().then(|| "one label only".to_owned()).into_iter().collect(),
            n_cells: 100,
            n_labels: 3,
            n_batches: None,
        };
        Sample {
            schema: 1,
            sample_id: id.to_owned(),
            method: method.to_owned(),
            clustering: Clustering::Leiden,
            n_dims: 10,
            notes: Vec::new(),
            scores: values.iter().map(score).collect(),
            phases: Vec::new(),
        }
    }
}
