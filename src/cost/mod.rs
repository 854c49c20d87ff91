//! What a run cost: its trace joined with what its tasks measured of themselves.
//!
//! The books are honest: cached tasks cost this run nothing, failed attempts are waste and said, a number that was
//! not measured is absent and said, and a task that was killed for memory is not called complete.

mod advice;
mod comparison;
mod csv;
mod diagnosis;
mod directory;
mod disk;
mod evidence;
mod per_cells;
mod rates;
mod recorded;
mod report;
mod summary;
mod totals;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::trace::{Status, process_and_tag};

pub use advice::advice;
pub use comparison::{Comparison, Ratios, comparison_table, ratio_table};
pub use csv::write_csv;
pub use diagnosis::{Diagnosis, Facts, diagnose, diagnose_log};
pub use disk::Disk;
pub use evidence::{log_tail, work_directory};
pub use per_cells::PerThousand;
pub use rates::{Price, Rates};
pub use recorded::recorded;
pub use report::{detail_table, remarks, task_table};
pub use summary::summarise;

/// The version of the JSON form of [`CostSummary`] and [`Comparison`].
pub const SCHEMA: u32 = 2;

/// What the caller knows of a run beyond its trace.
#[derive(Debug, Clone, Default)]
pub struct SummaryOptions {
    /// The run's name, as `runs` lists it.
    pub run: Option<String>,
    pub method: Option<String>,
    /// Where tasks without a `workdir` column worked; default: `work` beside the trace.
    pub work_root: Option<PathBuf>,
    /// Cards of each task of the named processes that did not say so in its `usage.json`.
    pub gpu_processes: Vec<String>,
    /// How many cards each task of `gpu_processes` held; 0 is taken as 1.
    pub gpus_per_task: u32,
    /// Prices and powers; absent: no money and no energy.
    pub rates: Option<Rates>,
}

/// How a run stands, judged by its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// All tasks completed, or failed attempts were made good by a retry.
    Ok,
    /// A task was killed for memory but is called complete: its output may be cut short.
    Suspect,
    Failed,
    /// Aborted, or still waiting or running, when the trace was last written.
    Unfinished,
    /// No tasks.
    Empty,
}

impl RunStatus {
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Ok => "ok",
            RunStatus::Suspect => "suspect",
            RunStatus::Failed => "failed",
            RunStatus::Unfinished => "unfinished",
            RunStatus::Empty => "empty",
        }
    }
}

/// The cost of one run. Numbers are `null` in JSON where nothing was measured; units are in the names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostSummary {
    pub schema: u32,
    pub run: Option<String>,
    pub method: Option<String>,
    pub trace: PathBuf,
    pub status: RunStatus,
    pub totals: Totals,
    /// Only of a run of ours, and only where somebody asked: a disk changes, so that no record of it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Disk>,
    pub tasks: Vec<TaskCost>,
    /// What a reader of the numbers must know; each one sentence.
    pub notes: Vec<String>,
}

impl CostSummary {
    /// Whether a task is called complete although it was killed for memory: the run is not clean.
    pub fn suspect(&self) -> bool {
        self.tasks.iter().any(|task| task.memory_kill.is_some())
    }
}

/// Who measured a peak of GPU memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GpuSource {
    /// The task's own allocator: what this task used, without what the driver adds.
    Allocator,
    /// Samples of the whole card, which the task had to itself when it began.
    Sampled,
    /// Samples of a card that others were using when the task began: their memory is in it.
    Shared,
}

impl GpuSource {
    pub fn name(self) -> &'static str {
        match self {
            GpuSource::Allocator => "allocator",
            GpuSource::Sampled => "sampled",
            GpuSource::Shared => "shared card",
        }
    }
}

