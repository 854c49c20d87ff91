//! What a task asks a scheduler for: CPUs, memory, time, a GPU.
//!
//! On this machine nothing is asked for beyond the cores: memory that nobody else wants need not be claimed. On a
//! scheduler the profile's requests grow with the cells of the task's input. They are requests, made generously since a
//! task that gets too little is killed; they are no forecast.

use serde::Serialize;

use super::containers::Place;
use super::inputs::{Input, tags};
use super::resources::native_cpus;
use crate::error::{Error, Result};
use crate::method::{Profile, Resources, RunnerKind, Task};

/// The directives of one process; absent ones are left to the user's configuration, or to the scheduler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Asks {
    pub cpus: Option<usize>,
    pub memory_bytes: Option<Amount>,
    pub time_seconds: Option<Amount>,
    /// GPUs, for the executors that count them themselves.
    pub accelerator: Option<usize>,
    /// Words for the command that submits the job.
    pub cluster_options: Option<String>,
}

/// An amount that grows with the cells of a task's input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Amount {
    pub largest: u64,
    /// By the tag of the task, where tasks differ; else all get the largest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_tag: Vec<(String, u64)>,
}

/// Executors other than SLURM that are asked for GPUs by Nextflow's `accelerator`.
const COUNT_GPUS: [&str; 4] = ["awsbatch", "google-batch", "google-lifesciences", "k8s"];

/// What is known of the process that asks.
pub struct Asker<'a> {
    pub process: &'static str,
    /// Its method; absent for a native task that is the same for all.
    pub profile: Option<&'a Profile>,
    pub gpu: bool,
    /// It has a task for each input; else one for all.
    pub by_input: bool,
    pub inputs: &'a [Input],
}

impl Asker<'_> {
    pub fn asks(&self, place: &Place<'_>) -> Result<Asks> {
        let native = self.profile.is_none_or(|profile| profile.runner.kind == RunnerKind::Native);
        let free = |directive| !place.config.sets(self.process, directive);
        if !place.scheduled() {
            let cpus = native_cpus(place.config, place.executor).filter(|_| native && free("cpus"));
            return Ok(Asks { cpus, ..Asks::default() });
        }
        let wanted = self.profile.map_or_else(Resources::native, Profile::resources);
        let times = if self.process == "TRAIN" { TRAINING } else { 1.0 };
        Ok(Asks {
            cpus: free("cpus").then_some(wanted.cpus as usize),
            memory_bytes: free("memory")
                .then(|| self.amount(place, wanted.memory_gb * GB, wanted.memory_gb_per_100k_cells * GB)),
            time_seconds: free("time").then(|| {
                let hours = [wanted.hours, wanted.hours_per_100k_cells].map(|hours| hours * times * HOUR);
                self.amount(place, hours[0], hours[1])
            }),
            accelerator: (self.gpu && free("accelerator") && COUNT_GPUS.contains(&place.executor))
                .then_some(1),
            cluster_options: self.cluster_options(place)?,
        })
    }

    fn amount(&self, place: &Place<'_>, base: f64, per_100k_cells: f64) -> Amount {
        let of = |cells: usize| (base + per_100k_cells * cells as f64 / 100_000.0) as u64;
        if !self.by_input {
            return Amount {
                largest: of(self.inputs.iter().map(|input| input.cells).sum()),
                by_tag: Vec::new(),
            };
        }
        let each: Vec<u64> = self.inputs.iter().map(|input| of(input.cells)).collect();
        let largest = each.iter().copied().max().unwrap_or_else(|| of(0));
        // The jobs of an array are submitted as one, with one request.
        let same = each.iter().all(|amount| *amount == largest) || place.config.sets(self.process, "array");
        let by_tag = if same { Vec::new() } else { tags(self.inputs).into_iter().zip(each).collect() };
        Amount { largest, by_tag }
    }

    /// A GPU of SLURM's, added to the words that the user has for all jobs.
    ///
    /// # Errors
    /// Input: those words are code, to which nothing can be added.
    fn cluster_options(&self, place: &Place<'_>) -> Result<Option<String>> {
        if !self.gpu || place.executor != "slurm" {
            return Ok(None);
        }
        let name = "process.clusterOptions";
        let own = place.config.get(name).unwrap_or_default();
        let asked = own.contains("--gres") || own.contains("--gpus");
        if asked || place.config.selects(self.process, "clusterOptions") {
            return Ok(None);
        }
        let gres = place.config.get("params.gres").unwrap_or("gpu:1");
        if place.config.has(name) && own.is_empty() {
            return Err(Error::input(format_args!(
                "a GPU cannot be added to {name}, which is code or empty"
            ))
            .cause(format_args!("{} needs a GPU, which SLURM gives for `--gres={gres}`", self.process))
            .hint("write that option into it yourself, or make it plain text in single quotes"));
        }
        Ok(Some(format!("{own} --gres={gres}").trim_start().to_owned()))
    }
}

const GB: f64 = (1u64 << 30) as f64;
const HOUR: f64 = 3600.0;
/// Training reads its cells once an epoch, forth and back; several times what an embedding takes.
const TRAINING: f64 = 8.0;

/// What a scheduler cannot be asked for by us, as a warning.
pub fn unasked_gpu(place: &Place<'_>, gpu: bool) -> Option<String> {
    let known = ["local", "slurm"].contains(&place.executor) || COUNT_GPUS.contains(&place.executor);
    (gpu && !known && !place.config.has("process.clusterOptions")).then(|| {
        format!(
            "no GPU is asked for: clusters of the kind {:?} each have their own words for it; write them into \
             `process.clusterOptions`",
            place.executor
        )
    })
}

/// Whether the task is one of those with a task for each input.
pub fn is_by_input(task: Task) -> bool {
    matches!(task, Task::Embed | Task::Check | Task::Benchmark | Task::Geometry)
}
