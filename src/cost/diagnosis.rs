//! Why a task failed, where its exit code and its log tell.

use std::path::Path;

use crate::trace::TaskRecord;

/// What the caller knows of the run that the log does not say.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The batch size in use.
    pub batch_size: Option<u64>,
    /// The option that sets it for this task.
    pub batch_size_option: Option<&'static str>,
    /// `docker`, `podman`, `apptainer`, `singularity`; absent: no container.
    pub engine: Option<String>,
    /// Whether the run asked for a GPU.
    pub gpu: bool,
}

/// What is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub what: String,
    pub hint: String,
}

/// Says why a task failed, or `None` where neither its exit code nor its log is known to tell.
pub fn diagnose(task: &TaskRecord, work_directory: Option<&Path>, facts: &Facts) -> Option<Diagnosis> {
    let _ = (task, work_directory, facts);
    todo!()
}

/// The last `count` lines of what a task said, without control codes; empty where it said nothing.
pub fn log_tail(work_directory: &Path, count: usize) -> Vec<String> {
    let _ = (work_directory, count);
    todo!()
}
