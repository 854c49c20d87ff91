//! The header of a trace, and one row read by it.

use std::path::PathBuf;
use std::str::FromStr;

use super::units::{parse_date, parse_duration, parse_memory, parse_percent};
use super::{Status, TaskRecord};

/// Nextflow writes tabs; `trace.sep` may say otherwise.
const SEPARATORS: [char; 4] = ['\t', ',', ';', '|'];

/// What Nextflow writes as the exit code of a task that has none.
const NO_EXIT: i32 = i32::MAX;

/// The columns of one trace, in the order of its header.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Columns {
    separator: char,
    names: Vec<String>,
}

/// A value that was there but could not be understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Misread {
    pub column: String,
    pub value: String,
}

/// Why a row gives no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejected {
    /// A tab or a newline inside a value moved the others: the row cannot be trusted.
    Width { found: usize },
    /// The row does not say which task it is about.
    Anonymous,
}

impl Columns {
    /// Reads a header line. The error holds the names of the columns that a trace must have and this line has not.
    pub fn parse(line: &str) -> Result<Columns, Vec<&'static str>> {
        let mut fewest = vec!["task_id", "name", "status"];
        for separator in SEPARATORS {
            let columns = Columns {
                separator,
                names: line.split(separator).map(|name| name.trim().to_owned()).collect(),
            };
            let missing = columns.missing();
            if missing.is_empty() {
                return Ok(columns);
            }
            if missing.len() < fewest.len() {
                fewest = missing;
            }
        }
        Err(fewest)
    }

    fn missing(&self) -> Vec<&'static str> {
        let has = |wanted: &str| self.names.iter().any(|name| name == wanted);
        let mut missing = Vec::new();
        if !has("task_id") && !has("hash") {
            missing.push("task_id");
        }
        if !has("name") && !has("process") {
            missing.push("name");
        }
        if !has("status") {
            missing.push("status");
        }
        missing
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn last(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// How many values a line holds.
    pub fn width_of(&self, line: &str) -> usize {
        line.split(self.separator).count()
    }

    /// The line with its last value taken out; `None` where the last value is whole by itself.
    ///
    /// A known status word is: nothing shorter is one.
    pub fn without_last_value(&self, line: &str) -> Option<String> {
        let (head, last) = line.rsplit_once(self.separator)?;
        let whole = matches!(last.trim(), "" | "-")
            || (self.last() == "status" && !matches!(Status::parse(last), Status::Unknown(_)));
        (!whole).then(|| format!("{head}{}-", self.separator))
    }

    /// Reads one row; values that are there but not understood are absent in the record and listed beside it.
    pub fn record(&self, line: &str) -> Result<(TaskRecord, Vec<Misread>), Rejected> {
        let values: Vec<&str> = line.split(self.separator).map(str::trim).collect();
        if values.len() != self.names.len() {
            return Err(Rejected::Width { found: values.len() });
        }
        let mut row = Row { columns: self, values, misread: Vec::new() };
        let record = row.record().ok_or(Rejected::Anonymous)?;
        Ok((record, row.misread))
    }
}

struct Row<'a> {
    columns: &'a Columns,
    values: Vec<&'a str>,
    misread: Vec<Misread>,
}

impl<'a> Row<'a> {
    /// The value of a column; `-` and its kin are absent.
    fn value(&self, column: &str) -> Option<&'a str> {
        let at = self.columns.names.iter().position(|name| name == column)?;
        let value = *self.values.get(at)?;
        (!matches!(value, "" | "-" | "null")).then_some(value)
    }

    fn text(&self, column: &str) -> Option<String> {
        self.value(column).map(str::to_owned)
    }

    fn read<T>(&mut self, column: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let value = self.value(column)?;
        let parsed = parse(value);
        if parsed.is_none() {
            self.misread.push(Misread { column: column.to_owned(), value: value.to_owned() });
        }
        parsed
    }

    fn record(&mut self) -> Option<TaskRecord> {
        let hash = self.text("hash");
        let process = self.text("process");
        let tag = self.text("tag");
        let task_id = self.text("task_id").or_else(|| hash.clone())?;
        let name = self.text("name").or_else(|| {
            let process = process.as_deref()?;
            Some(tag.as_deref().map_or_else(|| process.to_owned(), |tag| format!("{process} ({tag})")))
        })?;
        let status = Status::parse(self.value("status")?);
        let record = TaskRecord {
            task_id,
            hash,
            native_id: self.text("native_id"),
            process,
            tag,
            name,
            status,
            exit: self.read("exit", whole::<i32>).filter(|&code| code != NO_EXIT),
            attempt: self.read("attempt", whole),
            submit_ms: self.read("submit", parse_date),
            start_ms: self.read("start", parse_date),
            complete_ms: self.read("complete", parse_date),
            duration_ms: self.read("duration", parse_duration),
            realtime_ms: self.read("realtime", parse_duration),
            cpu_percent: self.read("%cpu", parse_percent),
            memory_percent: self.read("%mem", parse_percent),
            rss_bytes: self.read("rss", parse_memory),
            peak_rss_bytes: self.read("peak_rss", parse_memory),
            peak_vmem_bytes: self.read("peak_vmem", parse_memory),
            rchar_bytes: self.read("rchar", parse_memory),
            wchar_bytes: self.read("wchar", parse_memory),
            read_bytes: self.read("read_bytes", parse_memory),
            write_bytes: self.read("write_bytes", parse_memory),
            cpus: self.read("cpus", whole),
            memory_bytes: self.read("memory", parse_memory),
            time_ms: self.read("time", parse_duration),
            queue: self.text("queue"),
            container: self.text("container"),
            workdir: self.text("workdir").map(PathBuf::from),
            hostname: self.text("hostname"),
        };
        let refused = record.start_ms == Some(0) && record.complete_ms > Some(YEAR_MS);
        Some(if refused { never_started(record) } else { record })
    }
}

/// No task runs that long: a time beyond it is counted from 1970.
const YEAR_MS: i64 = 365 * 24 * 3_600_000;

/// A task that a scheduler refused: its times are counted from 1970 and mean nothing.
fn never_started(record: TaskRecord) -> TaskRecord {
    let submit_ms = record.submit_ms.filter(|&date| date != 0);
    TaskRecord { submit_ms, start_ms: None, duration_ms: None, realtime_ms: None, ..record }
}

fn whole<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}
