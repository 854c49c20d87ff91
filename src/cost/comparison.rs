//! Several runs side by side.

use serde::Serialize;

use super::{CostSummary, SCHEMA, Totals};
use crate::table::{ABSENT, Column, Table};
use crate::trace::units::{format_bytes, format_duration};

/// Several runs as one JSON document.
#[derive(Debug, Serialize)]
pub struct Comparison<'a> {
    pub schema: u32,
    pub runs: &'a [CostSummary],
    /// Of each run to the first.
    pub ratios: Vec<Ratios>,
}

/// One run over another; absent where either is not known. Time is per cell where both runs know their cells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratios {
    pub run_time: Option<f64>,
    pub cpu_time: Option<f64>,
    pub peak_rss: Option<f64>,
    pub peak_gpu: Option<f64>,
}

impl<'a> Comparison<'a> {
    pub fn new(runs: &'a [CostSummary]) -> Comparison<'a> {
        Comparison { schema: SCHEMA, runs, ratios: ratios(runs) }
    }
}

fn ratios(runs: &[CostSummary]) -> Vec<Ratios> {
    let first = runs.first().map(|run| &run.totals);
    runs.iter().filter_map(|run| Some(Ratios::of(&run.totals, first?))).collect()
}

impl Ratios {
    fn of(run: &Totals, base: &Totals) -> Ratios {
        let cells = match (run.cells, base.cells) {
            (Some(own), Some(other)) if own > 0 && other > 0 => own as f64 / other as f64,
            _ => 1.0,
        };
        let over = |own: Option<u64>, other: Option<u64>| {
            Some(own? as f64 / other.filter(|&value| value > 0)? as f64)
        };
        Ratios {
            run_time: over(run.run_time_ms, base.run_time_ms).map(|ratio| ratio / cells),
            cpu_time: over(run.cpu_time_ms, base.cpu_time_ms).map(|ratio| ratio / cells),
            peak_rss: over(run.peak_rss_bytes, base.peak_rss_bytes),
            peak_gpu: over(run.peak_gpu_bytes, base.peak_gpu_bytes),
        }
    }
}

/// One row per run.
pub fn comparison_table(summaries: &[CostSummary]) -> Table {
    let mut table = Table::new([
        Column::text("run").trimmed(),
        Column::text("method"),
        Column::number("tasks"),
        Column::number("wall"),
        Column::number("CPU time"),
        Column::number("peak RSS"),
        Column::number("peak GPU"),
        Column::text("status"),
    ]);
    for summary in summaries {
        let totals = &summary.totals;
        let bytes = |bytes: Option<u64>| bytes.map_or(ABSENT.to_owned(), format_bytes);
        let duration = |time: Option<u64>| time.map_or(ABSENT.to_owned(), format_duration);
        table.row([
            name(summary),
            summary.method.clone().unwrap_or_default(),
            totals.tasks.to_string(),
            duration(totals.run_time_ms),
            duration(totals.cpu_time_ms),
            bytes(totals.peak_rss_bytes),
            bytes(totals.peak_gpu_bytes),
            summary.status.name().to_owned(),
        ]);
    }
    table
}

/// One row per run: its batch size, what 1,000 cells cost, and its ratios to the first.
pub fn ratio_table(summaries: &[CostSummary]) -> Table {
    let mut table = Table::new([
        Column::text("run").trimmed(),
        Column::number("cells"),
        Column::number("batch"),
        Column::number("s/1000"),
        Column::number("CPU-h/1000"),
        Column::number("GPU-h/1000"),
        Column::number("x time"),
        Column::number("x RSS"),
        Column::number("x GPU"),
    ]);
    let times = |ratio: Option<f64>| ratio.map_or(ABSENT.to_owned(), |ratio| format!("{ratio:.2}"));
    let figures = |value: Option<f64>| value.map_or(ABSENT.to_owned(), significant);
    for (summary, ratios) in summaries.iter().zip(ratios(summaries)) {
        let per = summary.totals.per_1000_cells;
        table.row([
            name(summary),
            summary.totals.cells.map_or(String::new(), |cells| cells.to_string()),
            batch(summary),
            figures(per.and_then(|per| per.seconds)),
            figures(per.and_then(|per| per.cpu_hours)),
            figures(per.and_then(|per| per.gpu_hours)),
            times(ratios.run_time),
            times(ratios.peak_rss),
            times(ratios.peak_gpu),
        ]);
    }
    table
}

/// Three figures: `12.3`, `0.00123`.
pub(super) fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (2 - value.abs().log10().floor() as i64).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

/// The batch size that held in all tasks: `64`, `16 to 64`.
fn batch(summary: &CostSummary) -> String {
    let used = || summary.tasks.iter().filter_map(|task| task.batch_size_used);
    match (used().min(), used().max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => String::new(),
    }
}

fn name(summary: &CostSummary) -> String {
    summary.run.clone().unwrap_or_else(|| summary.trace.display().to_string())
}
