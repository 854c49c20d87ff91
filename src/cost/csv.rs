//! The costs of several runs as one CSV table.

use std::io::Write;

use super::CostSummary;
use crate::error::Result;

/// Writes one row per task, with its run in the first column.
pub fn write_csv(summaries: &[CostSummary], writer: impl Write) -> Result<()> {
    let _ = (summaries, writer);
    todo!()
}
