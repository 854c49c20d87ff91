//! The metrics of `benchmark`: their names, groups, and how each counts in a total.

use serde::{Deserialize, Serialize};

/// What a metric is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Whether cells of one label stay together.
    BioConservation,
    /// Whether cells of different batches mix.
    BatchMixing,
}

impl Group {
    pub const ALL: [Group; 2] = [Group::BioConservation, Group::BatchMixing];

    /// The name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Group::BioConservation => "bio_conservation",
            Group::BatchMixing => "batch_mixing",
        }
    }

    /// The metrics of the group, in the order of the long table.
    pub fn metrics(self) -> impl Iterator<Item = &'static Metric> {
        METRICS.iter().filter(move |metric| metric.group == self)
    }
}

/// One metric. Higher is better for all of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub group: Group,
    /// The lowest value it can take; the highest is 1 for all.
    pub lowest: f64,
    /// Whether it counts in the group's total: homogeneity, completeness and Fowlkes-Mallows measure the same agreement of
    /// clusters and labels as NMI and ARI, which would count five times.
    pub in_total: bool,
    /// The part of the work that its time and memory belong to.
    pub phase: &'static str,
    pub title: &'static str,
}

/// All metrics, in the order of the long table.
pub const METRICS: [Metric; 13] = [
    bio("NMI", 0.0, true, "clustering", "normalised mutual information"),
    bio("HOM", 0.0, false, "clustering", "homogeneity"),
    bio("COM", 0.0, false, "clustering", "completeness"),
    bio("FMI", 0.0, false, "clustering", "Fowlkes-Mallows index"),
    bio("ARI", 0.0, true, "clustering", "adjusted Rand index"),
    bio("ASW", -1.0, true, "ASW", "silhouette of the labels"),
    bio("cLISI", 0.0, true, "cLISI", "label purity of neighbourhoods"),
    bio("Acc@kNN", 0.0, true, "Acc@kNN", "accuracy of 5 nearest neighbours"),
    bio("GC", 0.0, true, "GC", "connectivity of each label's cells"),
    batch("kBET", "acceptance of local batch frequencies"),
    batch("BRAS", "silhouette of batches within labels, inverted"),
    batch("iLISI", "batch diversity of neighbourhoods"),
    batch("CiLISI", "batch diversity of neighbourhoods within labels"),
];

const fn bio(
    name: &'static str,
    lowest: f64,
    in_total: bool,
    phase: &'static str,
    title: &'static str,
) -> Metric {
    Metric { name, group: Group::BioConservation, lowest, in_total, phase, title }
}

const fn batch(name: &'static str, title: &'static str) -> Metric {
    Metric { name, group: Group::BatchMixing, lowest: 0.0, in_total: true, phase: name, title }
}

impl Metric {
    /// The metric of a name.
    pub fn of(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// The value on the scale from 0 to 1 on which totals are taken. What is below the lowest of the scale (an adjusted Rand
    /// index worse than chance, a neighbourhood a little more mixed than the definition's bound) counts as 0.
    pub fn scaled(&self, value: f64) -> f64 {
        ((value - self.lowest) / (1.0 - self.lowest)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_silhouette_is_moved_to_the_scale() {
        assert_eq!(Metric::of("ASW").unwrap().scaled(0.0), 0.5);
        assert_eq!(Metric::of("NMI").unwrap().scaled(0.4), 0.4);
        assert_eq!(Metric::of("ARI").unwrap().scaled(-0.1), 0.0);
    }

    #[test]
    fn the_long_table_has_the_order_that_notebooks_know() {
        let names: Vec<&str> = Group::BioConservation.metrics().map(|metric| metric.name).collect();
        assert_eq!(names, ["NMI", "HOM", "COM", "FMI", "ARI", "ASW", "cLISI", "Acc@kNN", "GC"]);
    }
}
