//! Where tasks run: container engine, GPUs, executor.

use std::fmt;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::ask::{PATIENCE, ask};
use crate::error::{Error, Result};
use crate::gpu::{Choice, Wish};
use crate::settings::{Origin, Settings};
use crate::workspace::{Config, Limits, Partition};

/// What runs the containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    Docker,
    Podman,
    Apptainer,
    Singularity,
    /// No containers.
    None,
}

impl Runtime {
    const ENGINES: [Runtime; 4] =
        [Runtime::Docker, Runtime::Podman, Runtime::Apptainer, Runtime::Singularity];

    pub fn name(self) -> &'static str {
        match self {
            Runtime::Docker => "docker",
            Runtime::Podman => "podman",
            Runtime::Apptainer => "apptainer",
            Runtime::Singularity => "singularity",
            Runtime::None => "none",
        }
    }

    /// The engine that the configuration turns on.
    pub fn of(config: &Config) -> Runtime {
        let enabled = |runtime: &Runtime| config.is_true(&format!("{}.enabled", runtime.name()));
        Runtime::ENGINES.into_iter().find(enabled).unwrap_or(Runtime::None)
    }

    /// The engine to write into a new workspace: the first whose command can do its work here.
    ///
    /// Docker's client may be there without its daemon, so its socket is what counts.
    pub fn detect() -> Runtime {
        let found = |name: &str| which::which(name).is_ok();
        if found("docker") && docker_answers() {
            return Runtime::Docker;
        }
        let others = [Runtime::Apptainer, Runtime::Singularity, Runtime::Podman];
        others.into_iter().find(|runtime| found(runtime.name())).unwrap_or(Runtime::None)
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether the engine can start a container on this machine.
///
/// # Errors
/// Environment: its command or its daemon is missing.
pub fn check_engine(runtime: Runtime) -> Result<()> {
    let missing = |what: String| {
        Err(Error::environment(what)
            .cause(format_args!(
                "the workspace's nextflow.config turns {runtime} on, and this method runs in a container"
            ))
            .hint(
                "start or install it, or turn another engine on there; `scfoundry doctor` shows what works",
            ))
    };
    match runtime {
        Runtime::None => Ok(()),
        _ if which::which(runtime.name()).is_err() => missing(format!("{runtime} was not found in PATH")),
        Runtime::Docker if !docker_answers() => missing("the docker daemon does not answer".to_owned()),
        _ => Ok(()),
    }
}

/// Whether a Docker daemon answers (`docker version` asks both client and server).
pub fn docker_answers() -> bool {
    let mut command = Command::new("docker");
    ask(command.args(["version", "--format", "{{.Server.Version}}"]), PATIENCE).is_ok()
}

/// The GPUs of a run, as numbers that `nvidia-smi` shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Gpus(pub Vec<u32>);

impl Gpus {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}

/// Executors that hand tasks to a command which must be on this machine.
const SUBMITTERS: [(&str, &str); 9] = [
    ("slurm", "sbatch"),
    ("sge", "qsub"),
    ("uge", "qsub"),
    ("pbs", "qsub"),
    ("pbspro", "qsub"),
    ("lsf", "bsub"),
    ("moab", "msub"),
    ("oar", "oarsub"),
    ("condor", "condor_submit"),
];

/// The executor of the configuration, else that of the environment, checked: the command that submits its jobs must be on
/// PATH.
pub fn executor(config: &Config, of_environment: Option<String>) -> Result<String> {
    let configured = config.get("process.executor").map(str::to_owned);
    let executor = configured.or(of_environment).unwrap_or_else(|| "local".to_owned());
    let submitter = SUBMITTERS.iter().find(|(name, _)| *name == executor);
    if let Some((_, command)) = submitter
        && which::which(command).is_err()
    {
        return Err(Error::environment(format_args!("{command} was not found in PATH"))
            .cause(format_args!("process.executor is {executor:?}, whose jobs are submitted with {command}"))
            .hint("run on a node that has it, or choose another profile with `--profile`"));
    }
    Ok(executor)
}

/// The limits of the queue, as the cluster says them, where no configuration does: a job beyond them would wait for ever.
pub fn limits(config: &Config, executor: &str) -> Option<Limits> {
    if executor != "slurm" || config.has("process.resourceLimits") {
        return None;
    }
    let partitions = Partition::all();
    Partition::choose(&partitions, config.get("process.queue")).map(Partition::limits)
}

/// The cards that are wanted: as typed, else the workspace's `params.gpu_id`, else what is usual.
///
/// # Errors
/// Usage: what stands there is no choice of cards.
pub fn wish(settings: &Settings, config: &Config, usual: impl FnOnce() -> Choice) -> Result<Wish> {
    let (text, named, typed) = match (&settings.gpu, config.get("params.gpu_id")) {
        (Some(typed), _) if typed.origin == Origin::CommandLine => (typed.value.as_str(), "--gpu", true),
        (Some(typed), _) => (typed.value.as_str(), "$SCFOUNDRY_GPU", true),
        (None, Some(text)) => (text, "params.gpu_id in nextflow.config", false),
        (None, None) => return Ok(Wish { choice: usual(), named: "the default", typed: false }),
    };
    Ok(Wish { choice: Choice::parse(text, named)?, named, typed })
}

/// All cores for a native task on this machine, unless the configuration says otherwise.
pub fn native_cpus(config: &Config, executor: &str) -> Option<usize> {
    if executor != "local" || config.has("process.cpus") {
        return None;
    }
    let limit = config.get("executor.cpus").and_then(|cpus| cpus.parse().ok());
    let here = std::thread::available_parallelism().map_or(1, usize::from);
    Some(limit.map_or(here, |limit: usize| limit.clamp(1, here)))
}
