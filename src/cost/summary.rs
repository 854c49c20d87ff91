//! A trace and the tasks' own measures into one summary.

use std::path::{Path, PathBuf};

use super::evidence::{memory_kill, work_directory};
use super::totals::totals;
use super::{CostSummary, RunStatus, SCHEMA, SummaryOptions, TaskCost, Totals};
use crate::trace::units::{format_bytes, format_duration};
use crate::trace::{Status, TaskRecord, Trace};
use crate::usage::{self, Usage};

/// Adds up what a run cost: its trace joined with the `usage.json` and the logs in the tasks' work directories.
///
/// Never fails: what is missing or damaged is absent in the result and said in its notes.
pub fn summarise(trace: &Trace, options: &SummaryOptions) -> CostSummary {
    let work_root = options.work_root.clone().unwrap_or_else(|| trace.directory().join("work"));
    let mut notes = trace.notes.clone();
    let tasks: Vec<TaskCost> =
        trace.tasks.iter().map(|task| cost_of_task(task, &work_root, options, &mut notes)).collect();
    let totals = totals(&trace.tasks, &tasks);
    notes.extend(notes_on(&totals));
    let mut summary = CostSummary {
        schema: SCHEMA,
        run: options.run.clone(),
        method: options.method.clone(),
        trace: trace.path.clone(),
        status: status_of(&tasks, &totals),
        totals,
        tasks,
        notes,
    };
    summary.price_at(options.rates.as_ref());
    summary
}

fn cost_of_task(
    task: &TaskRecord,
    work_root: &Path,
    options: &SummaryOptions,
    notes: &mut Vec<String>,
) -> TaskCost {
    let directory = work_directory(task, work_root);
    let usage = directory.as_deref().and_then(|directory| {
        usage::read(directory).unwrap_or_else(|error| {
            notes.push(format!("{}: {error}", task.name));
            None
        })
    });
    let called_complete = matches!(task.status, Status::Completed | Status::Cached);
    let memory_kill = directory.as_deref().filter(|_| called_complete).and_then(memory_kill);
    let cost = join(task, usage.clone().unwrap_or_default(), directory, memory_kill, options);
    notes.extend(notes_on_task(&cost, usage.as_ref()));
    cost
}

/// Puts what the trace and what the task itself says of it together.
///
/// The trace samples memory, so that a short task may show 0 there: the larger of the two peaks is nearer the truth.
fn join(
    task: &TaskRecord,
    usage: Usage,
    workdir: Option<PathBuf>,
    memory_kill: Option<String>,
    options: &SummaryOptions,
) -> TaskCost {
    let cached = task.status == Status::Cached;
    let own_cpu_time_ms =
        usage.cpu_seconds.filter(|seconds| *seconds >= 0.0).map(|seconds| (seconds * 1e3) as u64);
    let cpu_time_ms =
        task.cpu_time_ms().filter(|&time| time > 0 || own_cpu_time_ms.is_none()).or(own_cpu_time_ms);
    TaskCost {
        task_id: task.task_id.clone(),
        name: task.name.clone(),
        process: task.process.clone(),
        hash: task.hash.clone(),
        status: task.status.clone(),
        exit: task.exit,
        attempt: task.attempt,
        cached,
        wall_ms: task.wall_ms(),
        cpu_time_ms,
        cpu_percent: task.cpu_percent.or_else(|| percent(cpu_time_ms?, task.wall_ms()?)),
        cpus: task.cpus,
        peak_rss_bytes: task.peak_rss_bytes.max(usage.peak_rss_bytes),
        memory_bytes: task.memory_bytes,
        peak_gpu_bytes: usage.peak_gpu_bytes(),
        gpus: usage.gpu_count().or_else(|| gpus_of_process(task, options)),
        device: usage.device,
        read_bytes: task.read_bytes,
        write_bytes: task.write_bytes,
        rchar_bytes: task.rchar_bytes,
        wchar_bytes: task.wchar_bytes,
        queue_ms: task.queue_ms().filter(|_| !cached),
        cells: usage.cells,
        genes: usage.genes,
        batch_size_asked: usage.batch_size_asked,
        batch_size_used: usage.batch_size_used,
        halvings: usage.halvings,
        workdir,
        memory_kill,
    }
}

