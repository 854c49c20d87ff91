//! A trace and the tasks' own measures into one summary.

use std::collections::HashMap;
use std::path::PathBuf;

use rayon::prelude::*;

use super::directory::TaskDirectory;
use super::evidence::{WorkRoot, memory_kill};
use super::totals::totals;
use super::{CostSummary, GpuSource, PerThousand, RunStatus, SCHEMA, SummaryOptions, TaskCost, Totals};
use crate::error::{Error, Result};
use crate::samples::{self, Samples};
use crate::trace::units::{format_bytes, format_duration};
use crate::trace::{Status, TaskRecord, Trace};
use crate::usage::{self, Usage};

/// Adds up what a run cost: its trace joined with the `usage.json` and the logs in the tasks' work directories.
///
/// Never fails: what is missing or damaged is absent in the result and said in its notes.
pub fn summarise(trace: &Trace, options: &SummaryOptions) -> CostSummary {
    let work_root = options.work_root.clone().unwrap_or_else(|| trace.directory().join("work"));
    let work = WorkRoot::new(&work_root, &trace.tasks);
    // A hundred thousand small files are read here.
    let costs: Vec<(TaskCost, Vec<String>)> =
        trace.tasks.par_iter().map(|task| cost_of_task(task, &work, options)).collect();
    let mut notes = trace.notes.clone();
    let mut tasks = Vec::with_capacity(costs.len());
    for (task, of_task) in costs {
        tasks.push(task);
        notes.extend(of_task);
    }
    let totals = totals(&trace.tasks, &tasks);
    notes.extend(notes_on(&totals));
    let mut summary = CostSummary {
        schema: SCHEMA,
        run: options.run.clone(),
        method: options.method.clone(),
        trace: trace.path.clone(),
        status: status_of(&tasks, &totals),
        totals,
        disk: None,
        tasks,
        notes,
    };
    summary.price_at(options.rates.as_ref());
    summary
}

/// The cost of one task, and what must be said of it.
fn cost_of_task(task: &TaskRecord, work: &WorkRoot<'_>, options: &SummaryOptions) -> (TaskCost, Vec<String>) {
    let mut notes = Vec::new();
    let directory = work.directory(task);
    let usage = directory.as_ref().and_then(|directory| {
        usage_of(directory).unwrap_or_else(|error| {
            notes.push(format!("{}: {error}", task.name));
            None
        })
    });
    let called_complete = matches!(task.status, Status::Completed | Status::Cached);
    let found = Found {
        usage: usage.clone().unwrap_or_default(),
        samples: directory.as_ref().and_then(samples_of),
        memory_kill: directory.as_ref().filter(|_| called_complete).and_then(memory_kill),
        directory: directory.as_ref().map(|directory| directory.path().to_owned()),
    };
    let cost = join(task, found, options);
    notes.extend(notes_on_task(&cost, usage.as_ref()));
    notes.extend(directory.as_ref().and_then(|directory| unsampled(&cost, directory)));
    (cost, notes)
}

/// What the task measured of itself, if it did. Errors: that is unreadable or not valid.
fn usage_of(directory: &TaskDirectory) -> Result<Option<Usage>> {
    let path = || directory.path().join(usage::FILE_NAME);
    match directory.read(usage::FILE_NAME) {
        Ok(bytes) => usage::parse(&path(), &bytes).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", &path())(error)),
    }
}

fn samples_of(directory: &TaskDirectory) -> Option<Samples> {
    samples::parse(&String::from_utf8_lossy(&directory.read(samples::ROWS).ok()?))
}

/// What a task's work directory told of it.
struct Found {
    usage: Usage,
    samples: Option<Samples>,
    memory_kill: Option<String>,
    directory: Option<PathBuf>,
}

