//! What the cost of a task grows with.
//!
//! Every cost is taken as `a + b x`: `a` and `b` come from measured runs, `x` from the sizes of the data by the laws below. Where
//! a kernel's cost has parts that grow differently, their ratio is that of this program's own kernels, measured on 700 to
//! 50,000 cells; it is a ratio of operations and of buffers, and hardly depends on the machine.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::history::Data;
use crate::kernel::harmony::cluster_count;
use crate::plan::Role;

/// Cells at which the comparison of all pairs takes a benchmark as long as all that is linear.
const BENCHMARK_PAIRS: f64 = 20_000.0;
/// The same of the geometry, for the cells that are compared.
const GEOMETRY_PAIRS: f64 = 23_500.0;
/// What reading a cell's counts takes, in units of what is linear in the cells compared.
const GEOMETRY_READ: f64 = 0.7;
/// The same of labelling by neighbours.
const NEIGHBOUR_PAIRS: f64 = 20_000.0;
/// What a cell to label takes, in units of one to learn from.
const LABELLED: f64 = 0.2;
/// A PCA's eigenproblem has as many rows as genes were selected, or as there are cells. Its time grows with their cube: as
/// long as reading one value for each so many.
const EIGEN_CUBE_FOR_A_VALUE: f64 = 560.0;
/// Bytes beside the eigenproblem's for each cell, in units of one of its entries.
const PCA_CELL: f64 = 5.0;
/// What Harmony's rounds take for each cell and cluster, in units of reading one value, and how many of the memberships that it
/// holds take the memory of an entry of the eigenproblem.
const MEMBERSHIP: f64 = 13.0;
const MEMBERSHIPS_AN_ENTRY: f64 = 7.0;
/// Up to so many cells the buffers of the comparison of pairs grow too, by this share of what grows always.
const BUFFERED: f64 = 5000.0;
const BENCHMARK_BUFFER: f64 = 0.6;
const GEOMETRY_BUFFER: f64 = 1.44;
/// Cells that a runner holds at once; beyond, only its results grow.
const STRETCH: f64 = 4096.0;

/// What is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    Seconds,
    RssBytes,
}

/// A task, by what its cost depends on.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    pub process: &'a str,
    /// Its place among the inputs; none for what joins the results of all.
    pub input: Option<usize>,
    pub inputs: &'a [Data],
    pub options: &'a BTreeMap<String, Value>,
    /// A script does it, which reads its data in stretches.
    pub by_runner: bool,
}

