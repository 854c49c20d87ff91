//! What is known of a running run at one moment.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::forecast::{self, Running, Work};
use super::submitted::Submitted;
use super::{Processes, Watch, progress};
use crate::plan::Feed;
use crate::samples;
use crate::trace::{Status, TaskRecord, process_and_tag};

/// A running run. What is not known is absent, and `null` in JSON.
#[derive(Debug, Clone, Serialize)]
pub struct Facts {
    pub name: String,
    pub path: PathBuf,
    pub task: String,
    pub method: Option<String>,
    pub started: Option<Timestamp>,
    pub elapsed_ms: Option<u64>,
    /// When it is done if it goes on as it went.
    pub forecast_end: Option<Timestamp>,
    /// Resident memory of the processes that work for it on this machine, now.
    pub rss_bytes: Option<u64>,
    /// In use on the cards of its tasks, at their newest samples.
    pub gpu_bytes: Option<u64>,
    /// In the order they work.
    pub stages: Vec<Stage>,
    /// Tasks that run or wait for their turn.
    pub tasks: Vec<Task>,
}

/// The tasks of one process.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stage {
    pub process: String,
    /// How many there will be.
    pub expected: Option<usize>,
    /// Completed here, or taken over from an earlier run.
    pub done: usize,
    pub running: usize,
    /// Submitted, and not begun.
    pub waiting: usize,
    /// Attempts that failed or were aborted.
    pub failed: usize,
    /// Time at work so far, of ended and running tasks, in milliseconds; not of those taken over.
    pub wall_ms: u64,
    /// The largest of those that ended.
    pub peak_rss_bytes: Option<u64>,
}

/// A task that has not ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Task {
    pub name: String,
    pub process: String,
    pub hash: String,
    /// Absent while it waits.
    pub elapsed_ms: Option<u64>,
    pub cells_done: Option<u64>,
    pub cells: Option<u64>,
    /// What it says it is at.
    pub part: Option<String>,
    pub gpu_bytes: Option<u64>,
}

impl Facts {
    /// Completed tasks, and how many there will be where that is known of all processes.
    pub fn done(&self) -> (usize, Option<usize>) {
        let expected = self.stages.iter().map(|stage| stage.expected).sum();
        (self.stages.iter().map(|stage| stage.done).sum(), expected)
    }

    /// Cells that are done and all cells, of the running tasks that tell.
    pub fn cells(&self) -> Option<(u64, u64)> {
        let told = self.tasks.iter().filter_map(|task| Some((task.cells_done?, task.cells?)));
        told.reduce(|sum, cells| (sum.0 + cells.0, sum.1 + cells.1))
    }

    /// The processes that are at work, with what one of their tasks says it is at.
    pub fn stage(&self) -> Option<String> {
        let active: Vec<String> =
            self.stages.iter().filter(|stage| stage.running > 0).map(described).collect();
        let part = self.tasks.iter().find_map(|task| task.part.as_deref());
        match (active.as_slice(), part) {
            ([], _) => self
                .stages
                .iter()
                .find(|stage| stage.waiting > 0)
                .map(|stage| format!("{}, {} waiting", stage.process, stage.waiting)),
            ([one], Some(part)) => Some(format!("{one}: {part}")),
            (several, _) => Some(several.join(", ")),
        }
    }
}

fn described(stage: &Stage) -> String {
    match stage.running {
        1 => stage.process.clone(),
        several => format!("{} x{several}", stage.process),
    }
}

impl Watch {
    /// What was known at the last [`Watch::poll`], with the tasks and processes as they are `now`.
    pub fn facts(&self, now: Timestamp, processes: &Processes) -> Facts {
        let tasks: Vec<Task> = self.submitted.iter().map(|task| self.task(task, now)).collect();
        let stages = self.stages(&tasks);
        let started: Option<Timestamp> = self.record.started.as_deref().and_then(|text| text.parse().ok());
        let gpu_bytes = tasks.iter().filter_map(|task| task.gpu_bytes).reduce(|sum, bytes| sum + bytes);
        Facts {
            name: self.run.name(),
            path: self.run.path().to_owned(),
            task: self.record.task.clone(),
            method: self.record.method.clone(),
            started,
            elapsed_ms: started.and_then(|started| since(now, started.as_millisecond())),
            forecast_end: self.forecast(&stages, &tasks, now),
            rss_bytes: processes.resident_below(&self.work()),
            gpu_bytes,
            stages,
            tasks,
        }
    }

