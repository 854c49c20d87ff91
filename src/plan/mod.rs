//! The plan: every decision about a run in one value, made before anything is written.
//!
//! `--dry-run` prints it, `render` writes it, `launch` runs it; none of them looks at the command line again.

mod containers;
mod inputs;
mod names;
mod parameters;
mod request;
mod resources;
mod stages;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};

pub use containers::Surroundings;
pub use inputs::Input;
pub use names::expanded_by_shell;
pub use request::{Given, Request, Resume, Role, Source};
pub use resources::{Gpus, Runtime, docker_answers};
pub use stages::{Stage, Work};

use crate::error::{Error, Result};
use crate::method::{Catalogue, Profile, Task};
use crate::rundir::Output;
use crate::settings::Settings;
use crate::workspace::{Config, Workspace};
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
    pub outputs: Vec<Output>,
    pub stages: Vec<Stage>,
    /// What `params.json` will hold.
    pub parameters: Map<String, Value>,
    pub runtime: Runtime,
    pub gpus: Gpus,
    pub executor: String,
    /// Settings of the container engine that nobody has made.
    pub engine_settings: Vec<(String, Value)>,
    /// Configuration files that the run includes, the workspace's first.
    pub configs: Vec<PathBuf>,
    pub profile: Option<String>,
    /// The arguments after `--`, as text; what is passed is [`Plan::nextflow_args`].
    #[serde(rename = "nextflow_args")]
    pub nextflow_text: Vec<String>,
    #[serde(skip)]
    pub nextflow_args: Vec<OsString>,
    pub run_stem: String,
    /// Warnings count as errors; a failed check fails the command.
    pub strict: bool,
    /// Goes on from this run.
    pub resume: Option<PathBuf>,
    pub warnings: Vec<String>,
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
    pub has_variable: &'a dyn Fn(&str) -> bool,
}

impl Plan {
    /// Decides the run. Reads the inputs' headers and the workspace's configuration, writes nothing.
    ///
    /// # Errors
    /// Usage for options that make no sense, Input for files that cannot be read, Environment for an executor whose
    /// command is not here.
    pub fn make(request: &Request, context: &Context<'_>) -> Result<Plan> {
        names::check_workspace(context.workspace.root())?;
        let profile = profile(request, context.catalogue)?;
        let parameters = parameters::gather(request, profile, context.catalogue)?;
        let mut warnings = parameters.warnings;
        let inputs = gather_inputs(&request.inputs)?;
        let config = Config::read(&context.workspace.nextflow_config(), request.profile.as_deref())?;
        let executor = resources::executor(&config)?;
        let gpus = gpus(context.settings, &config)?;
        let place = Place {
            runtime: Runtime::of(&config),
            config: &config,
            gpus: &gpus,
            scheduled: executor != "local",
        };
        let stages = stages::stages(request.task, profile, &place, native_cpus(&config, &executor));
        if let Some(setting) = &context.settings.gpu
            && !stages.iter().any(|stage| stage.gpu)
        {
            warnings.push(format!("GPU {} is not used: no step of this run needs one", setting.value));
        }
        let label = label(request, &inputs);
        let shown = stages::Parameters(&parameters.values);
        let outdir = &context.settings.outdir.value;
        let outputs = stages::outputs(request.task, &label, &inputs, &shown, outdir);
        let mut plan = Plan {
            schema: 1,
            task: request.task,
            method: request.method.clone(),
            workspace: context.workspace.root().to_owned(),
            new_workspace: !context.workspace.exists(),
            outputs,
            engine_settings: containers::engine_settings(&place, context.workspace, context.has_variable),
            runtime: place.runtime,
            unavailable: stages::unavailable(request.task, &stages),
            run_stem: run_stem(request, &label, &inputs, context.stamp),
            parameters: Map::new(),
            stages,
            inputs,
            gpus,
            executor,
            configs: configs(request)?,
            profile: request.profile.clone(),
            nextflow_text: request
                .nextflow_args
                .iter()
                .map(|arg| arg.to_string_lossy().into_owned())
                .collect(),
            nextflow_args: request.nextflow_args.clone(),
            strict: request.strict,
            resume: None,
            warnings,
        };
        plan.parameters = plan.pipeline_parameters(parameters.values, parameters.read, &label);
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
        parameters.insert("inputs".to_owned(), self.inputs.iter().map(described).collect());
        parameters.insert("read".to_owned(), json!(read));
        parameters.extend(values);
        parameters
    }

