//! What a hard kill leaves alive: tasks, containers and cluster jobs that work for an engine that is gone.
//!
//! They are known by the directory they work in, which is below that of the run and so no other run's. Call this only for
//! work that is claimed: then nobody else can be using it.

mod containers;
mod jobs;

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fcntl_lock};

use crate::nextflow;
use crate::rundir::RunDir;
use crate::ui::Ui;

/// How long an engine that has just been killed may take to be gone.
const DYING: Duration = Duration::from_secs(3);

/// What has been ended, and what could not be.
#[derive(Debug, Default)]
struct Account {
    ended: Vec<String>,
    /// Each names what may live on and how to end it.
    warnings: Vec<String>,
}

/// Ends all that works below `origin/work`, the work of the run at `origin` and of those that resumed it.
///
/// Says what it ended, and warns of what may live on where a container engine or the scheduler does not answer. Nothing is
/// ended while an engine is at work there, as when somebody runs `command.sh` by hand.
pub fn end(origin: &Path, ui: &Ui) {
    let deadline = Instant::now() + DYING;
    while has_engine(origin) {
        if Instant::now() > deadline {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut account = Account::default();
    let work = origin.join("work");
    let tasks = nextflow::end_orphans(&work);
    account.ended("ended", tasks, "task");
    containers::end(&work, &mut account);
    jobs::end(&work, &logs(origin), &mut account);
    for ended in &account.ended {
        ui.note(ended);
    }
    for warning in &account.warnings {
        ui.warn(warning);
    }
}

impl Account {
    fn ended(&mut self, verb: &str, count: usize, thing: &str) {
        match count {
            0 => {}
            1 => self.ended.push(format!("{verb} 1 {thing} that a killed run had left")),
            several => self.ended.push(format!("{verb} {several} {thing}s that a killed run had left")),
        }
    }
}

/// Whether a living engine holds the lock of a session whose task cache is below `origin`.
fn has_engine(origin: &Path) -> bool {
    let sessions = std::fs::read_dir(origin.join(".nextflow/cache")).into_iter().flatten().flatten();
    let mut locks = sessions.map(|session| session.path().join("db/LOCK"));
    locks.any(|lock| {
        let file = OpenOptions::new().read(true).write(true).open(lock);
        // The lock, if it is free, is given back when the file is closed.
        file.is_ok_and(|file| fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).is_err())
    })
}

/// The engine's logs of the run at `origin` and of the runs beside it that used its work.
fn logs(origin: &Path) -> Vec<PathBuf> {
    let beside = origin.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let uses = |run: &RunDir| {
        let record = run.record().ok();
        record.and_then(|record| record.origin).is_some_and(|used| real(&used) == real(origin))
    };
    beside
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| RunDir::open(&entry.path()).ok())
        .filter(uses)
        .map(|run| run.join("nextflow.log"))
        .chain([origin.join("nextflow.log")])
        .collect()
}

/// Whether something works below `work`, by whichever of its names.
fn is_below(directory: &Path, work: &Path) -> bool {
    directory.starts_with(work) || real(directory).starts_with(real(work))
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_another_run_is_not_below() {
        let work = Path::new("/w/runs/embed/a/work");
        assert!(is_below(Path::new("/w/runs/embed/a/work/12/3456"), work));
        assert!(!is_below(Path::new("/w/runs/embed/a/work2/12/3456"), work));
        assert!(!is_below(Path::new("/w/runs/embed/ab/work/12/3456"), work));
    }

    #[test]
    fn a_link_leads_to_the_same_work() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(place.join("real/work/12")).unwrap();
        std::os::unix::fs::symlink(place.join("real"), place.join("link")).unwrap();
        assert!(is_below(&place.join("real/work/12"), &place.join("link/work")));
        assert!(!is_below(&place.join("real"), &place.join("link/work")));
    }

    #[test]
    fn the_logs_of_resumed_runs_count() {
        let folder = tempfile::tempdir().unwrap();
        let run = |name: &str, origin: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            let record = serde_json::json!({
                "task": "embed", "status": "failed", "origin": folder.path().join(origin),
            });
            std::fs::write(path.join("run.json"), record.to_string()).unwrap();
        };
        run("first", "first");
        run("second", "first");
        run("other", "other");
        let mut found = logs(&folder.path().join("first"));
        found.sort();
        found.dedup();
        assert_eq!(found, ["first", "second"].map(|name| folder.path().join(name).join("nextflow.log")));
    }
}
