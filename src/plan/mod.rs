//! The plan: every decision about a run in one value, made before anything is written.
//!
//! `--dry-run` prints it, `render` writes it, `launch` runs it; none of them looks at the command line again.

mod again;
mod asks;
mod batch;
mod cards;
mod configuration;
mod containers;
mod disk;
mod fitted;
mod inputs;
mod names;
mod parameters;
mod preamble;
mod request;
mod resources;
mod runner;
mod stages;
mod staging;
mod transfer;
mod trial;
mod weights;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};

pub use again::Typed;
pub use asks::{Amount, Asks};
pub use batch::{Batch, BatchSource, DECIDED};
pub use containers::{Surroundings, image_folder};
pub use disk::{Disk, Part, Share};
pub use fitted::Fitted;
pub use inputs::{Input, Scored, tags};
pub use preamble::Preamble;
pub use request::{Given, Request, Resume, Role, Source};
pub use resources::{Gpus, Runtime, check_engine, docker_answers};
pub use runner::Runner;
pub use stages::{Feed, Stage, Work};
pub use trial::Trial;
pub use weights::Weight;

use crate::error::{Error, Result};
use crate::gpu::{self, Choice, Name, Wish};
use crate::method::{Catalogue, GENE_COLUMNS, Profile, Task};
use crate::rundir::Output;
use crate::settings::Settings;
use crate::workspace::{Limits, Workspace};
use cards::Around;
use containers::Place;

/// A run, decided.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    pub schema: u32,
    pub task: Task,
    /// The method, or the label of a task that has none.
    pub method: Option<String>,
    pub workspace: PathBuf,
    /// The workspace has to be made first.
    pub new_workspace: bool,
    pub inputs: Vec<Input>,
    /// The model of an earlier run that takes the place of a reference.
    pub fitted: Option<Fitted>,
    pub outputs: Vec<Output>,
    /// Files of the model that the method loads.
    pub weights: Vec<Weight>,
    /// The script that does the method's work; absent for a native one.
    pub runner: Option<Runner>,
    /// What the run will write at least.
    pub disk: Disk,
    pub stages: Vec<Stage>,
    /// What `params.json` will hold.
    pub parameters: Map<String, Value>,
    pub runtime: Runtime,
    /// Where Nextflow keeps images that are files.
    #[serde(skip)]
    pub image_folder: PathBuf,
    /// The batch size, where it was left open (`auto`).
    pub batch: Option<Batch>,
    /// Of `auto` and UUIDs only their number is right until the cards are taken; a scheduler takes them itself.
    pub gpus: Gpus,
    /// What `gpus` comes from.
    pub gpu_wish: Wish,
    pub executor: String,
    /// The most that the queue takes, where only the cluster says it.
    pub limits: Option<Limits>,
    /// A configuration file for all runs, from `$NXF_CONFIG_FILE`.
    pub site_config: Option<PathBuf>,
    /// Failed tasks are handled our way; else the user's configuration says how.
    pub retried: bool,
    /// Settings of the container engine that nobody has made.
    pub engine_settings: Vec<(String, Value)>,
    /// Configuration files given on top of the workspace's.
    pub configs: Vec<PathBuf>,
    pub profile: Option<String>,
    /// The arguments after `--`, as text; what is passed is [`Plan::nextflow_args`].
    #[serde(rename = "nextflow_args")]
    pub nextflow_text: Vec<String>,
    #[serde(skip)]
    pub nextflow_args: Vec<OsString>,
    #[serde(skip)]
    pub typed: Typed,
    pub run_stem: String,
    /// Warnings count as errors; a failed check fails the command.
    pub strict: bool,
    /// Goes on from this run.
    pub resume: Option<PathBuf>,
    /// This run has done it all, and nothing has changed since.
    pub done_by: Option<PathBuf>,
    /// The work directory stays when the run has gone well.
    pub keep_work: bool,
    /// It runs on a sample, to be measured and removed.
    #[serde(skip)]
    pub probe: bool,
    pub warnings: Vec<String>,
    #[serde(skip)]
    around: Around,
    /// Why this build cannot run it.
    pub unavailable: Option<String>,
}

