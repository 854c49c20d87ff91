//! Runs as they stand while they run: from their records, traces and logs, the directories of their tasks, and `/proc`.

mod expected;
mod facts;
mod forecast;
mod processes;
mod progress;
mod submitted;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

pub use facts::{Facts, Stage, Task};
pub use processes::Processes;

use crate::cost::work_directory;
use crate::rundir::{Record, RunDir, Status};
use crate::trace::{Follower, TaskRecord};
use submitted::{EngineLog, Submitted};

/// The runs that are running on this machine, newest first.
pub fn running(runs: &Path) -> Vec<(RunDir, Record)> {
    let runs = RunDir::list(runs).into_iter().filter_map(|run| {
        let record = run.record().ok()?;
        is_running(&record).then_some((run, record))
    });
    runs.collect()
}

/// Whether the process of the run was there when its record was read.
pub fn is_running(record: &Record) -> bool {
    record.pid.is_some() && matches!(record.status, Status::Running | Status::Planned)
}

/// One run, looked at again and again.
#[derive(Debug)]
pub struct Watch {
    run: RunDir,
    record: Record,
    trace: Follower,
    log: EngineLog,
    expected: Vec<(String, usize)>,
    ended: BTreeMap<Key, TaskRecord>,
    submitted: Vec<Submitted>,
}

/// What tells an attempt of a task from all others of a run.
type Key = (String, Option<String>, Option<u32>);

impl Watch {
    pub fn new(run: RunDir, record: Record) -> Watch {
        let trace = record.trace.clone().unwrap_or_else(|| run.join("trace.txt"));
        Watch {
            trace: Follower::new(trace),
            log: EngineLog::new(run.join("nextflow.log")),
            expected: expected::tasks(run.path()),
            run,
            record,
            ended: BTreeMap::new(),
            submitted: Vec::new(),
        }
    }

    pub fn run(&self) -> &RunDir {
        &self.run
    }

    /// Reads what the run has written since the last call; gives the tasks that have ended since.
    pub fn poll(&mut self) -> Vec<TaskRecord> {
        self.submitted.extend(self.log.poll());
        let mut new = Vec::new();
        for task in self.trace.poll().into_iter().filter(|task| !task.status.is_unfinished()) {
            let key = (task.task_id.clone(), task.hash.clone(), task.attempt);
            // A trace that is read again from its start tells nothing new of these.
            if self.ended.insert(key, task.clone()).is_none() {
                new.push(task);
            }
        }
        let ended: HashSet<&str> = self.ended.values().filter_map(|task| task.hash.as_deref()).collect();
        let mut seen = BTreeSet::new();
        self.submitted.retain(|task| !ended.contains(task.hash.as_str()) && seen.insert(task.hash.clone()));
        new
    }

    /// Where the tasks of the run work.
    fn work(&self) -> PathBuf {
        self.record.origin.as_deref().unwrap_or(self.run.path()).join("work")
    }

    /// The directory of a task that has not ended.
    fn directory(&self, task: &Submitted) -> Option<PathBuf> {
        work_directory(&task.hash, &self.work())
    }
}

#[cfg(test)]
mod tests;
