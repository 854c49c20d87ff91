//! The run directory: one folder a run, with all that went in and all that came out.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::{Error, Result};
use crate::method::Task;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Planned,
    Running,
    Ok,
    Failed,
    Interrupted,
    /// It was running, but its process is gone without a word.
    Lost,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Planned => "planned",
            Status::Running => "running",
            Status::Ok => "ok",
            Status::Failed => "failed",
            Status::Interrupted => "interrupted",
            Status::Lost => "lost",
        }
    }
}

/// A file that a run publishes: `staged` below the run directory's `outputs/`, then `path`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    pub staged: PathBuf,
    pub path: PathBuf,
}

/// What a good run was made from and what it made: what must be the same for it to stand for a later run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// SHA-256 of all that was decided and can change a result.
    pub decisions: String,
    /// In the order of [`Record::inputs`].
    pub inputs: Vec<InputState>,
    /// In the order of [`Record::outputs`].
    pub outputs: Vec<OutputState>,
}

/// By what Nextflow, too, tells a changed input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputState {
    pub bytes: u64,
    /// Nanoseconds since 1970.
    pub modified_ns: i64,
}

/// A result as it was put in place, a file or a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputState {
    pub bytes: u64,
    pub sha256: String,
}

/// A card that a run had to itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// As `nvidia-smi` numbered it.
    pub index: u32,
    #[serde(default)]
    pub uuid: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
}

/// The record of a run, `run.json`. Records of the known Python command have the first fields only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub task: String,
    #[serde(default)]
    pub method: Option<String>,
    #[serde(default)]
    pub input: Option<String>,
    #[serde(default)]
    pub workspace: Option<PathBuf>,
    #[serde(default)]
    pub started: Option<String>,
    #[serde(default)]
    pub finished: Option<String>,
    #[serde(default)]
    pub exit_code: Option<i32>,
    pub status: Status,
    #[serde(default)]
    pub scfoundry: Option<String>,
    /// Absolute paths of the inputs, in order: what `--resume` compares.
    #[serde(default)]
    pub inputs: Vec<PathBuf>,
    #[serde(default)]
    pub outputs: Vec<Output>,
    /// Directory of the run whose work and task cache this run uses: its own, unless it resumed another.
    #[serde(default)]
    pub origin: Option<PathBuf>,
    /// Nextflow's session, known once it has begun.
    #[serde(default)]
    pub session: Option<String>,
    #[serde(default)]
    pub trace: Option<PathBuf>,
    /// The work that it uses stays when it has gone well, and when a run that goes on from it has.
    #[serde(default)]
    pub keep_work: bool,
    /// Our process, and when it started (clock ticks since boot), so that a recycled number is not taken for it.
    #[serde(default)]
    pub pid: Option<u32>,
    #[serde(default)]
    pub pid_started: Option<u64>,
    /// The cards of this machine that its tasks used.
    #[serde(default)]
    pub cards: Vec<Card>,
    #[serde(default)]
    pub message: Option<String>,
    /// Of a run whose results are all in place.
    #[serde(default)]
    pub completion: Option<Completion>,
}

