//! What a run will cost, from what runs like it have cost: time, memory, GPU memory, each with bounds and their basis.
//!
//! Nothing is guessed: where no run like it was measured, there is no number.

mod batch;
mod fit;
mod law;
mod limits;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::history::{Data, Entry, Machine, options};
use crate::plan::{Feed, Plan, Stage, Work};
use fit::{Point, Prior, predict};
use law::{Job, Quantity};

pub use batch::{Fit, Room, batch};
pub use fit::Range;
pub use limits::Limits;

/// One measured time of a busy machine is rarely off by more.
const TIME: Prior = Prior { scatter: 0.12, exponent: 0.08 };
const MEMORY: Prior = Prior { scatter: 0.05, exponent: 0.05 };
/// The same batch takes the same memory of a card, but for what its neighbours take.
const GPU_MEMORY: Prior = Prior { scatter: 0.04, exponent: 0.0 };
/// Another machine may be faster or slower by this factor.
const OTHER_MACHINE: f64 = 2.0;
/// The share of a card that a batch may fill.
const USABLE: f64 = 0.9;

/// What a run will cost. What is absent was never measured.
#[derive(Debug, Clone, Serialize)]
pub struct Estimate {
    /// Of the tasks: on this machine as they follow each other, on a cluster as if none had to wait.
    pub seconds: Option<Range>,
    /// What the engine takes to start and to end, on top.
    pub engine_seconds: Option<f64>,
    /// Of the largest task.
    pub peak_rss_bytes: Option<Range>,
    pub peak_gpu_bytes: Option<Range>,
    /// At least; 0 where it is not known.
    pub disk_bytes: u64,
    /// Cells at a time that fill the card, where GPU memory was measured with two batch sizes at least.
    pub largest_batch_size: Option<u64>,
    pub basis: Option<Basis>,
    /// Processes of which no task was ever measured.
    pub unmeasured: Vec<String>,
}

/// What an estimate rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Basis {
    pub runs: usize,
    /// Of these, probes.
    pub probes: usize,
    /// The sizes measured.
    pub smallest_cells: u64,
    pub largest_cells: u64,
    /// They ran on this machine; else on others, which may be faster or slower.
    pub this_machine: bool,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Basis { runs, probes, smallest_cells, largest_cells, this_machine } = self;
        let runs = if *runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
        let cells = match smallest_cells == largest_cells {
            true => format!("{smallest_cells} cells"),
            false => format!("{smallest_cells} to {largest_cells} cells"),
        };
        let probes = match probes {
            0 => String::new(),
            count => format!(" ({count} probes)"),
        };
        let place = if *this_machine { "here" } else { "on other machines" };
        write!(f, "{runs}{probes} of {cells} {place}")
    }
}

/// Estimates a plan from the entries of a history. `card_bytes` is the memory of the card that it will have.
pub fn estimate(plan: &Plan, entries: &[Entry], machine: &Machine, card_bytes: Option<u64>) -> Estimate {
    let alike: Vec<&Entry> = entries.iter().filter(|entry| entry.is_like(plan)).collect();
    let here: Vec<&Entry> = alike.iter().copied().filter(|entry| entry.machine == *machine).collect();
    let this_machine = !here.is_empty();
    let known = if this_machine { &here } else { &alike };
    let measured = Measured { entries: known, this_machine };
    let inputs = Data::of(plan);
    let options = options(plan);
    let jobs = Jobs { plan, inputs: &inputs, options: &options };
    let largest_batch_size = card_bytes.and_then(|bytes| largest_batch(&measured.batches(), bytes));
    let of_engine = |entry: &&Entry| entry.machine == *machine;
    Estimate {
        seconds: jobs.seconds(&measured),
        engine_seconds: engine_seconds(entries.iter().filter(of_engine)),
        peak_rss_bytes: jobs.peak_rss(&measured),
        peak_gpu_bytes: gpu_bytes(plan, &measured, largest_batch_size),
        disk_bytes: plan.disk.bytes,
        largest_batch_size,
        basis: measured.basis(),
        unmeasured: jobs.unmeasured(&measured),
    }
}

/// The runs that an estimate is made from.
struct Measured<'a> {
    entries: &'a [&'a Entry],
    this_machine: bool,
}

impl Measured<'_> {
    /// What the tasks of a process took.
    fn points(&self, stage: &Stage, quantity: Quantity) -> Vec<Point> {
        let by_runner = matches!(stage.work, Work::Runner(_));
        let of_entry = |entry: &&Entry| {
            let steps = entry.steps.iter().filter(|step| step.process == stage.process);
            let points = steps.filter_map(|step| {
                let value = match quantity {
                    Quantity::Seconds => step.seconds?,
                    Quantity::RssBytes => step.peak_rss_bytes? as f64,
                };
                let job = Job {
                    process: stage.process,
                    input: step.input,
                    inputs: &entry.inputs,
                    options: &entry.options,
                    by_runner,
                };
                Some(Point { size: job.size(quantity), value })
            });
            points.collect::<Vec<_>>()
        };
        self.entries.iter().flat_map(of_entry).collect()
    }

    /// Batch sizes that held, and the GPU memory that they took.
    fn batches(&self) -> Vec<Point> {
        let steps = self.entries.iter().flat_map(|entry| &entry.steps);
        let point = |batch: Option<u64>, bytes: Option<u64>| {
            Some(Point { size: batch? as f64, value: bytes.filter(|bytes| *bytes > 0)? as f64 })
        };
        steps.filter_map(|step| point(step.batch_size_used, step.peak_gpu_bytes)).collect()
    }

    fn basis(&self) -> Option<Basis> {
        let cells = || self.entries.iter().flat_map(|entry| &entry.inputs).map(|data| data.cells);
        Some(Basis {
            runs: self.entries.len(),
            probes: self.entries.iter().filter(|entry| entry.probe).count(),
            smallest_cells: cells().min()?,
            largest_cells: cells().max()?,
            this_machine: self.this_machine,
        })
    }
}

