//! The cost of runs as tables for people.

use super::comparison::significant;
use super::{CostSummary, GpuSource, PerThousand, Price, TaskCost};
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
            Column::text("measured by"),
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
                source(task.peak_gpu_source),
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
            totals.peak_gpu_source.map_or(String::new(), |source| source.name().to_owned()),
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
    if let Some(per) = totals.per_1000_cells {
        remarks.extend(per_cells(totals.cells, per));
    }
    remarks.extend(totals.price.as_ref().and_then(price));
    remarks.extend(summary.notes.iter().cloned());
    remarks
}

/// One row per attempt of a task: what the table at the end of a run has no room for. Columns without a value are left out.
pub fn detail_table(summary: &CostSummary) -> Table {
    let rows: Vec<[String; 15]> = summary.tasks.iter().map(detail).collect();
    let kept: Vec<usize> =
        (0..14).filter(|&at| at == 0 || rows.iter().any(|row| row[at] != ABSENT)).collect();
    let mut table = Table::new(kept.iter().map(|&at| match at {
        0 => Column::text(DETAILS[0]).trimmed(),
        _ => Column::number(DETAILS[at]),
    }));
    for row in rows {
        table.row(kept.iter().map(|&at| row[at].clone()));
    }
    table
}

const DETAILS: [&str; 15] = [
    "task",
    "cells",
    "s/1000",
    "CPU-h/1000",
    "GPU-h/1000",
    "GPU samples",
    "GPU busy",
    "read",
    "written",
    "asked CPUs",
    "asked memory",
    "batch asked",
    "batch held",
    "halved",
    "disk",
];

fn detail(task: &TaskCost) -> [String; 15] {
    let number = |value: Option<u64>| value.map_or(ABSENT.to_owned(), |value| value.to_string());
    let per = |of: fn(PerThousand) -> Option<f64>| {
        task.per_1000_cells.and_then(of).map_or(ABSENT.to_owned(), significant)
    };
    [
        task.name.clone(),
        number(task.cells),
        per(|per| per.seconds),
        per(|per| per.cpu_hours),
        per(|per| per.gpu_hours),
        number(task.gpu_samples),
        percent(task.gpu_utilization_percent),
        bytes(task.read_bytes),
        bytes(task.write_bytes),
        number(task.cpus.map(u64::from)),
        bytes(task.memory_bytes),
        number(task.batch_size_asked),
        number(task.batch_size_used),
        number(task.halvings.map(u64::from)),
        bytes(task.disk_bytes),
    ]
}

/// The cells of a row, with or without the sixth and seventh, which are about cards.
fn cut_gpu<T>(with_gpu: bool, cells: [T; 9]) -> impl Iterator<Item = T> {
    cells
        .into_iter()
        .enumerate()
        .filter(move |(at, _)| with_gpu || ![5, 6].contains(at))
        .map(|(_, cell)| cell)
}

fn source(source: Option<GpuSource>) -> String {
    source.map_or(ABSENT.to_owned(), |source| source.name().to_owned())
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

fn per_cells(cells: Option<u64>, per: PerThousand) -> Option<String> {
    let parts: Vec<String> = [(per.seconds, "s"), (per.cpu_hours, "CPU-hours"), (per.gpu_hours, "GPU-hours")]
        .into_iter()
        .filter_map(|(value, unit)| Some(format!("{} {unit}", significant(value?))))
        .collect();
    (!parts.is_empty()).then(|| format!("per 1000 of {} cells: {}", cells.unwrap_or(0), parts.join(", ")))
}

fn price(price: &Price) -> Option<String> {
    let money = price.money.map(|money| {
        let currency = price.currency.as_deref().map_or(String::new(), |currency| format!(" {currency}"));
        format!("price: {money:.2}{currency}")
    });
    let sampled = price
        .sampled_kilowatt_hours
        .map_or(String::new(), |energy| format!(" ({} of it sampled from the cards)", significant(energy)));
    let energy = price.kilowatt_hours.map(|energy| format!("energy: {energy:.3} kWh{sampled}"));
    let gas = price.grams_co2e.map(|grams| format!("{} g CO2e", significant(grams)));
    let parts: Vec<String> = money.into_iter().chain(energy).chain(gas).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
