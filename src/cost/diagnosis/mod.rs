//! Why a task failed, where its log or its exit code tells.

mod exits;
mod signs;

use std::path::Path;

use super::directory::TaskDirectory;
use super::evidence::{LOGS, clean, is_memory_kill, read_tail};
use crate::trace::units::{format_bytes, format_duration};
use crate::trace::{Status, TaskRecord};
use crate::usage::{self, Usage};

/// What the caller knows of the run that neither the trace nor the log says.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The batch size in use; absent: what the task's `usage.json` says.
    pub batch_size: Option<u64>,
    /// The method has no batch size: lowering it is no advice.
    pub ignores_batch_size: bool,
    /// `docker`, `podman`, `apptainer` or `singularity`; absent: no container.
    pub engine: Option<String>,
    /// Whether the run was given a GPU.
    pub gpu: bool,
}

/// What is wrong, and what to do: each one sentence, lower case, no full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub what: String,
    pub hint: String,
}

impl Diagnosis {
    fn new(what: impl Into<String>, hint: impl Into<String>) -> Diagnosis {
        Diagnosis { what: what.into(), hint: hint.into() }
    }
}

/// Says why a task failed; `None` where it did not, or where neither its log nor its exit code is known to tell.
///
/// A task that is called complete gets a diagnosis only if a batch system says that it killed part of it for memory.
pub fn diagnose(task: &TaskRecord, work_directory: Option<&Path>, facts: &Facts) -> Option<Diagnosis> {
    let usage = work_directory.and_then(|directory| usage::read(directory).ok().flatten());
    let logs: Vec<String> = work_directory
        .and_then(|directory| TaskDirectory::open(directory.to_owned()))
        .map(|directory| LOGS.iter().filter_map(|name| read_tail(&directory, name)).collect())
        .unwrap_or_default();
    let case = Case { task: Some(task), usage: usage.as_ref(), facts };
    if logs.iter().any(|log| log.lines().any(is_memory_kill)) {
        return Some(case.out_of_memory());
    }
    if !matches!(task.status, Status::Failed | Status::Aborted) {
        return None;
    }
    logs.iter().find_map(|log| signs::find(log, &case)).or_else(|| exits::explain(&case, &logs))
}

/// Says what is wrong by a log alone, such as the engine's own.
pub fn diagnose_log(text: &str, facts: &Facts) -> Option<Diagnosis> {
    signs::find(text, &Case { task: None, usage: None, facts })
}

/// One failure with all that is known of it.
struct Case<'a> {
    task: Option<&'a TaskRecord>,
    usage: Option<&'a Usage>,
    facts: &'a Facts,
}

impl Case<'_> {
    fn exit(&self) -> Option<i32> {
        self.task?.exit
    }

    /// The image the task ran in, quoted; else "the image".
    fn image(&self) -> String {
        self.task
            .and_then(|task| task.container.as_deref())
            .map_or("the image".to_owned(), |image| format!("the image \"{image}\""))
    }

    fn engine(&self) -> &str {
        self.facts.engine.as_deref().unwrap_or_default()
    }

    fn out_of_memory(&self) -> Diagnosis {
        let peak = self
            .task
            .and_then(|task| task.peak_rss_bytes)
            .max(self.usage.and_then(|usage| usage.peak_rss_bytes))
            .map(|bytes| format!("peak {}", format_bytes(bytes)));
        let asked = self
            .task
            .and_then(|task| task.memory_bytes)
            .map(|bytes| format!("{} asked for", format_bytes(bytes)));
        let known: Vec<String> = peak.into_iter().chain(asked).collect();
        let numbers = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
        Diagnosis::new(
            format!("killed for memory: the task needed more RAM than it may use{numbers}"),
            "raise \"process.memory\" in the workspace's nextflow.config or use a larger machine, then resume the run",
        )
    }

    fn out_of_gpu_memory(&self) -> Diagnosis {
        let what = "GPU memory ran out";
        let in_use = self
            .facts
            .batch_size
            .or_else(|| self.usage.and_then(|usage| usage.batch_size_used.or(usage.batch_size_asked)));
        let hint = match in_use {
            _ if self.facts.ignores_batch_size => {
                "this method has no batch size: use a card with more memory, or fewer cells".to_owned()
            }
            Some(0 | 1) => "the batch size is 1 already: use a card with more memory".to_owned(),
            Some(size) => format!("lower --batch-size, now {size}: try --batch-size {}", size / 2),
            None => "lower --batch-size, or use a card with more memory".to_owned(),
        };
        Diagnosis::new(what, hint)
    }

    fn out_of_time(&self, sign: &str) -> Diagnosis {
        let limit = self.task.and_then(|task| task.time_ms).map(format_duration);
        Diagnosis::new(
            match limit {
                Some(limit) => {
                    format!("stopped from outside ({sign}): the time limit of {limit}, or cancelled")
                }
                None => format!("stopped from outside ({sign}): a time limit, or cancelled"),
            },
            "raise \"process.time\" in the workspace's nextflow.config, then resume the run",
        )
    }
}

/// The line as a message may quote it: no control codes, not endless.
fn quoted(line: &str) -> String {
    const LONGEST: usize = 160;
    let line = clean(line);
    let line = line.trim();
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("\"{}…\"", &line[..at]),
        None => format!("\"{line}\""),
    }
}

#[cfg(test)]
mod tests;
