//! Geometry of an embedding: its dimension, its anisotropy, and what it keeps of the counts it was made from.
//!
//! Every metric is defined in the file of its family. Nothing of size cells x cells is held; peak memory is at most
//! 4 (2 d + 2 g) n + 300 N + 60 MB, with n the cells used, d the dimensions, g = 2,000 the genes of R_NX and N the cells of the
//! data, whose names are paired.
//! `tests/bench/geometry.py` prints the peak beside the formula.

pub mod anisotropy;
pub mod dimension;
pub mod effects;
mod gram;
pub mod preservation;
pub mod residuals;
pub mod row;
pub mod standard;
#[cfg(test)]
mod tests;
pub mod twonn;

/// Groups of cells where some cells have none: labels or batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    /// The name of each group, sorted; every one has a cell.
    pub names: Vec<String>,
    /// The group of each cell, if it has one.
    pub codes: Vec<Option<u32>>,
}

impl Groups {
    /// Groups cells by equal names.
    pub fn of(labels: &[Option<&str>]) -> Groups {
        let mut names: Vec<&str> = labels.iter().flatten().copied().collect();
        names.sort_unstable();
        names.dedup();
        let code = |label: &str| names.partition_point(|name| *name < label) as u32;
        let codes = labels.iter().map(|label| label.map(code)).collect();
        Groups { codes, names: names.into_iter().map(str::to_owned).collect() }
    }

    /// All `cells` in one group.
    pub fn single(cells: usize) -> Groups {
        Groups { names: vec!["all".to_owned()], codes: vec![Some(0); cells] }
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no cell has a group.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The cells of each group, ascending.
    pub fn members(&self) -> Vec<Vec<u32>> {
        let mut members = vec![Vec::new(); self.len()];
        for (cell, code) in self.codes.iter().enumerate() {
            if let Some(code) = code {
                members[*code as usize].push(cell as u32);
            }
        }
        members
    }
}