/// What a plan is made from, beside the request.
pub struct Context<'a> {
    pub workspace: &'a Workspace,
    pub settings: &'a Settings,
    pub catalogue: &'a Catalogue,
    /// The local time that names the run, `20261202-085900`.
    pub stamp: &'a str,
    /// The environment, as far as Nextflow and the container engines read it.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Plan {
    /// Decides the run. Reads the inputs' headers and the workspace's configuration, writes nothing.
    ///
    /// # Errors
    /// Usage for options that make no sense, Input for files that cannot be read, Environment for an executor whose
    /// command is not here.
    pub fn make(request: &Request, context: &Context<'_>) -> Result<Plan> {
        names::check_workspace(context.workspace)?;
        let fitted = Fitted::of(request)?;
        let unused = unused(request)?;
        let request = &*fitted::completed(request, fitted.as_ref())?;
        let profile = profile(request, context.catalogue)?;
        let parameters = parameters::gather(request, profile, context.catalogue)?;
        let mut warnings = parameters.warnings;
        warnings.extend(unused);
        let mut inputs = inputs::gather(&request.inputs)?;
        names::score(request, &mut inputs);
        transfer::tell_apart(request.task, &mut inputs);
        if request.task == Task::Geometry {
            inputs::pair(&mut inputs)?;
        }
        require_columns(request.task, &parameters.values, &inputs)?;
        let configs = configuration::files(request)?;
        let chosen = configuration::profile(request, context.settings);
        let site_config = configuration::of_the_site(context)?;
        let outer = site_config.as_deref();
        let config = configuration::read(context, outer, &configs, request, chosen.as_deref())?;
        let executor = resources::executor(&config, (context.variable)("NXF_EXECUTOR"))?;
        let usual = || match profile.is_some_and(|profile| profile.gpu) && executor == "local" {
            true => gpu::usual_choice(),
            false => Choice::Named(vec![Name::Index(0)]),
        };
        let gpu_wish = resources::wish(context.settings, &config, usual)?;
        let gpus = Gpus(gpu_wish.choice.stand_ins());
        let runner = match profile {
            Some(profile) => {
                let origin = context.catalogue.origin(&profile.name);
                Runner::of(profile, request.task, origin, &context.settings.cache_dir.value)?
            }
            None => None,
        };
        let place = Place {
            runtime: Runtime::of(&config),
            config: &config,
            gpus: &gpus,
            executor: &executor,
            mounts: staging::mounts(context),
        };
        let mut stages = stages::stages(request.task, profile, &place, &inputs)?;
        stages.retain(|stage| stages::has_work(stage, fitted.is_some(), &inputs));
        warnings.extend(idle_gpu(context.settings, &gpus, &stages));
        warnings.extend(asks::unasked_gpu(&place, stages.iter().any(|stage| stage.gpu)));
        warnings.extend(containers::replaced_options(&place, &stages));
        warnings.extend(preamble::unsampled(&place, &stages));
        staging::check(&place, &stages, &inputs, context)?;
        let limits = resources::limits(&config, &executor);
        let retried = !config.has("process.errorStrategy");
        let label = names::label(request, &inputs);
        let shown = stages::Parameters(&parameters.values);
        let outdir = &context.settings.outdir.value;
        directory(outdir)?;
        let outputs = stages::outputs(request.task, &label, &inputs, &shown, outdir);
        let mut plan = Plan {
            schema: 1,
            task: request.task,
            method: request.method.clone(),
            workspace: context.workspace.root().to_owned(),
            new_workspace: !context.workspace.exists(),
            outputs,
            disk: Disk::default(),
            weights: match (request.task, &fitted) {
                // A trained model has all it needs.
                (Task::Finetune, Some(_)) => Vec::new(),
                _ => weights::weights(profile, &parameters.values, &context.settings.weights_dir.value),
            },
            fitted,
            engine_settings: containers::engine_settings(&place, &context.settings.cache_dir.value, |name| {
                (context.variable)(name).is_some()
            }),
            runtime: place.runtime,
            image_folder: image_folder(
                place.runtime,
                &config,
                &context.settings.cache_dir.value,
                context.variable,
            ),
            unavailable: stages::unavailable(&stages, runner.as_ref()),
            runner,
            run_stem: names::run_stem(request, &label, &inputs, context.stamp),
            parameters: Map::new(),
            stages,
            inputs,
            around: Around { config: config.clone(), mounts: place.mounts.clone() },
            gpus: gpus.clone(),
            gpu_wish,
            executor: executor.clone(),
            configs,
            profile: chosen,
            retried,
            limits,
            site_config,
            nextflow_text: request.nextflow_args.iter().map(|arg| arg.to_string_lossy().into()).collect(),
            nextflow_args: request.nextflow_args.clone(),
            typed: request.typed.clone(),
            strict: request.strict,
            resume: None,
            done_by: None,
            keep_work: context.settings.keep_work.value,
            probe: false,
            batch: None,
            warnings,
        };
        plan.disk = Disk::of(&plan, profile, &parameters.values, context.settings);
        plan.parameters = plan.pipeline_parameters(parameters.values, parameters.read, &label);
        plan.add_runner(profile, context.settings);
        plan.batch = plan.open_batch();
        if matches!(request.task, Task::Transfer | Task::Finetune) {
            plan.parameters.insert("fitted".to_owned(), json!(plan.fitted));
        }
        if request.task == Task::Check {
            plan.parameters.insert("profile".to_owned(), json!(profile));
        }
        Ok(plan)
    }

    /// What the pipeline reads: the parameters by name, and the plan's decisions it needs.
    fn pipeline_parameters(
        &self,
        values: Map<String, Value>,
        read: Vec<String>,
        label: &str,
    ) -> Map<String, Value> {
        let work = |stage: &Stage| match &stage.work {
            Work::Kernel(name) => (stage.process.to_owned(), json!({ "kernel": name })),
            Work::Runner(script) => (stage.process.to_owned(), json!({ "runner": script })),
        };
        let mut parameters = Map::new();
        parameters.insert("scfoundry".to_owned(), json!(env!("CARGO_PKG_VERSION")));
        parameters.insert("task".to_owned(), json!(self.task));
        parameters.insert("method".to_owned(), json!(label));
        parameters.insert("gpu_id".to_owned(), json!(self.gpus.to_string()));
        parameters.insert("work".to_owned(), self.stages.iter().map(work).collect::<Map<_, _>>().into());
        parameters.insert("inputs".to_owned(), described(&self.inputs));
        parameters.insert("read".to_owned(), json!(read));
        parameters.extend(values);
        parameters
    }

    /// Whether the tasks only do as if.
    pub fn is_rehearsal(&self) -> bool {
        ["-stub", "-stub-run", "-preview"].iter().any(|option| self.nextflow_option(option).is_some())
    }

    /// Whether a task of the run starts a container on this machine.
    pub fn needs_engine_here(&self) -> bool {
        self.executor == "local" && self.stages.iter().any(|stage| stage.container.is_some())
    }

    /// Where the tasks of a model find its script, its weights and a place for what its libraries keep; a kernel only needs
    /// the files of its model.
    fn add_runner(&mut self, profile: Option<&Profile>, settings: &Settings) {
        let directory = self.runner.as_ref().map(|runner| &runner.directory);
        self.parameters.insert("runner".to_owned(), json!(directory));
        if self.stages.iter().any(|stage| matches!(stage.work, Work::Runner(_))) {
            self.parameters.insert("weights".to_owned(), json!(settings.weights_dir.value));
            self.parameters.insert("cache".to_owned(), json!(settings.cache_dir.value));
            self.parameters.insert("genes".to_owned(), gene_rules(profile));
            let batch = profile.and_then(|profile| profile.batch(self.task)).map(|(_, size)| size);
            self.parameters.insert("default_batch_size".to_owned(), json!(batch));
            self.parameters.insert(DECIDED.to_owned(), json!({}));
        } else if let Some(chosen) = self.parameters.get("model").and_then(Value::as_str) {
            let mut files: Vec<PathBuf> = self.weights.iter().map(|weight| weight.path.clone()).collect();
            if files.is_empty() {
                files.push(PathBuf::from(chosen));
            }
            self.parameters.insert("model_files".to_owned(), json!(files));
            self.parameters.insert("genes".to_owned(), gene_rules(profile));
        }
    }

    /// The Nextflow option `name` among the arguments after `--`, with its value if it has one (`-with-trace FILE`).
    pub fn nextflow_option(&self, name: &str) -> Option<Option<&str>> {
        let position = self.nextflow_text.iter().position(|arg| arg == name)?;
        Some(self.nextflow_text.get(position + 1).map(String::as_str).filter(|value| !value.starts_with('-')))
    }
}