/// The tasks of a plan.
struct Jobs<'a> {
    plan: &'a Plan,
    inputs: &'a [Data],
    options: &'a BTreeMap<String, Value>,
}

impl Jobs<'_> {
    /// The inputs that a process has a task for; one without an input for what joins the results of all.
    fn of(&self, process: &str) -> Vec<Option<usize>> {
        let role = match Feed::of(process) {
            Feed::Joined => return vec![None],
            Feed::Of(role) => Some(role),
            Feed::All => None,
        };
        let is_wanted = |data: &Data| role.is_none_or(|role| data.role == role);
        (0..self.inputs.len()).filter(|input| is_wanted(&self.inputs[*input])).map(Some).collect()
    }

    /// What each task of a stage will take; `None` where no task of it was measured.
    fn predictions(&self, stage: &Stage, measured: &Measured<'_>, quantity: Quantity) -> Option<Vec<Range>> {
        let points = measured.points(stage, quantity);
        let prior = if quantity == Quantity::Seconds { TIME } else { MEMORY };
        let foreign = !measured.this_machine && quantity == Quantity::Seconds;
        let predict_one = |input| {
            let job = Job {
                process: stage.process,
                input,
                inputs: self.inputs,
                options: self.options,
                by_runner: matches!(stage.work, Work::Runner(_)),
            };
            let range = predict(&points, job.size(quantity), prior)?;
            Some(if foreign { range.widened(OTHER_MACHINE) } else { range })
        };
        self.of(stage.process).into_iter().map(predict_one).collect()
    }

    fn seconds(&self, measured: &Measured<'_>) -> Option<Range> {
        let local = self.plan.executor == "local";
        let of_stage = |stage: &Stage| {
            let tasks = self.predictions(stage, measured, Quantity::Seconds)?;
            let at_once = stage.max_forks.unwrap_or(1).clamp(1, tasks.len().max(1));
            let none = Range::exact(0.0);
            Some(match local {
                true => tasks.into_iter().fold(none, Range::plus).times(1.0 / at_once as f64),
                false => tasks.into_iter().fold(none, Range::max),
            })
        };
        let stages: Option<Vec<Range>> = self.plan.stages.iter().map(of_stage).collect();
        Some(stages?.into_iter().fold(Range::exact(0.0), Range::plus))
    }

    fn peak_rss(&self, measured: &Measured<'_>) -> Option<Range> {
        let of_stage = |stage: &Stage| self.predictions(stage, measured, Quantity::RssBytes);
        let stages: Option<Vec<Vec<Range>>> = self.plan.stages.iter().map(of_stage).collect();
        stages?.into_iter().flatten().reduce(Range::max)
    }

    fn unmeasured(&self, measured: &Measured<'_>) -> Vec<String> {
        let stages = self.plan.stages.iter();
        let unknown = stages.filter(|stage| measured.points(stage, Quantity::Seconds).is_empty());
        unknown.map(|stage| stage.process.to_owned()).collect()
    }
}

/// GPU memory depends on the batch, not on the number of cells.
fn gpu_bytes(plan: &Plan, measured: &Measured<'_>, largest: Option<u64>) -> Option<Range> {
    let asked = ["batch_size", "integration_batch_size"]
        .iter()
        .find_map(|name| plan.parameters.get(*name).and_then(Value::as_f64));
    let batches = measured.batches();
    // A batch that is to fill the card does so where it is known how; else, and without batches, what it took before.
    let usual = || batches.iter().map(|point| point.size).reduce(f64::max);
    let size = asked.or(largest.map(|size| size as f64)).or_else(usual)?;
    predict(&batches, size, GPU_MEMORY)
}

/// The batch that fills the usable share of a card.
fn largest_batch(batches: &[Point], card_bytes: u64) -> Option<u64> {
    let (fixed, each) = fit::line(batches)?;
    let largest = (USABLE * card_bytes as f64 - fixed) / each;
    (1.0..1e6).contains(&largest).then_some(largest as u64)
}

/// The median over runs of a single input of what the engine took beside its tasks.
fn engine_seconds<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<f64> {
    let rest = |entry: &Entry| {
        let tasks: Option<f64> = entry.steps.iter().map(|step| step.seconds).sum();
        Some(entry.wall_seconds? - tasks?).filter(|rest| *rest >= 0.0 && entry.inputs.len() == 1)
    };
    let mut all: Vec<f64> = entries.filter_map(rest).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_batch_fills_nine_tenths_of_the_card() {
        let gib = (1_u64 << 30) as f64;
        let batches = [Point { size: 16.0, value: 3.0 * gib }, Point { size: 32.0, value: 5.0 * gib }];
        // 1 GiB, and 1/8 GiB for each cell.
        assert_eq!(largest_batch(&batches, 16 << 30), Some(107));
        assert_eq!(largest_batch(&batches[..1], 16 << 30), None);
    }
}
