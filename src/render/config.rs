//! The two configurations: the workspace's, which the user edits, and the run's, which includes it.

use std::path::Path;

use super::groovy::{Script, Value};
use super::sampler;
use crate::gpu::Choice;
use crate::plan::{Asks, Plan, Runtime, Stage};
use crate::workspace::{Cluster, Limits};

/// Trace fields known to every Nextflow since 22.10; an unknown one would be an error.
const TRACE_FIELDS: &str = "task_id,hash,native_id,process,tag,name,status,exit,attempt,submit,start,complete,duration,\
    realtime,%cpu,%mem,rss,peak_rss,peak_vmem,rchar,wchar,read_bytes,write_bytes,cpus,memory,time,queue,container,workdir,\
    hostname";

/// The starting text of a workspace's `nextflow.config`.
pub fn workspace_config(runtime: Runtime, gpus: &Choice, cluster: &Cluster) -> String {
    let mut script = Script::default();
    script.comment("Settings of all runs in this workspace. This file is yours: scfoundry reads it and never changes it.");
    script.blank();
    script.scope("params", |params| {
        params
            .comment("GPUs for inference: 'auto' for a free one, or as nvidia-smi numbers them: '0', or '0,1' for two tasks at once.");
        params.set("gpu_id", gpus.to_string());
    });
    script.blank();
    script.comment("What runs the models' containers: docker, podman, apptainer or singularity.");
    match runtime {
        Runtime::None => {
            script.comment("None was found when this workspace was made. To turn one on:");
            script.suggest("docker.enabled", true);
        }
        engine => script.scope(engine.name(), |scope| scope.set("enabled", true)),
    }
    script.blank();
    script.comment(
        "Where tasks run: `--profile slurm`, or `profile = \"slurm\"` in scfoundry.toml for all runs.",
    );
    script.scope("profiles", |profiles| {
        profiles.scope("slurm", |slurm| slurm_profile(slurm, cluster));
        profiles.scope("local", |local| local.set("process.executor", "local"));
    });
    script.finish()
}

fn slurm_profile(slurm: &mut Script, cluster: &Cluster) {
    slurm.set("process.executor", "slurm");
    match &cluster.queue {
        Some(queue) => slurm.set("process.queue", queue.as_str()),
        None => slurm.suggest("process.queue", "gpu"),
    }
    match &cluster.account {
        Some(account) => slurm.set("executor.account", account.as_str()),
        None => slurm.suggest("executor.account", "lab"),
    }
    slurm.comment("The most that the queue takes: what a method asks for is cut to it.");
    match resource_limits(&cluster.limits) {
        Value::Map(limits) if limits.is_empty() => {
            slurm.suggest("process.resourceLimits", Value::Map(vec![("time".to_owned(), "24h".into())]));
        }
        limits => slurm.set("process.resourceLimits", limits),
    }
    slurm.comment("What a task that needs a GPU asks for, as in `sbatch --gres`.");
    slurm.set("params.gres", cluster.gres.as_deref().unwrap_or("gpu:1"));
    if let Some(size) = cluster.array_size {
        slurm.set("process.array", i64::from(size));
    }
    match &cluster.poll_interval {
        Some(interval) => slurm.set("executor.pollInterval", interval.as_str()),
        None => slurm.suggest("executor.pollInterval", "30s"),
    }
}

fn resource_limits(limits: &Limits) -> Value {
    let mut map: Vec<(String, Value)> = Vec::new();
    for (name, limit) in [("time", &limits.time), ("memory", &limits.memory)] {
        map.extend(limit.as_deref().map(|limit| (name.to_owned(), limit.into())));
    }
    map.extend(limits.cpus.map(|cpus| ("cpus".to_owned(), i64::from(cpus).into())));
    Value::Map(map)
}

