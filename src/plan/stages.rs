//! The processes of each task, who does their work, and the files that come out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::asks::{Asker, Asks, is_by_input};
use super::containers::{Cards, Place, Surroundings, surroundings};
use super::inputs::{Input, Scored};
use super::preamble::Preamble;
use super::request::Role;
use super::runner::Runner;
use crate::error::Result;
use crate::kernel;
use crate::method::{Profile, RunnerKind, Task};
use crate::rundir::Output;

/// Who does the work of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// `scfoundry kernel NAME`, with no container.
    Kernel(String),
    /// A script of `templates/runners/`, in a container or an environment of its own.
    Runner(String),
}

/// A process of the pipeline with all that the configuration says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Its name in the pipeline.
    pub process: &'static str,
    pub work: Work,
    pub container: Option<String>,
    /// The user's `beforeScript` for it.
    pub preamble: Preamble,
    pub gpu: bool,
    #[serde(flatten)]
    pub asks: Asks,
    /// As many at once as there are cards.
    pub max_forks: Option<usize>,
    /// Cards that each task is given.
    pub cards_per_task: usize,
    #[serde(flatten)]
    pub surroundings: Surroundings,
}

/// The inputs that a process has a task for, one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    All,
    Of(Role),
    /// One task joins small tables of all inputs, in no time.
    Joined,
}

impl Feed {
    pub fn of(process: &str) -> Feed {
        match process {
            "RANK" | "TABULATE" => Feed::Joined,
            "FIT" | "TRAIN" => Feed::Of(Role::Reference),
            "PROJECT" | "PREDICT" | "CLASSIFY" => Feed::Of(Role::Query),
            "BENCHMARK" | "GEOMETRY" => Feed::Of(Role::Embedding),
            _ => Feed::All,
        }
    }
}

/// The processes of `task` in the order they run, with what each asks for.
///
/// # Errors
/// Input: the user's configuration holds code where something would have to be added.
pub fn stages(
    task: Task,
    profile: Option<&Profile>,
    place: &Place<'_>,
    inputs: &[Input],
) -> Result<Vec<Stage>> {
    let mut stages = bare(task, profile);
    for stage in &mut stages {
        stage.preamble = Preamble::of(place.config, stage.process);
        let by_method = ["EMBED", "FIT", "PROJECT", "TRAIN", "PREDICT"].contains(&stage.process);
        let joins = Feed::of(stage.process) == Feed::Joined;
        stage.asks = Asker {
            process: stage.process,
            profile: profile.filter(|_| by_method),
            gpu: stage.gpu && !place.gpus.is_empty(),
            by_input: is_by_input(task) && !joins,
            // What joins small tables needs no more for many cells.
            inputs: if joins { &[] } else { inputs },
        }
        .asks(place)?;
    }
    equip(&mut stages, place, inputs);
    Ok(stages)
}

/// Whether a process has anything to do: no model of an earlier run has done it, and there are cells for it.
pub fn has_work(stage: &Stage, fitted: bool, inputs: &[Input]) -> bool {
    match stage.process {
        "FIT" | "TRAIN" => !fitted,
        "PREDICT" => inputs.iter().any(|input| input.role == Role::Query),
        _ => true,
    }
}

/// Gives the processes that run scripts their surroundings, with the cards of the place for those that use a GPU.
pub fn equip(stages: &mut [Stage], place: &Place<'_>, inputs: &[Input]) {
    let several = place.gpus.0.len() > 1 && !place.scheduled() && which::which("flock").is_ok();
    for stage in stages.iter_mut().filter(|stage| matches!(stage.work, Work::Runner(_))) {
        let side_by_side = stage.process == "EMBED" && inputs.len() > 1;
        let cards = match stage.gpu {
            false => Cards::None,
            true if several && side_by_side => Cards::OneEach,
            true => Cards::All,
        };
        stage.cards_per_task = match cards {
            Cards::None => 0,
            Cards::OneEach => 1,
            Cards::All if place.scheduled() => 1,
            Cards::All => place.gpus.0.len(),
        };
        stage.max_forks = (stage.gpu && !place.scheduled()).then(|| place.gpus.0.len().max(1));
        stage.surroundings = surroundings(place, stage.process, cards);
    }
}

/// The processes without what they ask for.
fn bare(task: Task, profile: Option<&Profile>) -> Vec<Stage> {
    let kernel = |process, name: &str| Stage {
        process,
        work: Work::Kernel(name.to_owned()),
        container: None,
        preamble: Preamble::None,
        gpu: false,
        asks: Asks::default(),
        max_forks: None,
        cards_per_task: 0,
        surroundings: Surroundings::default(),
    };
    let by_method = |process| match profile {
        Some(profile) if profile.runner.kind != RunnerKind::Native => Stage {
            process,
            work: Work::Runner(profile.runner.entry.clone()),
            container: profile.image.clone(),
            preamble: Preamble::None,
            gpu: profile.gpu,
            asks: Asks::default(),
            max_forks: None,
            cards_per_task: 0,
            surroundings: Surroundings::default(),
        },
        Some(profile) => kernel(process, &profile.runner.entry),
        None => kernel(process, task.name()),
    };
    match task {
        Task::Embed => vec![by_method("EMBED")],
        Task::Transfer => match profile {
            Some(profile) if profile.fits_input => {
                vec![
                    by_method("FIT"),
                    projection(profile, by_method("PROJECT")),
                    kernel("CLASSIFY", "classify"),
                ]
            }
            _ => vec![by_method("EMBED"), kernel("CLASSIFY", "classify")],
        },
        Task::Finetune => vec![by_method("TRAIN"), by_method("PREDICT")],
        Task::Check => vec![kernel("CHECK", "check")],
        Task::Benchmark => vec![kernel("BENCHMARK", "benchmark"), kernel("RANK", "rank")],
        Task::Geometry => vec![kernel("GEOMETRY", "geometry"), kernel("TABULATE", "tabulate")],
    }
}

