//! The cost of runs as tables for people.

use super::CostSummary;
use crate::table::Table;

/// One row per task, and the totals.
pub fn task_table(summary: &CostSummary) -> Table {
    let _ = summary;
    todo!()
}

/// One row per run.
pub fn comparison_table(summaries: &[CostSummary]) -> Table {
    let _ = summaries;
    todo!()
}