/// The sums over one run. "Executed" are completed, failed and aborted tasks: the work that this run did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    pub tasks: usize,
    pub executed: usize,
    pub completed: usize,
    pub failed: usize,
    pub aborted: usize,
    pub cached: usize,
    /// Waiting or running when the trace was last written.
    pub unfinished: usize,
    /// Tasks whose status is a word we do not know: counted nowhere else.
    pub unknown: usize,
    /// Executed tasks that ended but whose CPU time nobody measured.
    pub without_metrics: usize,
    /// Executed tasks whose time at work is not known.
    pub without_run_time: usize,
    /// Time at work of all executed tasks, added up.
    pub run_time_ms: Option<u64>,
    pub cpu_time_ms: Option<u64>,
    /// CPU time over run time, of the tasks that have both.
    pub cpu_percent: Option<f64>,
    pub peak_rss_bytes: Option<u64>,
    pub peak_gpu_bytes: Option<u64>,
    /// Who measured the largest peak of GPU memory.
    pub peak_gpu_source: Option<GpuSource>,
    /// Energy of the cards, of the tasks whose power was sampled.
    pub gpu_joules: Option<f64>,
    pub read_bytes: Option<u64>,
    pub write_bytes: Option<u64>,
    pub queue_ms: Option<u64>,
    /// First submission to last completion.
    pub span_ms: Option<u64>,
    pub gpu_hours: Option<f64>,
    /// Time at work of failed and aborted attempts; part of `run_time_ms`.
    pub wasted_ms: u64,
    /// Time and CPU time that cached tasks had cost the run which computed them; not part of this run's cost.
    pub saved_ms: u64,
    pub saved_cpu_time_ms: u64,
    /// Cells of the completed tasks of that process which saw most.
    pub cells: Option<u64>,
    pub per_1000_cells: Option<PerThousand>,
    pub price: Option<Price>,
}

/// The cost of one attempt of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskCost {
    pub task_id: String,
    pub name: String,
    pub process: Option<String>,
    pub hash: Option<String>,
    pub status: Status,
    pub exit: Option<i32>,
    pub attempt: Option<u32>,
    /// The numbers are those of an earlier run.
    pub cached: bool,
    pub wall_ms: Option<u64>,
    pub cpu_time_ms: Option<u64>,
    pub cpu_percent: Option<f64>,
    pub cpus: Option<u32>,
    pub peak_rss_bytes: Option<u64>,
    pub memory_bytes: Option<u64>,
    /// Time asked for.
    pub time_limit_ms: Option<u64>,
    /// Of the allocator where it told, else of the samples.
    pub peak_gpu_bytes: Option<u64>,
    pub peak_gpu_source: Option<GpuSource>,
    /// The most that was in use on one card, whoever used it.
    pub sampled_gpu_bytes: Option<u64>,
    /// How often the cards were looked at, once for each; left out where they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_samples: Option<u64>,
    /// The memory of the smallest card that was looked at; left out where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_bytes: Option<u64>,
    /// Mean utilisation of the cards, sampled.
    pub gpu_utilization_percent: Option<f64>,
    /// Energy of the cards, sampled.
    pub gpu_joules: Option<f64>,
    pub gpus: Option<u32>,
    pub device: Option<String>,
    pub read_bytes: Option<u64>,
    pub write_bytes: Option<u64>,
    pub rchar_bytes: Option<u64>,
    pub wchar_bytes: Option<u64>,
    pub queue_ms: Option<u64>,
    pub cells: Option<u64>,
    pub genes: Option<u64>,
    pub batch_size_asked: Option<u64>,
    pub batch_size_used: Option<u64>,
    pub halvings: Option<u32>,
    pub per_1000_cells: Option<PerThousand>,
    pub workdir: Option<PathBuf>,
    /// What its directory holds on the disk now; only where [`CostSummary::disk`] is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// The line of its log that says the task was killed for memory, although it is called complete.
    pub memory_kill: Option<String>,
}

impl TaskCost {
    /// The name of its process, from `NAME (tag)` where the trace has no column for it.
    pub(crate) fn process_name(&self) -> &str {
        self.process.as_deref().unwrap_or_else(|| process_and_tag(&self.name).0)
    }
}

#[cfg(test)]
mod tests;