/// What a method looks genes up by, and where in a file their names may stand.
fn gene_rules(profile: Option<&Profile>) -> Value {
    let mut rules = json!(profile.map(|profile| &profile.genes));
    rules["columns"] = json!(GENE_COLUMNS);
    rules
}

/// Options that this run has no use for, though its task and method have.
///
/// # Errors
/// Usage, where warnings are errors.
fn unused(request: &Request) -> Result<Vec<String>> {
    let sentences: Vec<String> =
        transfer::unused(request).into_iter().chain(fitted::unused(request)).collect();
    match sentences.first() {
        Some(first) if request.strict => {
            Err(Error::usage(first).hint("leave it out, or leave `--strict` out"))
        }
        _ => Ok(sentences),
    }
}

/// A card that was asked for and that no step uses.
fn idle_gpu(settings: &Settings, gpus: &Gpus, stages: &[Stage]) -> Option<String> {
    let asked =
        settings.gpu.as_ref().filter(|_| !gpus.is_empty() && !stages.iter().any(|stage| stage.gpu))?;
    Some(format!("GPU {} is not used: no step of this run needs one", asked.value))
}

fn profile<'a>(request: &Request, catalogue: &'a Catalogue) -> Result<Option<&'a Profile>> {
    let labelled = matches!(request.task, Task::Benchmark | Task::Geometry);
    let Some(name) = request.method.as_deref().filter(|_| !labelled) else { return Ok(None) };
    let profile = catalogue.get(name)?;
    if request.task.is_done_by_a_method() && !profile.supports(request.task) {
        let able: Vec<&str> = catalogue.for_task(request.task).map(|profile| profile.name.as_str()).collect();
        return Err(Error::usage(format_args!("{name} cannot {}", request.task))
            .hint(format_args!("methods that can: {}", able.join(", "))));
    }
    Ok(Some(profile))
}