pub(super) fn percent(part_ms: u64, whole_ms: u64) -> Option<f64> {
    (whole_ms > 0).then(|| part_ms as f64 / whole_ms as f64 * 100.0)
}

/// The cards that the caller gave the task's process.
fn gpus_of_process(task: &TaskRecord, options: &SummaryOptions) -> Option<u32> {
    let process = task.process.as_deref().unwrap_or_else(|| task.name.split(" (").next().unwrap_or_default());
    options.gpu_processes.iter().any(|name| name == process).then(|| options.gpus_per_task.max(1))
}

fn notes_on_task(cost: &TaskCost, usage: Option<&Usage>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(line) = &cost.memory_kill {
        let exit = cost.exit.map_or("called complete".to_owned(), |code| format!("exit {code}"));
        let peak =
            cost.peak_rss_bytes.map_or(String::new(), |bytes| format!(", peak {}", format_bytes(bytes)));
        notes.push(format!(
            "{} was killed for memory although {exit}{peak}: its output may be cut short (\"{line}\")",
            cost.name
        ));
    }
    if let Some(halvings) = cost.halvings.filter(|&halvings| halvings > 0) {
        let used = cost.batch_size_used.map_or(String::new(), |size| format!(" down to {size}"));
        notes.push(format!(
            "{}: GPU memory ran out, so the batch size was halved {}{used}",
            cost.name,
            if halvings == 1 { "once".to_owned() } else { format!("{halvings} times") },
        ));
    }
    let warnings = usage.map_or(&[][..], |usage| &usage.warnings);
    notes.extend(warnings.iter().map(|warning| format!("{}: {warning}", cost.name)));
    notes
}

fn notes_on(totals: &Totals) -> Vec<String> {
    let mut notes = Vec::new();
    let ended = totals.completed + totals.failed;
    if totals.without_metrics > 0 {
        let count = totals.without_metrics;
        notes.push(match ended - count {
            0 => format!("{} without metrics: CPU time is not known", are(count)),
            rest => format!("{} without metrics: CPU time is the sum over the other {rest}", are(count)),
        });
    }
    if totals.without_run_time > 0 {
        let count = totals.without_run_time;
        notes.push(format!("run time leaves out {}, of unknown length", tasks(count)));
    }
    if totals.cached > 0 {
        notes.push(format!(
            "{} cached: {} saved, no part of this run's cost",
            are(totals.cached),
            format_duration(totals.saved_ms),
        ));
    }
    if totals.failed > 0 {
        notes.push(format!(
            "{} failed: {} of the run time was wasted",
            tasks(totals.failed),
            format_duration(totals.wasted_ms)
        ));
    }
    if totals.aborted > 0 {
        notes.push(format!("{} aborted", are(totals.aborted)));
    }
    if totals.unfinished > 0 {
        notes.push(format!("{} unfinished and not counted", are(totals.unfinished)));
    }
    if totals.unknown > 0 {
        notes.push(format!("{} in a state that is not known, and not counted", are(totals.unknown)));
    }
    notes
}

fn tasks(count: usize) -> String {
    format!("{count} {}", if count == 1 { "task" } else { "tasks" })
}

fn are(count: usize) -> String {
    format!("{} {}", tasks(count), be(count))
}

fn be(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn status_of(tasks: &[TaskCost], totals: &Totals) -> RunStatus {
    let failed = tasks.iter().enumerate().any(|(at, task)| {
        task.status == Status::Failed && !tasks[at + 1..].iter().any(|later| makes_good(later, task))
    });
    match totals {
        _ if tasks.is_empty() => RunStatus::Empty,
        _ if failed => RunStatus::Failed,
        _ if tasks.iter().any(|task| task.memory_kill.is_some()) => RunStatus::Suspect,
        Totals { unfinished: 0, aborted: 0, unknown: 0, .. } => RunStatus::Ok,
        _ => RunStatus::Unfinished,
    }
}

/// Whether a later row is the successful retry of a failed one.
fn makes_good(later: &TaskCost, failed: &TaskCost) -> bool {
    later.status == Status::Completed
        && later.name == failed.name
        && later.attempt.unwrap_or(u32::MAX) > failed.attempt.unwrap_or(1)
}