/// Why nobody knows the GPU memory of a task that held cards, where its sampler said so.
fn unsampled(cost: &TaskCost, directory: &TaskDirectory) -> Option<String> {
    if cost.peak_gpu_bytes.is_some() || cost.gpus.is_none_or(|gpus| gpus == 0) {
        return None;
    }
    let complaint = samples::complaint(&directory.read(samples::COMPLAINTS).ok()?)?;
    Some(format!("{}: GPU memory was not sampled: {complaint}", cost.name))
}

/// The peak of GPU memory with who measured it.
fn gpu_peak(usage: &Usage, samples: &Samples) -> Option<(u64, GpuSource)> {
    let sampled = if samples.shared { GpuSource::Shared } else { GpuSource::Sampled };
    let own = usage.peak_gpu_bytes().map(|bytes| (bytes, GpuSource::Allocator));
    own.or_else(|| samples.peak_bytes.map(|bytes| (bytes, sampled)))
}

/// Puts what the trace and what the task itself says of it together.
///
/// The trace samples memory, so that a short task may show 0 there: the larger of the two peaks is nearer the truth.
fn join(task: &TaskRecord, found: Found, options: &SummaryOptions) -> TaskCost {
    let Found { usage, samples, memory_kill, directory } = found;
    let gpu_samples = samples.as_ref().map(|samples| samples.count as u64);
    let samples = samples.unwrap_or_default();
    let (peak_gpu_bytes, peak_gpu_source) = gpu_peak(&usage, &samples).unzip();
    let sampled_cards = (samples.cards > 0).then_some(samples.cards);
    let cached = task.status == Status::Cached;
    let own_cpu_time_ms =
        usage.cpu_seconds.filter(|seconds| *seconds >= 0.0).map(|seconds| (seconds * 1e3) as u64);
    let cpu_time_ms =
        task.cpu_time_ms().filter(|&time| time > 0 || own_cpu_time_ms.is_none()).or(own_cpu_time_ms);
    let mut cost = TaskCost {
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
        time_limit_ms: task.time_ms,
        peak_gpu_bytes,
        peak_gpu_source,
        sampled_gpu_bytes: samples.peak_bytes,
        gpu_samples,
        card_bytes: samples.card_bytes,
        gpu_utilization_percent: samples.utilization_percent,
        gpu_joules: samples.joules,
        gpus: usage.gpu_count().or(sampled_cards).or_else(|| gpus_of_process(task, options)),
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
        per_1000_cells: None,
        workdir: directory,
        disk_bytes: None,
        memory_kill,
    };
    cost.per_1000_cells = PerThousand::of_task(&cost);
    cost
}

pub(super) fn percent(part_ms: u64, whole_ms: u64) -> Option<f64> {
    (whole_ms > 0).then(|| part_ms as f64 / whole_ms as f64 * 100.0)
}

/// The cards that the caller gave the task's process.
fn gpus_of_process(task: &TaskRecord, options: &SummaryOptions) -> Option<u32> {
    let process = task.process_name();
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
    match totals {
        _ if tasks.is_empty() => RunStatus::Empty,
        _ if has_unrepaired(tasks) => RunStatus::Failed,
        _ if tasks.iter().any(|task| task.memory_kill.is_some()) => RunStatus::Suspect,
        Totals { unfinished: 0, aborted: 0, unknown: 0, .. } => RunStatus::Ok,
        _ => RunStatus::Unfinished,
    }
}

/// Whether a failed task has no later row that is its successful retry.
fn has_unrepaired(tasks: &[TaskCost]) -> bool {
    // From the end: the latest attempt of each task that completed further down.
    let mut completed: HashMap<&str, u32> = HashMap::new();
    for task in tasks.iter().rev() {
        let later = completed.get(task.name.as_str()).copied();
        match task.status {
            Status::Completed => {
                let attempt = task.attempt.unwrap_or(u32::MAX);
                completed.insert(&task.name, later.map_or(attempt, |later| later.max(attempt)));
            }
            Status::Failed if later.is_none_or(|attempt| attempt <= task.attempt.unwrap_or(1)) => {
                return true;
            }
            _ => {}
        }
    }
    false
}
