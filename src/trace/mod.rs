//! Nextflow's `trace.txt`, ours and foreign: typed records, found by column name.
//!
//! An absent number (`-`) stays absent: it is never zero. What cannot be understood is left out and said in
//! [`Trace::notes`]; only a file that is no trace at all is an error.

mod columns;
mod follow;
mod read;
pub mod units;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use follow::Follower;
pub use read::{parse, read};

/// A trace as read: the tasks in the order of the file, and what was left out of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trace {
    pub path: PathBuf,
    pub tasks: Vec<TaskRecord>,
    /// What a reader of the numbers must know (empty file, cut or broken rows, repeated rows); each one sentence.
    pub notes: Vec<String>,
}

impl Trace {
    /// The directory the trace lies in.
    pub fn directory(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }
}

/// What became of a task, in Nextflow's words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Status {
    New,
    Submitted,
    Running,
    Completed,
    Failed,
    Aborted,
    /// Taken over from an earlier run: its numbers are those of that run.
    Cached,
    Unknown(String),
}

const KNOWN: [(&str, Status); 7] = [
    ("COMPLETED", Status::Completed),
    ("CACHED", Status::Cached),
    ("FAILED", Status::Failed),
    ("ABORTED", Status::Aborted),
    ("NEW", Status::New),
    ("SUBMITTED", Status::Submitted),
    ("RUNNING", Status::Running),
];

impl Status {
    /// Reads the word of the `status` column, whatever its case.
    pub fn parse(text: &str) -> Status {
        let text = text.trim();
        let known = KNOWN.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
        known.map_or_else(|| Status::Unknown(text.to_owned()), |(_, status)| status.clone())
    }

    /// Whether the task was still waiting or running when the row was written.
    pub fn is_unfinished(&self) -> bool {
        matches!(self, Status::New | Status::Submitted | Status::Running)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Status::New => "NEW",
            Status::Submitted => "SUBMITTED",
            Status::Running => "RUNNING",
            Status::Completed => "COMPLETED",
            Status::Failed => "FAILED",
            Status::Aborted => "ABORTED",
            Status::Cached => "CACHED",
            Status::Unknown(word) => word,
        })
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Status, D::Error> {
        String::deserialize(deserializer).map(|word| Status::parse(&word))
    }
}

/// One row of a trace: one attempt of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskRecord {
    pub task_id: String,
    /// The first digits of the work directory: `7e/e97eb7`.
    pub hash: Option<String>,
    pub native_id: Option<String>,
    pub process: Option<String>,
    pub tag: Option<String>,
    /// `PROCESS (tag)`.
    pub name: String,
    pub status: Status,
    pub exit: Option<i32>,
    pub attempt: Option<u32>,
    /// Milliseconds since 1970, as are `start_ms` and `complete_ms`.
    pub submit_ms: Option<i64>,
    pub start_ms: Option<i64>,
    pub complete_ms: Option<i64>,
    /// Submission to completion, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Start to completion, in milliseconds.
    pub realtime_ms: Option<u64>,
    /// 100 is one core busy for all of `realtime_ms`.
    pub cpu_percent: Option<f64>,
    /// Share of the machine's memory.
    pub memory_percent: Option<f64>,
    pub rss_bytes: Option<u64>,
    pub peak_rss_bytes: Option<u64>,
    pub peak_vmem_bytes: Option<u64>,
    /// Bytes asked for by read calls, from the disk or its cache.
    pub rchar_bytes: Option<u64>,
    pub wchar_bytes: Option<u64>,
    /// Bytes that came from the disk.
    pub read_bytes: Option<u64>,
    pub write_bytes: Option<u64>,
    /// Cores asked for.
    pub cpus: Option<u32>,
    /// Memory asked for.
    pub memory_bytes: Option<u64>,
    /// Time limit asked for.
    pub time_ms: Option<u64>,
    pub queue: Option<String>,
    pub container: Option<String>,
    pub workdir: Option<PathBuf>,
    pub hostname: Option<String>,
}

impl TaskRecord {
    /// A record of which nothing is known but its identity.
    pub fn new(task_id: impl Into<String>, name: impl Into<String>, status: Status) -> TaskRecord {
        TaskRecord {
            task_id: task_id.into(),
            name: name.into(),
            status,
            hash: None,
            native_id: None,
            process: None,
            tag: None,
            exit: None,
            attempt: None,
            submit_ms: None,
            start_ms: None,
            complete_ms: None,
            duration_ms: None,
            realtime_ms: None,
            cpu_percent: None,
            memory_percent: None,
            rss_bytes: None,
            peak_rss_bytes: None,
            peak_vmem_bytes: None,
            rchar_bytes: None,
            wchar_bytes: None,
            read_bytes: None,
            write_bytes: None,
            cpus: None,
            memory_bytes: None,
            time_ms: None,
            queue: None,
            container: None,
            workdir: None,
            hostname: None,
        }
    }

    /// Time at work in milliseconds: `realtime`, else start to completion.
    pub fn wall_ms(&self) -> Option<u64> {
        self.realtime_ms.or_else(|| elapsed(self.start_ms?, self.complete_ms?))
    }

    /// Time between submission and start in milliseconds; without a start, `duration` less `realtime`.
    pub fn queue_ms(&self) -> Option<u64> {
        match (self.submit_ms, self.start_ms) {
            (Some(submit), Some(start)) => elapsed(submit, start),
            _ => self.duration_ms?.checked_sub(self.realtime_ms?),
        }
    }

    /// CPU time in milliseconds: `%cpu` of `realtime`.
    pub fn cpu_time_ms(&self) -> Option<u64> {
        Some((self.wall_ms()? as f64 * self.cpu_percent? / 100.0).round() as u64)
    }

    /// When the task ended, in milliseconds since 1970: `complete`, else `submit` plus `duration`.
    pub fn end_ms(&self) -> Option<i64> {
        self.complete_ms.or_else(|| self.submit_ms?.checked_add(i64::try_from(self.duration_ms?).ok()?))
    }

    /// The name of its process, also where the trace has no column for it.
    pub fn process_name(&self) -> &str {
        self.process.as_deref().unwrap_or_else(|| process_and_tag(&self.name).0)
    }

    /// How it ended, as one line: `EMBED (pbmc) done in 12.3 s`.
    pub fn told_end(&self) -> String {
        let time = self.wall_ms().map_or(String::new(), |ms| format!(" in {}", units::format_duration(ms)));
        match &self.status {
            Status::Completed => format!("{} done{time}", self.name),
            Status::Cached => format!("{} reused from an earlier run", self.name),
            status => {
                let exit = self.exit.map_or(String::new(), |exit| format!(", exit {exit}"));
                format!("{} {}{exit}", self.name, status.to_string().to_lowercase())
            }
        }
    }
}

/// `EMBED` and `pbmc` of `EMBED (pbmc)`: the process of a task, and its tag if it has one.
pub fn process_and_tag(name: &str) -> (&str, Option<&str>) {
    match name.split_once(" (") {
        Some((process, tag)) => (process, tag.strip_suffix(')')),
        None => (name, None),
    }
}

fn elapsed(from: i64, to: i64) -> Option<u64> {
    u64::try_from(to.checked_sub(from)?).ok()
}

#[cfg(test)]
mod tests;