impl Job<'_> {
    /// What the quantity grows with; 0 where it does not grow.
    pub fn size(&self, quantity: Quantity) -> f64 {
        let Some(data) = self.input.and_then(|input| self.inputs.get(input)) else { return 0.0 };
        let cells = data.cells as f64;
        match (self.process, quantity) {
            ("CLASSIFY", _) => self.labelling(quantity),
            ("BENCHMARK", Quantity::Seconds) => cells + cells * cells / BENCHMARK_PAIRS,
            ("BENCHMARK", Quantity::RssBytes) => cells + BENCHMARK_BUFFER * cells.min(BUFFERED),
            ("GEOMETRY", _) => {
                let compared = cells.min(self.number("max_cells").unwrap_or(cells));
                match quantity {
                    Quantity::Seconds => {
                        compared + compared * compared / GEOMETRY_PAIRS + GEOMETRY_READ * cells
                    }
                    Quantity::RssBytes => compared + GEOMETRY_BUFFER * compared.min(BUFFERED),
                }
            }
            ("EMBED" | "FIT", _) if !self.by_runner && !self.has_model() => self.components(data, quantity),
            (_, Quantity::RssBytes) if self.by_runner || self.has_model() => cells.min(STRETCH),
            (_, Quantity::RssBytes) => cells,
            // Cells of one data set store alike, of two they may differ.
            (_, Quantity::Seconds) => data.stored.map_or(cells, |stored| stored as f64),
        }
    }

    /// A kernel with a table of vectors streams cells through it.
    fn has_model(&self) -> bool {
        self.options.contains_key("model")
    }

    /// Principal components, which harmony corrects.
    fn components(&self, data: &Data, quantity: Quantity) -> f64 {
        let cells = data.cells as f64;
        let corrected = self.number("seurat_n_hvg");
        let selected = self.number("pca_n_top_genes").or(corrected).unwrap_or(2000.0);
        let rows = selected.min(cells).min(data.genes as f64);
        let memberships =
            if corrected.is_some() { cells * cluster_count(data.cells as usize) as f64 } else { 0.0 };
        match quantity {
            Quantity::Seconds => {
                data.stored.map_or(cells, |stored| stored as f64)
                    + rows.powi(3) / EIGEN_CUBE_FOR_A_VALUE
                    + MEMBERSHIP * memberships
            }
            Quantity::RssBytes => rows * rows + PCA_CELL * cells + memberships / MEMBERSHIPS_AN_ENTRY,
        }
    }

    fn labelling(&self, quantity: Quantity) -> f64 {
        let of = |role| self.inputs.iter().filter(move |data| data.role == role);
        let cells = |role| of(role).map(|data| data.cells as f64).sum::<f64>();
        let (learnt, labelled) = (cells(Role::Reference), cells(Role::Query));
        let by_neighbours = self.options.get("classifier").and_then(Value::as_str) == Some("knn");
        match quantity {
            Quantity::Seconds if by_neighbours => learnt + labelled + learnt * labelled / NEIGHBOUR_PAIRS,
            Quantity::Seconds => learnt + LABELLED * labelled,
            Quantity::RssBytes => learnt + labelled,
        }
    }

    fn number(&self, option: &str) -> Option<f64> {
        self.options.get(option)?.as_f64().filter(|number| *number > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn data(role: Role, cells: u64) -> Data {
        Data { role, cells, genes: 1000, stored: Some(cells * 50), bytes: 0 }
    }

    fn size(process: &str, inputs: &[Data], options: Value, quantity: Quantity) -> f64 {
        let options: BTreeMap<String, Value> = serde_json::from_value(options).unwrap();
        let input = (!inputs.is_empty()).then_some(0);
        Job { process, input, inputs, options: &options, by_runner: false }.size(quantity)
    }

    #[test]
    fn each_process_grows_with_what_it_reads_and_compares() {
        let one = [data(Role::Data, 40_000)];
        assert_eq!(size("EMBED", &one, json!({}), Quantity::Seconds), 2e6 + 1e9 / EIGEN_CUBE_FOR_A_VALUE);
        let selected = json!({ "pca_n_top_genes": 100 });
        assert_eq!(size("EMBED", &one, selected, Quantity::RssBytes), 1e4 + 2e5);
        let harmony = json!({ "seurat_n_hvg": 100 });
        assert_eq!(size("EMBED", &one, harmony, Quantity::RssBytes), 1e4 + 2e5 + 4e6 / MEMBERSHIPS_AN_ENTRY);
        let streamed = json!({ "model": "GenePT/ada-002" });
        assert_eq!(size("EMBED", &one, streamed.clone(), Quantity::RssBytes), STRETCH);
        assert_eq!(size("EMBED", &one, streamed, Quantity::Seconds), 2e6);
        assert_eq!(size("PROJECT", &one, json!({}), Quantity::RssBytes), 4e4);
        assert_eq!(size("BENCHMARK", &one, json!({}), Quantity::Seconds), 40_000.0 + 80_000.0);
        assert_eq!(
            size("GEOMETRY", &one, json!({ "max_cells": 10_000 }), Quantity::RssBytes),
            1e4 + 1.44 * 5e3
        );
        assert_eq!(size("RANK", &[], json!({}), Quantity::Seconds), 0.0);
        let pair = [data(Role::Reference, 1000), data(Role::Query, 500)];
        assert_eq!(size("CLASSIFY", &pair, json!({ "classifier": "logreg" }), Quantity::Seconds), 1100.0);
        assert_eq!(size("CLASSIFY", &pair, json!({ "classifier": "knn" }), Quantity::Seconds), 1525.0);
    }
}
