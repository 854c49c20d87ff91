//! The record of one finished run.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cost::{CostSummary, TaskCost};
use crate::method::Task;
use crate::plan::{self, Plan, Role};
use crate::rundir;
use crate::trace::{Status, process_and_tag};

/// The version of the form of [`Entry`].
pub const SCHEMA: u32 = 1;

/// Parameters that change no cost, or would give a name away.
const NOT_KEPT: [&str; 4] = ["label_key", "role", "seed", "plot"];

/// Parameters of those that label, and not of those that embed.
const LABELLING: [&str; 2] = ["classifier", "knn_k"];

/// A run that computed all of its tasks and went well. What is absent was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub schema: u32,
    /// When the run ended, in UTC.
    #[serde(default)]
    pub written: String,
    #[serde(default)]
    pub scfoundry: String,
    pub task: Task,
    /// None for a task that is the same for all methods.
    #[serde(default)]
    pub method: Option<String>,
    /// As [`options`] gives them.
    #[serde(default)]
    pub options: BTreeMap<String, Value>,
    #[serde(default)]
    pub inputs: Vec<Data>,
    /// From the start of the engine to its end.
    #[serde(default)]
    pub wall_seconds: Option<f64>,
    /// Tasks that completed; failed attempts are not among them.
    #[serde(default)]
    pub steps: Vec<Step>,
    #[serde(default)]
    pub machine: Machine,
    /// The container engine, or `none`.
    #[serde(default)]
    pub runtime: String,
    #[serde(default)]
    pub executor: String,
    /// It ran on a sample, only to be measured.
    #[serde(default)]
    pub probe: bool,
}

/// The size of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    pub role: Role,
    pub cells: u64,
    pub genes: u64,
    /// Values that X stores: of a sparse matrix the non-zero ones.
    #[serde(default)]
    pub stored: Option<u64>,
    /// Of the file.
    #[serde(default)]
    pub bytes: u64,
}

/// What one task took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub process: String,
    /// Its place among the inputs; none for what joins the results of all.
    #[serde(default)]
    pub input: Option<usize>,
    #[serde(default)]
    pub seconds: Option<f64>,
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
    #[serde(default)]
    pub peak_rss_bytes: Option<u64>,
    #[serde(default)]
    pub peak_gpu_bytes: Option<u64>,
    /// The memory of its card, as nvidia-smi tells it.
    #[serde(default)]
    pub card_bytes: Option<u64>,
    #[serde(default)]
    pub batch_size_asked: Option<u64>,
    /// What held, after halvings.
    #[serde(default)]
    pub batch_size_used: Option<u64>,
    #[serde(default)]
    pub halvings: Option<u32>,
    /// `cpu`, or the name of the card.
    #[serde(default)]
    pub device: Option<String>,
}

/// The machine that started the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    #[serde(default)]
    pub host: String,
    #[serde(default)]
    pub cpu: Option<String>,
    #[serde(default)]
    pub threads: usize,
}

impl Entry {
    /// What the plan's run cost. None where tasks were taken from an earlier run, or none completed: that is not the cost of
    /// the whole work.
    pub fn of(plan: &Plan, cost: &CostSummary, wall_seconds: f64) -> Option<Entry> {
        let completed = |task: &&TaskCost| task.status == Status::Completed && task.memory_kill.is_none();
        if cost.totals.cached > 0 || cost.tasks.is_empty() || cost.suspect() {
            return None;
        }
        let tags = plan::tags(&plan.inputs);
        let whole = cost.totals.failed == 0 && cost.totals.aborted == 0;
        Some(Entry {
            schema: SCHEMA,
            written: rundir::now(),
            scfoundry: env!("CARGO_PKG_VERSION").to_owned(),
            task: plan.task,
            method: method(plan),
            options: options(plan),
            inputs: Data::of(plan),
            wall_seconds: Some(wall_seconds).filter(|_| whole),
            steps: cost.tasks.iter().filter(completed).map(|task| step(task, &tags)).collect(),
            machine: Machine::here(),
            runtime: plan.runtime.name().to_owned(),
            executor: plan.executor.clone(),
            probe: plan.probe,
        })
    }

    /// Whether the plan asks for the same work, whatever the data and the batch size.
    pub fn is_like(&self, plan: &Plan) -> bool {
        let of_cost = |options: &BTreeMap<String, Value>| {
            let mut options = options.clone();
            options.retain(|name, _| !name.ends_with("batch_size"));
            options
        };
        self.task == plan.task
            && self.method == method(plan)
            && of_cost(&self.options) == of_cost(&options(plan))
    }

    /// Whether a batch of its model takes as much memory as one of the plan's: the same method, model and options of the
    /// method, whatever the task.
    pub fn has_batches_like(&self, plan: &Plan) -> bool {
        let own = options(plan);
        let matters = |name: &str| !name.ends_with("batch_size") && !LABELLING.contains(&name);
        let same = |(name, value): (&String, &Value)| {
            !matters(name) || own.get(name).is_none_or(|other| other == value)
        };
        self.method.is_some() && self.method == method(plan) && self.options.iter().all(same)
    }
}

/// The method, where it does the task's work; else it is a label that somebody chose.
fn method(plan: &Plan) -> Option<String> {
    plan.method.clone().filter(|_| plan.task.is_done_by_a_method())
}

/// The parameters that the plan's tasks read, defaults included. Of the batch column only whether there is one; of weights
/// of one's own only the name of the file.
pub fn options(plan: &Plan) -> BTreeMap<String, Value> {
    let names = plan.parameters.get("read").and_then(Value::as_array).into_iter().flatten();
    let kept = names.filter_map(Value::as_str).filter(|name| !NOT_KEPT.contains(name));
    kept.map(|name| {
        let value = plan.parameters.get(name).cloned().unwrap_or_default();
        (name.to_owned(), anonymous(name, value))
    })
    .collect()
}

fn anonymous(name: &str, value: Value) -> Value {
    match &value {
        _ if name.ends_with("_key") => Value::Bool(!value.is_null()),
        Value::String(text) if Path::new(text).is_absolute() => {
            Path::new(text).file_name().unwrap_or_default().to_string_lossy().into()
        }
        _ => value,
    }
}

fn step(task: &TaskCost, tags: &[String]) -> Step {
    let (process, tag) = process_and_tag(&task.name);
    Step {
        process: process.to_owned(),
        input: tag.and_then(|tag| tags.iter().position(|known| known == tag)),
        seconds: task.wall_ms.map(|milliseconds| milliseconds as f64 / 1e3),
        cpu_seconds: task.cpu_time_ms.map(|milliseconds| milliseconds as f64 / 1e3),
        peak_rss_bytes: task.peak_rss_bytes,
        peak_gpu_bytes: task.peak_gpu_bytes,
        card_bytes: task.card_bytes,
        batch_size_asked: task.batch_size_asked,
        batch_size_used: task.batch_size_used,
        halvings: task.halvings,
        device: task.device.clone(),
    }
}

impl Data {
    /// The sizes of the plan's inputs, in their order.
    pub fn of(plan: &Plan) -> Vec<Data> {
        let size = |input: &plan::Input| Data {
            role: input.role,
            cells: input.cells as u64,
            genes: input.genes as u64,
            stored: input.stored,
            bytes: input.bytes,
        };
        plan.inputs.iter().map(size).collect()
    }
}

impl Machine {
    /// The machine of this process.
    pub fn here() -> Machine {
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Machine {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            cpu: model.map(|(_, name)| name.trim().to_owned()),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}
