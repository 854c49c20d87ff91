//! The cost of runs as tables for people.

use super::{CostSummary, Price, TaskCost};
use crate::table::{ABSENT, Column, Table};
use crate::trace::Status;
use crate::trace::units::{format_bytes, format_duration, format_percent};

/// One row per attempt of a task, and the totals of what this run executed. Cards appear where one was used.
pub fn task_table(summary: &CostSummary) -> Table {
    let with_gpu = summary.tasks.iter().any(|task| task.peak_gpu_bytes.is_some());
    let mut table = Table::new(cut_gpu(
        with_gpu,
        [
            Column::text("task").trimmed(),
            Column::number("wall"),
            Column::number("CPU time"),
            Column::number("%CPU"),
            Column::number("peak RSS"),
            Column::number("peak GPU"),
            Column::number("attempts"),
            Column::text("status"),
        ],
    ));
    for task in &summary.tasks {
        table.row(cut_gpu(
            with_gpu,
            [
                task.name.clone(),
                duration(task.wall_ms),
                duration(task.cpu_time_ms),
                percent(task.cpu_percent),
                bytes(task.peak_rss_bytes),
                bytes(task.peak_gpu_bytes),
                task.attempt.map_or(String::new(), |attempt| attempt.to_string()),
                task_status(task),
            ],
        ));
    }
    let totals = &summary.totals;
    table.total(cut_gpu(
        with_gpu,
        [
            format!("total, {} executed", totals.executed),
            duration(totals.run_time_ms),
            duration(totals.cpu_time_ms),
            percent(totals.cpu_percent),
            bytes(totals.peak_rss_bytes),
            bytes(totals.peak_gpu_bytes),
            String::new(),
            summary.status.name().to_owned(),
        ],
    ));
    table
}

/// What the totals line has no room for, one sentence each: span, card-hours, price, and the summary's notes.
pub fn remarks(summary: &CostSummary) -> Vec<String> {
    let totals = &summary.totals;
    let mut remarks = Vec::new();
    if let Some(span) = totals.span_ms {
        let queue = totals.queue_ms.map_or(String::new(), |queue| {
            format!("; tasks waited {} in the queue, added up", format_duration(queue))
        });
        remarks
            .push(format!("elapsed, first submission to last completion: {}{queue}", format_duration(span)));
    }
    if let Some(hours) = totals.gpu_hours {
        remarks.push(format!("GPU-hours: {hours:.3}"));
    }
    remarks.extend(totals.price.as_ref().and_then(price));
    remarks.extend(summary.notes.iter().cloned());
    remarks
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
        table.row([
            summary.run.clone().unwrap_or_else(|| summary.trace.display().to_string()),
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

/// The cells of a row, with or without the sixth, which is about cards.
fn cut_gpu<T>(with_gpu: bool, cells: [T; 8]) -> impl Iterator<Item = T> {
    cells.into_iter().enumerate().filter(move |(at, _)| with_gpu || *at != 5).map(|(_, cell)| cell)
}

fn duration(milliseconds: Option<u64>) -> String {
    milliseconds.map_or(ABSENT.to_owned(), format_duration)
}

fn bytes(bytes: Option<u64>) -> String {
    bytes.map_or(ABSENT.to_owned(), format_bytes)
}

fn percent(percent: Option<f64>) -> String {
    percent.map_or(ABSENT.to_owned(), format_percent)
}

fn task_status(task: &TaskCost) -> String {
    match (&task.status, task.exit) {
        _ if task.memory_kill.is_some() => "killed for memory".to_owned(),
        (Status::Failed, Some(code)) => format!("failed ({code})"),
        (status, _) => status.to_string().to_lowercase(),
    }
}

fn price(price: &Price) -> Option<String> {
    let money = price.money.map(|money| {
        let currency = price.currency.as_deref().map_or(String::new(), |currency| format!(" {currency}"));
        format!("price: {money:.2}{currency}")
    });
    let energy = price.kilowatt_hours.map(|energy| format!("energy: {energy:.3} kWh"));
    let parts: Vec<String> = money.into_iter().chain(energy).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