/// The columns without which the task cannot do its work.
fn require_columns(task: Task, values: &Map<String, Value>, inputs: &[Input]) -> Result<()> {
    let (role, keys): (Role, &[&str]) = match task {
        Task::Transfer | Task::Finetune => (Role::Reference, &["label_key"]),
        Task::Benchmark => (Role::Embedding, &["label_key", "batch_key"]),
        Task::Embed | Task::Check | Task::Geometry => return Ok(()),
    };
    let batches_scored = matches!(values.get("metrics").and_then(Value::as_str), Some("batch" | "all"));
    if batches_scored && values.get("batch_key").is_none_or(Value::is_null) {
        return Err(Error::usage("batch metrics need to know the batches")
            .hint("name the obs column with `--batch-key`"));
    }
    for key in keys {
        if let Some(column) = values.get(*key).and_then(Value::as_str) {
            let option = format!("--{}", key.replace('_', "-"));
            inputs::require_column(inputs, role, column, &option)?;
        }
    }
    Ok(())
}

/// A place for results that is a file would be noticed only when there are results.
fn directory(outdir: &Path) -> Result<()> {
    let blocked = outdir.ancestors().find(|path| path.exists()).filter(|path| !path.is_dir());
    match blocked {
        None => Ok(()),
        Some(file) => Err(Error::input(format_args!("{} is not a directory", file.display()))
            .cause(format_args!("results go to {}", outdir.display()))
            .hint("name another place with `--outdir`")),
    }
}

/// The inputs as the pipeline sees them.
fn described(inputs: &[Input]) -> Value {
    let describe = |(input, tag): (&Input, String)| {
        let mut described = json!({
            "role": input.role,
            "id": input.id,
            "tag": tag,
            "path": input.path,
            "staged": input.staged,
            "stamp": input.stamp,
        });
        if let Some(Scored { method, sample }) = &input.scored {
            described["method"] = json!(method);
            described["sample"] = json!(sample);
        }
        if let Some(data) = &input.data {
            described["data"] = json!(data);
        }
        described
    };
    inputs.iter().zip(inputs::tags(inputs)).map(describe).collect()
}

/// Whether `path` could be meant by `text`: used to warn about relative paths after `--`.
pub fn is_relative_file(text: &str, folder: &Path) -> bool {
    Path::new(text).is_relative() && folder.join(text).is_file()
}
