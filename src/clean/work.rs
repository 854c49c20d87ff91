//! What of a run's directory only serves its tasks, and is of no use once they have done their work.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::remove::{delete, hide};
use super::select::is_link;
use crate::error::Result;
use crate::launch::TASK_CACHE;
use crate::rundir::RunDir;

/// The directories of a run that only serve its tasks, if its `work` is there and none is a symbolic link.
///
/// The task cache comes first: without the work it would know of tasks that are no more. The history of the sessions
/// beside it stays, without which the engine refuses to resume one.
pub(super) fn of_tasks(run: &Path) -> Vec<PathBuf> {
    let work = run.join("work");
    if !is_plain(&work) {
        return Vec::new();
    }
    let cache = run.join(TASK_CACHE);
    let cached = is_plain(&run.join(".nextflow")) && is_plain(&cache);
    cached.then_some(cache).into_iter().chain([work]).collect()
}

/// Removes what a run has left whose results are in place: the work and the task cache of `origin`, the run that it went on
/// from or itself, and what the pipeline has staged. Nothing goes of an origin that is no plain directory of `runs`.
///
/// `_claim` is the caller's claim of the origin, held meanwhile.
///
/// # Errors
/// Something cannot be removed. Part of it may be gone then; the rest has a hidden name and is tried again by the next
/// removal.
pub fn remove_served(run: &RunDir, origin: &Path, runs: &Path, _claim: &File) -> Result<()> {
    let mut served = if is_inside(origin, runs) { of_tasks(origin) } else { Vec::new() };
    served.extend(Some(run.join("outputs")).filter(|outputs| is_plain(outputs)));
    let mut outcome = Ok(());
    for path in served {
        let owner = if path.starts_with(origin) { origin } else { run.path() };
        let removed = hide(&path, owner).and_then(|hidden| delete(&hidden));
        // One that cannot go keeps none of the others; the first error is the one to tell.
        outcome = outcome.and(removed);
    }
    outcome
}

/// Whether the path is `<runs>/<task>/<name>` with no symbolic link on the way from `runs`.
fn is_inside(origin: &Path, runs: &Path) -> bool {
    let Some(task) = origin.parent() else { return false };
    let plain = [origin, task, runs].into_iter().all(is_plain);
    plain && task.parent().and_then(|runs| runs.canonicalize().ok()) == runs.canonicalize().ok()
}

fn is_plain(path: &Path) -> bool {
    path.is_dir() && !is_link(path)
}