/// A native method's kernel for the query is another than that for the reference.
fn projection(profile: &Profile, mut stage: Stage) -> Stage {
    if let Work::Kernel(name) = &mut stage.work {
        *name = format!("{}-project", profile.runner.entry);
    }
    stage
}

/// Why this build cannot run the plan, in one sentence; `None` when it can.
pub fn unavailable(stages: &[Stage], runner: Option<&Runner>) -> Option<String> {
    stages.iter().find_map(|stage| match &stage.work {
        Work::Kernel(name) => {
            (!kernel::NAMES.contains(&name.as_str())).then(|| format!("this build has no {name} kernel yet"))
        }
        Work::Runner(_) if runner.is_some() => None,
        Work::Runner(script) => {
            let method = Path::new(script).file_stem().unwrap_or_default().to_string_lossy();
            let verb = stage.process.to_lowercase();
            Some(format!("this build has no runner that can {verb} with {method} yet"))
        }
    })
}

/// The files of a finished run. `staged` is where the pipeline publishes them below the run directory's `outputs`.
pub fn outputs(
    task: Task,
    label: &str,
    inputs: &[Input],
    parameters: &Parameters<'_>,
    outdir: &Path,
) -> Vec<Output> {
    let named = |role| inputs.iter().find(|input| input.role == role).map(|input| input.id.as_str());
    let relative: Vec<String> = match task {
        Task::Embed => inputs.iter().map(|input| format!("embeddings/{label}/{}.h5ad", input.id)).collect(),
        Task::Check => inputs
            .iter()
            .flat_map(|input| ["txt", "json"].map(|kind| format!("check/{}_check.{kind}", input.id)))
            .collect(),
        Task::Transfer => {
            let classifier = parameters.text("classifier");
            let folder = format!("transfer/predictions/{label}/{classifier}");
            let embeddings = inputs.iter().map(|input| format!("embeddings/{label}/{}.h5ad", input.id));
            let model = named(Role::Reference).map(|id| format!("transfer/models/{label}/{classifier}/{id}"));
            let labels = named(Role::Query).map(|id| predictions(&folder, id));
            let report = named(Role::Query).map(|id| format!("{folder}/{id}_report.json"));
            embeddings.chain(model).chain(labels.into_iter().flatten()).chain(report).collect()
        }
        Task::Finetune => {
            let model = named(Role::Reference).map(|id| format!("finetune/finetuned_models/{label}/{id}"));
            let folder = format!("finetune/prediction/{label}");
            let labels = named(Role::Query).map(|id| predictions(&folder, id));
            let report = named(Role::Query).map(|id| format!("{folder}/{id}_report.json"));
            model.into_iter().chain(labels.into_iter().flatten()).chain(report).collect()
        }
        Task::Benchmark => {
            let clustering = parameters.text("clustering");
            let groups: &[&str] = match parameters.text("metrics") {
                "bio" => &["bio_conservation"],
                "batch" => &["batch_mixing"],
                _ => &["bio_conservation", "batch_mixing"],
            };
            benchmark(label, inputs, groups, clustering, parameters.flag("plot"))
        }
        Task::Geometry => inputs
            .iter()
            .filter(|input| input.role == Role::Embedding)
            .flat_map(|input| ["csv", "json"].map(|kind| format!("geometry/{label}/{}.{kind}", input.id)))
            .chain([format!("geometry/{label}/{label}_geometry.csv")])
            .collect(),
    };
    relative
        .into_iter()
        .map(|relative| Output { path: outdir.join(&relative), staged: PathBuf::from(relative) })
        .collect()
}

/// The ranking first: it is what the rest is made for.
fn benchmark(label: &str, inputs: &[Input], groups: &[&str], clustering: &str, plot: bool) -> Vec<String> {
    let mut files: Vec<String> = ["ranking.csv", "scores.json"]
        .into_iter()
        .chain(plot.then_some("scores.svg"))
        .map(|kind| format!("benchmark/{label}_{clustering}_{kind}"))
        .collect();
    let scored: Vec<&Scored> = inputs.iter().filter_map(|input| input.scored.as_ref()).collect();
    let methods: BTreeSet<&str> = scored.iter().map(|scored| scored.method.as_str()).collect();
    for group in groups {
        let kind = format!("{group}_{clustering}_metrics");
        for method in &methods {
            files.extend(["long", "wide"].map(|form| format!("benchmark/{method}_{kind}_{form}.csv")));
        }
        files.extend(
            scored.iter().map(|Scored { method, sample }| format!("benchmark/{kind}/{method}/{sample}.csv")),
        );
    }
    if groups.contains(&"bio_conservation") {
        files.extend(scored.iter().map(|Scored { method, sample }| {
            format!("benchmark/bio_conservation_{clustering}_predictions/{method}/{sample}_{clustering}_labels.tsv")
        }));
    }
    files
}

fn predictions(folder: &str, id: &str) -> [String; 2] {
    ["labels", "probs"].map(|kind| format!("{folder}/{id}_predicted_{kind}.tsv"))
}

/// Text parameters by name.
pub struct Parameters<'a>(pub &'a serde_json::Map<String, Value>);

impl Parameters<'_> {
    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}