    fn task(&self, submitted: &Submitted, now: Timestamp) -> Task {
        let process = process_and_tag(&submitted.name).0.to_owned();
        let directory = self.directory(submitted);
        // The task's own script writes this file first.
        let begun = directory.as_ref().and_then(|directory| directory.join(".command.begin").metadata().ok());
        let begun = begun.and_then(|file| file.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        let elapsed_ms = begun.map(|begun| since(now, begun.as_millis() as i64).unwrap_or(0));
        let at_work = directory.as_deref().filter(|_| elapsed_ms.is_some());
        let progress = at_work.map(|place| progress::read(place, &process)).unwrap_or_default();
        Task {
            name: submitted.name.clone(),
            hash: submitted.hash.clone(),
            elapsed_ms,
            cells_done: progress.cells.map(|(done, _)| done),
            cells: progress.cells.map(|(_, all)| all),
            part: progress.part,
            gpu_bytes: at_work.and_then(samples::read).and_then(|samples| samples.newest_bytes),
            process,
        }
    }

    fn stages(&self, tasks: &[Task]) -> Vec<Stage> {
        let expected = self.expected.iter().map(|(process, count)| Stage {
            process: process.clone(),
            expected: Some(*count),
            ..Stage::default()
        });
        let mut stages: Vec<Stage> = expected.collect();
        for task in self.ended.values() {
            stage(&mut stages, task.process_name()).end(task);
        }
        for task in tasks {
            let stage = stage(&mut stages, &task.process);
            match task.elapsed_ms {
                Some(elapsed) => {
                    stage.running += 1;
                    stage.wall_ms += elapsed;
                }
                None => stage.waiting += 1,
            }
        }
        stages
    }

    fn forecast(&self, stages: &[Stage], tasks: &[Task], now: Timestamp) -> Option<Timestamp> {
        let mut work = Vec::new();
        for stage in stages.iter().filter(|stage| Feed::of(&stage.process) != Feed::Joined) {
            let completed = self
                .ended
                .values()
                .filter(|task| task.status == Status::Completed && task.process_name() == stage.process);
            let running = tasks.iter().filter(|task| task.process == stage.process).filter_map(|task| {
                let share = task.cells_done.zip(task.cells).map(|(done, all)| done as f64 / all as f64);
                Some(Running { elapsed_ms: task.elapsed_ms?, done: share })
            });
            work.push(Work {
                waiting: stage.expected?.saturating_sub(stage.done + stage.running),
                took_ms: completed.filter_map(TaskRecord::wall_ms).collect(),
                running: running.collect(),
            });
        }
        let left = i64::try_from(forecast::remaining_ms(&work)?).ok()?;
        now.checked_add(SignedDuration::from_millis(left)).ok()
    }
}

impl Stage {
    /// Counts a task that has ended.
    fn end(&mut self, task: &TaskRecord) {
        match task.status {
            Status::Completed | Status::Cached => self.done += 1,
            _ => self.failed += 1,
        }
        if task.status != Status::Cached {
            self.wall_ms += task.wall_ms().unwrap_or(0);
            self.peak_rss_bytes = self.peak_rss_bytes.max(task.peak_rss_bytes);
        }
    }
}

fn stage<'a>(stages: &'a mut Vec<Stage>, process: &str) -> &'a mut Stage {
    let at = stages.iter().position(|stage| stage.process == process).unwrap_or_else(|| {
        stages.push(Stage { process: process.to_owned(), ..Stage::default() });
        stages.len() - 1
    });
    &mut stages[at]
}

/// Milliseconds from a moment until now.
fn since(now: Timestamp, milliseconds: i64) -> Option<u64> {
    u64::try_from(now.as_millisecond() - milliseconds).ok()
}