    /// The Nextflow option `name` among the arguments after `--`, with its value if it has one (`-with-trace FILE`).
    pub fn nextflow_option(&self, name: &str) -> Option<Option<&str>> {
        let position = self.nextflow_text.iter().position(|arg| arg == name)?;
        Some(self.nextflow_text.get(position + 1).map(String::as_str).filter(|value| !value.starts_with('-')))
    }
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

/// Opens the inputs role by role, in the order of first mention.
fn gather_inputs(typed: &[(Role, PathBuf)]) -> Result<Vec<Input>> {
    let mut roles: Vec<Role> = Vec::new();
    for (role, _) in typed {
        if !roles.contains(role) {
            roles.push(*role);
        }
    }
    let mut found = Vec::new();
    for role in roles.into_iter().filter(|role| *role != Role::Fitted) {
        let paths: Vec<PathBuf> =
            typed.iter().filter(|(r, _)| *r == role).map(|(_, path)| path.clone()).collect();
        found.extend(inputs::resolve(role, &paths)?);
    }
    Ok(found)
}

/// The cards: as typed, else the workspace's `params.gpu_id`, else the first.
fn gpus(settings: &Settings, config: &Config) -> Result<Gpus> {
    match (&settings.gpu, config.get("params.gpu_id")) {
        (Some(typed), _) => match typed.origin {
            crate::settings::Origin::CommandLine => Gpus::parse(&typed.value, "--gpu"),
            _ => Gpus::parse(&typed.value, "$SCFOUNDRY_GPU"),
        },
        (None, Some(text)) => Gpus::parse(text, "params.gpu_id in nextflow.config"),
        (None, None) => Ok(Gpus(vec![0])),
    }
}

/// All cores for a native task on this machine, unless the configuration says otherwise.
fn native_cpus(config: &Config, executor: &str) -> Option<usize> {
    if executor != "local" || config.has("process.cpus") {
        return None;
    }
    let limit = config.get("executor.cpus").and_then(|cpus| cpus.parse().ok());
    let here = std::thread::available_parallelism().map_or(1, usize::from);
    Some(limit.map_or(here, |limit: usize| limit.clamp(1, here)))
}

/// The method's name; for scores the folder of the first embedding, which names the method that made it.
fn label(request: &Request, inputs: &[Input]) -> String {
    let folder =
        || inputs.first()?.path.parent()?.file_name().map(|name| name.to_string_lossy().into_owned());
    let fallback = match request.task {
        Task::Benchmark | Task::Geometry => folder(),
        _ => None,
    };
    request.method.clone().or(fallback).unwrap_or_else(|| request.task.name().to_owned())
}

fn run_stem(request: &Request, label: &str, inputs: &[Input], stamp: &str) -> String {
    if let Some(name) = &request.run_name {
        return plain(name);
    }
    let input = match inputs {
        [one] => one.id.clone(),
        [first, rest @ ..] => format!("{}+{}", first.id, rest.len()),
        [] => "fitted".to_owned(),
    };
    format!("{stamp}_{}_{}", plain(label), plain(&input))
}

/// A name that is easy to type: letters, digits and `. _ - +`; others become `_`.
fn plain(text: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    let name: String = text.chars().map(|c| if keep(c) { c } else { '_' }).take(100).collect();
    if name.starts_with('.') { format!("_{name}") } else { name }
}

fn configs(request: &Request) -> Result<Vec<PathBuf>> {
    let absolute = |path: &PathBuf| -> Result<PathBuf> {
        let absolute = std::path::absolute(path).map_err(Error::io("resolve", path))?;
        match absolute.is_file() {
            true => Ok(absolute),
            false => Err(Error::input(format_args!("cannot read {}", path.display()))
                .cause("no such file")
                .hint("`--config` takes a Nextflow configuration file")),
        }
    };
    request.configs.iter().map(absolute).collect()
}

/// An input as the pipeline sees it. The tag becomes part of a shell script, so it is made harmless.
fn described(input: &Input) -> Value {
    json!({ "role": input.role, "id": input.id, "tag": plain(&input.id), "path": input.path })
}

/// Whether `path` could be meant by `text`: used to warn about relative paths after `--`.
pub fn is_relative_file(text: &str, folder: &Path) -> bool {
    Path::new(text).is_relative() && folder.join(text).is_file()
}