/// The configuration of the run in the directory `run`. It includes the workspace's, and says only what the plan decided.
pub fn run_config(plan: &Plan, program: &str, run: &Path, work: &str) -> String {
    let mut script = Script::default();
    script.comment(&format!("Written by scfoundry {} for this run alone.", env!("CARGO_PKG_VERSION")));
    script.comment("Lasting settings belong into the workspace's nextflow.config, which it includes.");
    if let Some(site) = &plan.site_config {
        script.include(&site.to_string_lossy());
    }
    let workspace = plan.workspace.join("nextflow.config");
    if workspace.exists() || plan.new_workspace {
        script.include(&workspace.to_string_lossy());
    }
    script.blank();
    script.set("workDir", work);
    script.set("env.SCFOUNDRY", program);
    trace_settings(&mut script);
    for name in ["report", "timeline"] {
        script.set(&format!("{name}.overwrite"), true);
    }
    script.set("workflow.failOnIgnore", true);
    script.scope("process", |process| {
        // Said here too, so that no other file or variable can make it another than the plan's.
        process.set("executor", plan.executor.as_str());
        if let Some(limits) = &plan.limits {
            process.set("resourceLimits", resource_limits(limits));
        }
        if plan.retried {
            process.comment("One failed task does not stop the others; the run fails all the same.");
            // A job that a scheduler refuses would stall the run for ever if it were ignored.
            process.set("errorStrategy", if plan.executor == "local" { "ignore" } else { "finish" });
        }
        for stage in &plan.stages {
            process.scope(&format!("withName: '{}'", stage.process), |scope| {
                stage_settings(scope, stage, plan.retried, sampler::start(plan, stage, run))
            });
        }
    });
    for (name, value) in &plan.engine_settings {
        script.set(name, Value::from(value));
    }
    if plan.nextflow_option("-params-file").is_some() {
        script.comment("Here since `-params-file` was given after `--`; its values win.");
        script.scope("params", |params| {
            for (name, value) in &plan.parameters {
                params.set(&super::groovy::name(name), Value::from(value));
            }
        });
    }
    script.finish()
}

pub(super) fn trace_settings(script: &mut Script) {
    script.scope("trace", |trace| {
        trace.set("enabled", true);
        trace.set("overwrite", true);
        trace.set("file", "trace.txt");
        trace.set("raw", true);
        trace.set("fields", TRACE_FIELDS);
    });
}

/// `sampled` is what starts the sampler of the process's cards.
pub(super) fn stage_settings(scope: &mut Script, stage: &Stage, retried: bool, sampled: Option<String>) {
    // Null for a native task: an image for all processes in the user's configuration is not meant for it.
    scope.set("container", stage.container.as_deref().map_or(Value::Null, Value::from));
    if let Some(options) = &stage.surroundings.container_options {
        scope.set("containerOptions", options.as_str());
    }
    sampler::before_script(scope, stage, sampled);
    requests(scope, &stage.asks, retried);
    if let Some(forks) = stage.max_forks {
        scope.set("maxForks", forks as i64);
    }
}

/// What the process asks a scheduler for; a task that was killed for want of it is given twice as much, twice.
fn requests(scope: &mut Script, asks: &Asks, retried: bool) {
    if let Some(cpus) = asks.cpus {
        scope.set("cpus", cpus as i64);
    }
    for (name, amount, unit) in [("memory", &asks.memory_bytes, "B"), ("time", &asks.time_seconds, "s")] {
        if let Some(amount) = amount.clone() {
            scope.set(name, Value::Growing { amount, unit });
        }
    }
    if let Some(accelerator) = asks.accelerator {
        scope.set("accelerator", accelerator as i64);
    }
    if let Some(options) = &asks.cluster_options {
        scope.set("clusterOptions", options.as_str());
    }
    let strategy = match (&asks.memory_bytes, &asks.time_seconds) {
        (Some(_), Some(_)) => "{ task.exitStatus in [137, 140] && task.attempt < 3 ? 'retry' : 'finish' }",
        (Some(_), None) => "{ task.exitStatus == 137 && task.attempt < 3 ? 'retry' : 'finish' }",
        (None, Some(_)) => "{ task.exitStatus == 140 && task.attempt < 3 ? 'retry' : 'finish' }",
        (None, None) => return,
    };
    if retried {
        scope.set("errorStrategy", Value::Code(strategy));
        scope.set("maxRetries", 2);
    }
}