/// An existing run directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes a new directory `<runs>/<task>/<stem>`, with `-2`, `-3`, … where the name is taken.
    ///
    /// The name is claimed by creating the directory, so runs started in the same second get one each.
    pub fn create(runs: &Path, task: Task, stem: &str) -> Result<RunDir> {
        let parent = runs.join(task.name());
        fs::create_dir_all(&parent).map_err(Error::io("create", &parent))?;
        let mut number = 1u32;
        loop {
            let name = if number == 1 { stem.to_owned() } else { format!("{stem}-{number}") };
            let path = parent.join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(RunDir { path }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                // `clean` has just removed the folder, which was empty.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    fs::create_dir_all(&parent).map_err(Error::io("create", &parent))?;
                }
                Err(error) => return Err(Error::io("create", &path)(error)),
            }
        }
    }

    /// The directory at `path`, which must hold a `run.json`.
    pub fn open(path: &Path) -> Result<RunDir> {
        if !path.join("run.json").is_file() {
            return Err(Error::input(format_args!("{} is not a run directory", path.display()))
                .cause("it has no run.json")
                .hint("`scfoundry runs` lists the runs of the workspace"));
        }
        let path = std::path::absolute(path).map_err(Error::io("resolve", path))?;
        Ok(RunDir { path })
    }

    /// All runs below `runs`, newest first; hidden directories are none: they are being removed.
    pub fn list(runs: &Path) -> Vec<RunDir> {
        let mut found: Vec<RunDir> = Task::ALL
            .iter()
            .filter_map(|task| fs::read_dir(runs.join(task.name())).ok())
            .flatten()
            .filter_map(|entry| entry.ok())
            .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
            .filter_map(|entry| RunDir::open(&entry.path()).ok())
            .collect();
        found.sort_by_cached_key(|run| std::cmp::Reverse(run.order()));
        found
    }

    /// Newest first: by the time of the directory's record, then by name.
    fn order(&self) -> (Option<String>, String) {
        (self.record().ok().and_then(|record| record.started), self.name())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file of the run, whole or not at all.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<()> {
        let path = self.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        }
        atomic::write(&path, contents)
    }

    /// The record, with `running` turned into `lost` where the process is gone.
    pub fn record(&self) -> Result<Record> {
        let path = self.join("run.json");
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let mut record: Record = serde_json::from_str(&text).map_err(|error| {
            Error::input(format_args!("{} is not a run record", path.display())).cause(error)
        })?;
        let unfinished = matches!(record.status, Status::Running | Status::Planned);
        if unfinished && record.pid.is_some_and(|pid| record.pid_started != process_started(pid)) {
            record.status = Status::Lost;
        }
        Ok(record)
    }

    pub fn save(&self, record: &Record) -> Result<()> {
        let text = serde_json::to_string_pretty(record)
            .map_err(|error| Error::failed("cannot write the run record").cause(error))?;
        self.write("run.json", format!("{text}\n").as_bytes())
    }

    /// Removes the directory of a run that never began.
    pub fn discard(self) {
        // Nothing of value is in it; what cannot be removed is listed as `planned`.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// When process `pid` started, in clock ticks since boot; `None` when there is no such process.
pub fn process_started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name is in parentheses and may hold anything, so fields are counted after the last one.
    let fields = &stat[stat.rfind(')')? + 2..];
    if fields.starts_with('Z') {
        return None;
    }
    fields.split(' ').nth(19)?.parse().ok()
}

/// The present moment as records write it.
pub fn now() -> String {
    format!("{:.0}", Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_runs_at_once_get_a_hundred_directories() {
        let folder = tempfile::tempdir().unwrap();
        let names: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..100)
                .map(|_| scope.spawn(|| RunDir::create(folder.path(), Task::Embed, "same").unwrap().name()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(names.len(), 100);
    }

    #[test]
    fn a_run_whose_process_is_gone_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path(), Task::Embed, "x").unwrap();
        let mut record: Record = serde_json::from_str(r#"{"task": "embed", "status": "running"}"#).unwrap();
        record.pid = Some(std::process::id());
        record.pid_started = process_started(std::process::id());
        run.save(&record).unwrap();
        assert_eq!(run.record().unwrap().status, Status::Running);
        record.pid_started = Some(1);
        run.save(&record).unwrap();
        assert_eq!(run.record().unwrap().status, Status::Lost);
    }

    #[test]
    fn reads_a_record_of_the_python_command() {
        let text = r#"{"task": "embed", "method": "scgpt", "input": "a.h5ad", "workspace": "/w",
            "started": "2026-01-01T00:00:00", "finished": null, "exit_code": 0, "status": "ok"}"#;
        let record: Record = serde_json::from_str(text).unwrap();
        assert_eq!((record.status, record.exit_code), (Status::Ok, Some(0)));
    }
}
