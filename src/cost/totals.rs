//! The sums over the tasks of one run.

use super::per_cells::{self, PerThousand};
use super::rates::{Hours, Price, Rates};
use super::summary::percent;
use super::{TaskCost, Totals};
use crate::trace::{Status, TaskRecord};

const MILLISECONDS_PER_HOUR: f64 = 3_600_000.0;

/// Whether a task was work of this run, whatever came of it.
fn is_executed(task: &TaskCost) -> bool {
    matches!(task.status, Status::Completed | Status::Failed | Status::Aborted)
}

/// Adds up the tasks; `records` are the same tasks as the trace has them, for their dates.
pub(super) fn totals(records: &[TaskRecord], tasks: &[TaskCost]) -> Totals {
    let executed: Vec<&TaskCost> = tasks.iter().filter(|task| is_executed(task)).collect();
    let ended = || executed.iter().filter(|task| task.status != Status::Aborted);
    let cached = || tasks.iter().filter(|task| task.cached);
    let of_status = |status: &Status| tasks.iter().filter(|task| task.status == *status).count();
    let fullest =
        executed.iter().filter(|task| task.peak_gpu_bytes.is_some()).max_by_key(|task| task.peak_gpu_bytes);
    let mut totals = Totals {
        tasks: tasks.len(),
        executed: executed.len(),
        completed: of_status(&Status::Completed),
        failed: of_status(&Status::Failed),
        aborted: of_status(&Status::Aborted),
        cached: of_status(&Status::Cached),
        unfinished: tasks.iter().filter(|task| task.status.is_unfinished()).count(),
        unknown: tasks.iter().filter(|task| matches!(task.status, Status::Unknown(_))).count(),
        without_metrics: ended().filter(|task| task.cpu_time_ms.is_none()).count(),
        without_run_time: executed.iter().filter(|task| task.wall_ms.is_none()).count(),
        run_time_ms: sum(executed.iter().map(|task| task.wall_ms)),
        cpu_time_ms: sum(executed.iter().map(|task| task.cpu_time_ms)),
        cpu_percent: cpu_percent(&executed),
        peak_rss_bytes: executed.iter().filter_map(|task| task.peak_rss_bytes).max(),
        peak_gpu_bytes: fullest.and_then(|task| task.peak_gpu_bytes),
        peak_gpu_source: fullest.and_then(|task| task.peak_gpu_source),
        gpu_joules: executed.iter().filter_map(|task| task.gpu_joules).reduce(|left, right| left + right),
        read_bytes: sum(executed.iter().map(|task| task.read_bytes)),
        write_bytes: sum(executed.iter().map(|task| task.write_bytes)),
        queue_ms: sum(executed.iter().map(|task| task.queue_ms)),
        span_ms: span_ms(records),
        gpu_hours: gpu_hours(&executed),
        wasted_ms: sum(executed
            .iter()
            .filter(|task| task.status != Status::Completed)
            .map(|task| task.wall_ms))
        .unwrap_or(0),
        saved_ms: sum(cached().map(|task| task.wall_ms)).unwrap_or(0),
        saved_cpu_time_ms: sum(cached().map(|task| task.cpu_time_ms)).unwrap_or(0),
        cells: per_cells::cells(tasks),
        per_1000_cells: None,
        price: None,
    };
    totals.per_1000_cells = PerThousand::of_run(&totals);
    totals
}

/// What the executed tasks come to; a note says what the sum leaves out.
pub(super) fn price(
    rates: &Rates,
    tasks: &[TaskCost],
    totals: &Totals,
    notes: &mut Vec<String>,
) -> Option<Price> {
    let executed = || tasks.iter().filter(|task| is_executed(task));
    let hours = |milliseconds: u64| milliseconds as f64 / MILLISECONDS_PER_HOUR;
    let core = sum(executed().map(held_core_ms)).map(hours);
    let busy_core = sum(executed().map(|task| task.cpu_time_ms)).map(hours);
    notes.extend(unpriced(tasks).filter(|_| rates.cpu_hour.is_some()));
    let unsampled: Vec<&TaskCost> = executed().filter(|task| task.gpu_joules.is_none()).collect();
    rates.price(Hours {
        core,
        busy_core,
        gpu: totals.gpu_hours,
        unsampled_gpu: gpu_hours(&unsampled),
        sampled_joules: totals.gpu_joules,
    })
}

/// The note on the tasks whose cores nobody counted; none where all are known.
pub(super) fn unpriced(tasks: &[TaskCost]) -> Option<String> {
    let executed = || tasks.iter().filter(|task| is_executed(task));
    let unknown = executed().filter(|task| held_core_ms(task).is_none()).count();
    (unknown > 0)
        .then(|| format!("the price leaves out the cores of {unknown} of {} tasks", executed().count()))
}

/// Cores asked for, held for the time at work; where the trace does not say how many, the CPU time.
fn held_core_ms(task: &TaskCost) -> Option<u64> {
    match (task.cpus, task.wall_ms) {
        (Some(cpus), Some(wall)) => Some(wall.saturating_mul(u64::from(cpus))),
        _ => task.cpu_time_ms,
    }
}

/// The sum of what is known; `None` where nothing is.
fn sum(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    values.flatten().reduce(u64::saturating_add)
}

fn cpu_percent(tasks: &[&TaskCost]) -> Option<f64> {
    let both = || tasks.iter().filter_map(|task| Some((task.cpu_time_ms?, task.wall_ms?)));
    percent(both().map(|(cpu, _)| cpu).sum(), both().map(|(_, wall)| wall).sum())
}

fn gpu_hours(tasks: &[&TaskCost]) -> Option<f64> {
    tasks
        .iter()
        .filter_map(|task| Some((task.gpus.filter(|&gpus| gpus > 0)?, task.wall_ms?)))
        .map(|(gpus, wall)| f64::from(gpus) * wall as f64 / MILLISECONDS_PER_HOUR)
        .reduce(|left, right| left + right)
}

/// First submission to last completion of the tasks that this run executed.
fn span_ms(records: &[TaskRecord]) -> Option<u64> {
    let executed = || {
        records
            .iter()
            .filter(|record| matches!(record.status, Status::Completed | Status::Failed | Status::Aborted))
    };
    let first = executed().filter_map(|record| record.submit_ms.or(record.start_ms)).min()?;
    let last = executed().filter_map(TaskRecord::end_ms).max()?;
    u64::try_from(last.checked_sub(first)?).ok()
}
