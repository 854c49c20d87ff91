//! The run directory of `scfoundry doctor --container`.

use std::path::Path;

use super::config::{stage_settings, trace_settings};
use super::groovy::{Script, Value};
use crate::plan::Trial;

/// The pipeline of one task that tells what it finds around it.
pub const TRIAL_PIPELINE: &str = include_str!("../../templates/pipeline/doctor.nf");

/// Its configuration, which includes the workspace's as that of a run does.
pub fn trial_config(trial: &Trial, workspace: &Path, work: &Path) -> String {
    let mut script = Script::default();
    if workspace.join("nextflow.config").exists() {
        script.include(&workspace.join("nextflow.config").to_string_lossy());
    }
    script.set("workDir", work.to_string_lossy().into_owned());
    trace_settings(&mut script);
    script.scope("process", |process| {
        process.scope(&format!("withName: '{}'", trial.stage.process), |scope| {
            stage_settings(scope, &trial.stage, false, None);
        });
    });
    for (name, value) in &trial.engine_settings {
        script.set(name, Value::from(value));
    }
    script.finish()
}
