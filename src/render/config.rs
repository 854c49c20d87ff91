//! The two configurations: the workspace's, which the user edits, and the run's, which includes it.

use super::groovy::{Script, Value};
use crate::plan::{Gpus, Plan, Runtime, Stage, Work};

/// Trace fields known to every Nextflow since 22.10; an unknown one would be an error.
const TRACE_FIELDS: &str = "task_id,hash,native_id,process,tag,name,status,exit,attempt,submit,start,complete,duration,\
    realtime,%cpu,%mem,rss,peak_rss,peak_vmem,rchar,wchar,read_bytes,write_bytes,cpus,memory,time,queue,container,workdir,\
    hostname";

/// As many threads as the task was given cores. Not in the script of the task: the number changes no result, and so must not
/// keep a finished task from being reused.
const KERNEL_THREADS: &str = "{ \"export RAYON_NUM_THREADS=${task.cpus}\" }";

/// The starting text of a workspace's `nextflow.config`.
pub fn workspace_config(runtime: Runtime, gpus: &Gpus) -> String {
    let mut script = Script::default();
    script.comment("Settings of all runs in this workspace. This file is yours: scfoundry reads it and never changes it.");
    script.blank();
    script.scope("params", |params| {
        params
            .comment("GPUs for inference, as nvidia-smi numbers them: '0', or '0,1' for two tasks at once.");
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
    script.comment("To send tasks to a cluster, choose this profile with `--profile slurm`.");
    script.scope("profiles", |profiles| {
        profiles.scope("slurm", |slurm| {
            slurm.set("process.executor", "slurm");
            slurm.suggest("process.queue", "gpu");
            slurm.suggest("process.clusterOptions", "--account=lab");
        });
    });
    script.finish()
}

/// The configuration of one run. It includes the workspace's, and says only what the plan decided.
pub fn run_config(plan: &Plan, program: &str, work: &str) -> String {
    let mut script = Script::default();
    script.comment(&format!("Written by scfoundry {} for this run alone.", env!("CARGO_PKG_VERSION")));
    script.comment("Lasting settings belong into the workspace's nextflow.config, which it includes.");
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
        process.comment("One failed task does not stop the others; the run fails all the same.");
        // A job that a scheduler refuses would stall the run for ever if it were ignored.
        process.set("errorStrategy", if plan.executor == "local" { "ignore" } else { "finish" });
        for stage in &plan.stages {
            process.scope(&format!("withName: '{}'", stage.process), |scope| stage_settings(scope, stage));
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

pub(super) fn stage_settings(scope: &mut Script, stage: &Stage) {
    // Null for a native task: an image for all processes in the user's configuration is not meant for it.
    scope.set("container", stage.container.as_deref().map_or(Value::Null, Value::from));
    if let Some(options) = &stage.surroundings.container_options {
        scope.set("containerOptions", options.as_str());
    }
    match (&stage.work, &stage.surroundings.before_script) {
        (Work::Kernel(_), _) => scope.set("beforeScript", Value::Code(KERNEL_THREADS)),
        (Work::Runner(_), Some(before)) => scope.set("beforeScript", before.as_str()),
        (Work::Runner(_), None) => {}
    }
    if let Some(cpus) = stage.cpus {
        scope.set("cpus", cpus as i64);
    }
    if let Some(forks) = stage.max_forks {
        scope.set("maxForks", forks as i64);
    }
}
