//! What a fit tells its caller while it runs and when it is done.

use std::fmt;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::error::Result;

/// A step of the computation; written in lower case wherever it is serialised or displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// First pass over the matrix: gene statistics.
    Statistics,
    /// Choice of the highly variable genes.
    Selection,
    /// Second pass over the matrix: the Gram matrix.
    Gram,
    /// Eigenvectors of the Gram matrix.
    Eigen,
    /// Third pass over the matrix: scores.
    Project,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Statistics => "statistics",
            Phase::Selection => "selection",
            Phase::Gram => "gram",
            Phase::Eigen => "eigen",
            Phase::Project => "project",
        })
    }
}

/// How far a phase is: `done` of `cells` cells. Phases without a pass over the matrix stay at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub phase: Phase,
    pub done: usize,
    pub cells: usize,
}

/// Something about a fit that its user should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// Cells without a single count: their scaled row is that of zeros.
    EmptyCells { count: usize },
    /// Fewer genes vary than were to be kept.
    FewerGenes { asked: usize, kept: usize },
    /// The data cannot have as many components.
    FewerComponents { asked: usize, given: usize, cells: usize, genes: usize },
    /// The last components have no variance: they are zero, and so are their scores.
    ComponentsWithoutVariance { count: usize, of: usize },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Note::EmptyCells { count: 1 } => {
                write!(f, "1 cell has no counts; it is placed as a cell of zeros")
            }
            Note::EmptyCells { count } => {
                write!(f, "{count} cells have no counts; they are placed as cells of zeros")
            }
            Note::FewerGenes { asked, kept } => {
                write!(f, "{asked} highly variable genes were asked for, all {kept} that vary are kept")
            }
            Note::FewerComponents { asked, given, cells, genes } => write!(
                f,
                "{asked} components were asked for, {cells} cells and {genes} genes have {given}: {given} are given"
            ),
            Note::ComponentsWithoutVariance { count, of } => {
                write!(f, "the last {count} of {of} components have no variance and are zero")
            }
        }
    }
}

/// Runs phases, reports their progress and takes their time.
pub(super) struct Phases<'a> {
    observer: &'a dyn Fn(Progress),
    cells: usize,
    seconds: Vec<(Phase, f64)>,
}

impl<'a> Phases<'a> {
    pub fn new(cells: usize, observer: &'a dyn Fn(Progress)) -> Self {
        Phases { observer, cells, seconds: Vec::new() }
    }

    /// Runs one phase; `work` is given a function to call with the number of cells done.
    pub fn run<T>(&mut self, phase: Phase, work: impl FnOnce(&dyn Fn(usize)) -> Result<T>) -> Result<T> {
        let report = |done| (self.observer)(Progress { phase, done, cells: self.cells });
        report(0);
        let start = Instant::now();
        let result = work(&report)?;
        self.seconds.push((phase, start.elapsed().as_secs_f64()));
        Ok(result)
    }

    pub fn into_seconds(self) -> Vec<(Phase, f64)> {
        self.seconds
    }
}
