//! Jobs of SLURM, which stay in the queue when the engine that submitted them is killed.
//!
//! A job is ended only if the engine's log has its number and it works below the run's work: numbers come round again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Account, is_below};
use crate::ask::{PATIENCE, ask};

/// Cancels the jobs that the logs tell of and that work below `work`.
pub(super) fn end(work: &Path, logs: &[PathBuf], account: &mut Account) {
    let mut submitted = Submitted::default();
    for log in logs {
        if let Ok(bytes) = std::fs::read(log) {
            submitted.read(&String::from_utf8_lossy(&bytes));
        }
    }
    if submitted.open().is_empty() {
        return;
    }
    match cancel(work, &submitted) {
        Ok(count) => account.ended("cancelled", count, "job"),
        Err(reason) => account.warnings.push(warning(&submitted, &reason)),
    }
}

fn warning(submitted: &Submitted, reason: &str) -> String {
    let open = Vec::from_iter(submitted.open());
    let (noun, numbers) = (if open.len() == 1 { "job" } else { "jobs" }, open.join(", "));
    format!(
        "SLURM {noun} {numbers} of a killed run may still wait or run: {reason}; to see and cancel: `squeue -j {}`, \
         `scancel {}`",
        open.join(","),
        open.join(" ")
    )
}

/// The numbers of the jobs in logs of the engine; of a job array, its number.
#[derive(Debug, Default, PartialEq)]
struct Submitted {
    all: BTreeSet<String>,
    completed: BTreeSet<String>,
}

impl Submitted {
    fn read(&mut self, log: &str) {
        for line in log.lines() {
            if line.contains(" [SLURM] submitted ") {
                self.all.extend(number(line));
            } else if line.contains(" Task completed > ") {
                self.completed.extend(number(line));
            }
        }
    }

    /// Those that the engine has not seen end. The number of an array stands for all its tasks.
    fn open(&self) -> BTreeSet<&str> {
        self.all
            .difference(&self.completed)
            .map(|number| number.split('_').next().unwrap_or(number))
            .collect()
    }

    fn has(&self, job: &str) -> bool {
        self.all.iter().any(|number| number.split('_').next() == Some(job))
    }
}

/// The word after the last `jobId: `: a task's name, which comes before it, may hold anything.
fn number(line: &str) -> Option<String> {
    let (_, rest) = line.rsplit_once("jobId: ")?;
    let number = rest.split([';', ' ']).next()?;
    number.starts_with(|first: char| first.is_ascii_digit()).then(|| number.to_owned())
}

fn cancel(work: &Path, submitted: &Submitted) -> Result<usize, String> {
    let user = rustix::process::getuid().as_raw().to_string();
    let mut question = Command::new("squeue");
    question.args(["--noheader", "--user", &user, "--format", "%F %T %Z"]);
    // Defaults of the user's own that would hide jobs.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SQUEUE_")) {
        question.env_remove(name);
    }
    let queue = ask(&mut question, PATIENCE)?;
    let jobs = left(&queue, work, submitted);
    if !jobs.is_empty() {
        ask(Command::new("scancel").args(&jobs), PATIENCE)?;
    }
    Ok(jobs.len())
}

/// The jobs to end among those in the queue: lines of number, state and working directory.
fn left(queue: &str, work: &Path, submitted: &Submitted) -> BTreeSet<String> {
    let fields = |line: &str| -> Option<(String, String, PathBuf)> {
        let mut fields = line.trim_start().splitn(3, ' ');
        Some((fields.next()?.to_owned(), fields.next()?.to_owned(), fields.next()?.into()))
    };
    queue
        .lines()
        .filter_map(fields)
        .filter(|(job, state, place)| submitted.has(job) && state != "COMPLETING" && is_below(place, work))
        .map(|(job, ..)| job)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
Dec-02 23:17:55.279 [Task submitter] DEBUG nextflow.executor.GridTaskHandler - [SLURM] submitted process EMBED (a jobId: 9) > jobId: 3; workDir: /w/a/work/fb/41
Dec-02 23:17:55.299 [Task submitter] DEBUG nextflow.executor.GridTaskHandler - [SLURM] submitted process EMBED (b) > jobId: 4; workDir: /w/a/work/3d/9e
Dec-02 23:17:55.300 [Task submitter] DEBUG nextflow.executor.GridTaskHandler - [SLURM] submitted process EMBED (c) > jobId: 12_1; workDir: /w/a/work/3e/9e
Dec-02 23:18:02.860 [Task monitor] DEBUG n.processor.TaskPollingMonitor - Task completed > TaskHandler[jobId: 3; id: 1; name: EMBED (a); status: COMPLETED; exit: 0]
";

    fn submitted() -> Submitted {
        let mut submitted = Submitted::default();
        submitted.read(LOG);
        submitted
    }

    #[test]
    fn reads_what_was_submitted_and_what_ended() {
        let submitted = submitted();
        assert_eq!(submitted.all.iter().collect::<Vec<_>>(), ["12_1", "3", "4"]);
        assert_eq!(submitted.open().into_iter().collect::<Vec<_>>(), ["12", "4"]);
    }

    #[test]
    fn only_own_jobs_in_own_work_are_ended() {
        let queue = "3 RUNNING /w/a/work/fb/41\n4 PENDING /elsewhere\n12 RUNNING /w/a/work/3e/9e\n\
            12 PENDING /w/a/work/3e/9e\n77 RUNNING /w/a/work/3d/9e\n";
        let jobs = left(queue, Path::new("/w/a/work"), &submitted());
        assert_eq!(jobs.into_iter().collect::<Vec<_>>(), ["12", "3"]);
        let ending = "4 COMPLETING /w/a/work/3d/9e\n\nnonsense\n";
        assert!(left(ending, Path::new("/w/a/work"), &submitted()).is_empty());
        let spaced = "4 RUNNING /w w/a/work/3d/9e\n";
        assert_eq!(left(spaced, Path::new("/w w/a/work"), &submitted()).len(), 1);
    }

    #[test]
    fn a_scheduler_that_is_silent_is_a_warning_with_the_jobs_and_the_command() {
        let text = warning(&submitted(), "squeue was not found in PATH");
        assert!(text.contains("jobs 12, 4 ") && text.contains("`squeue -j 12,4`"), "{text}");
        assert!(text.ends_with("`scancel 12 4`"), "{text}");
    }
}
