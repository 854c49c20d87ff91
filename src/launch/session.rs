//! Nextflow's session of a run: which it is, and that only one process uses it.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::rundir::RunDir;

/// The engine's task cache, below the directory of the run that began the session.
pub const TASK_CACHE: &str = ".nextflow/cache";

/// Claims the session of the run at `origin` until the file is dropped or the process ends.
pub fn lock(origin: &Path) -> Result<File> {
    let path = origin.join(".lock");
    let file = File::create(&path).map_err(Error::io("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(Error::input(format_args!("run {} is in use by another process", origin.display()))
                .hint("wait for it to end; `scfoundry runs` shows what is running"))
        }
        Err(std::fs::TryLockError::Error(error)) => Err(Error::io("lock", &path)(error)),
    }
}

/// The directory that holds the work and the task cache of a run: that of the first run, where one resumed another.
///
/// # Errors
/// It is gone.
pub fn origin(run: &Path) -> Result<PathBuf> {
    let origin = RunDir::open(run)?.record()?.origin.unwrap_or_else(|| run.to_owned());
    if origin.is_dir() {
        return Ok(origin);
    }
    Err(Error::input(format_args!("run {} cannot be resumed", run.display()))
        .cause(format_args!("it used the work of {}, which has been removed", origin.display()))
        .hint("start it anew, without `--resume`"))
}

/// The session to resume for a run: the one it recorded, else the last that its engine began.
///
/// Nextflow takes a name that it does not know for the last session, so the name is never left to it.
pub fn of(run: &Path) -> Result<String> {
    let origin = origin(run)?;
    let begun = || last(&origin.join(".nextflow"));
    RunDir::open(run)?.record()?.session.or_else(begun).ok_or_else(|| {
        Error::input(format_args!("run {} cannot be resumed", run.display()))
            .cause("its engine had not begun a session")
            .hint("start it anew, without `--resume`")
    })
}

/// Whether tasks of the run can be reused: it has begun a session, and the engine still knows its tasks.
pub fn holds_tasks(run: &Path) -> bool {
    of(run).is_ok() && origin(run).is_ok_and(|origin| origin.join(TASK_CACHE).is_dir())
}

/// The last session in the engine's history.
pub fn last(cache: &Path) -> Option<String> {
    let history = std::fs::read_to_string(cache.join("history")).ok()?;
    // Tab-separated: time, duration, run name, status, revision, session, command.
    history.lines().rev().find_map(|line| line.split('\t').nth(5).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_last_session() {
        let folder = tempfile::tempdir().unwrap();
        let line = |session: &str| {
            format!("2026-12-02 10:00:00\t3.1s\tsad_hopper\tOK\tabc\t{session}\tnextflow run x\n")
        };
        std::fs::write(folder.path().join("history"), line("one") + &line("two")).unwrap();
        assert_eq!(last(folder.path()).as_deref(), Some("two"));
    }

    #[test]
    fn a_session_is_used_by_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        assert!(lock(folder.path()).unwrap_err().message.contains("in use"));
        drop(held);
        lock(folder.path()).unwrap();
    }
}
