//! The header of a trace, and one row read by it.

use std::path::PathBuf;
use std::str::FromStr;

use super::units::{parse_date, parse_duration, parse_memory, parse_percent};
use super::{Status, TaskRecord};

/// Nextflow writes tabs; `trace.sep` may say otherwise.
const SEPARATORS: [char; 4] = ['\t', ',', ';', '|'];

/// What Nextflow writes as the exit code of a task that has none.
const NO_EXIT: i32 = i32::MAX;

/// The columns that a record is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    TaskId,
    Hash,
    NativeId,
    Process,
    Tag,
    Name,
    Status,
    Exit,
    Attempt,
    Submit,
    Start,
    Complete,
    Duration,
    Realtime,
    CpuPercent,
    MemoryPercent,
    Rss,
    PeakRss,
    PeakVmem,
    Rchar,
    Wchar,
    ReadBytes,
    WriteBytes,
    Cpus,
    Memory,
    Time,
    Queue,
    Container,
    Workdir,
    Hostname,
}

/// The fields with their names in a header, each at the place of its number.
const FIELDS: [(Field, &str); 30] = [
    (Field::TaskId, "task_id"),
    (Field::Hash, "hash"),
    (Field::NativeId, "native_id"),
    (Field::Process, "process"),
    (Field::Tag, "tag"),
    (Field::Name, "name"),
    (Field::Status, "status"),
    (Field::Exit, "exit"),
    (Field::Attempt, "attempt"),
    (Field::Submit, "submit"),
    (Field::Start, "start"),
    (Field::Complete, "complete"),
    (Field::Duration, "duration"),
    (Field::Realtime, "realtime"),
    (Field::CpuPercent, "%cpu"),
    (Field::MemoryPercent, "%mem"),
    (Field::Rss, "rss"),
    (Field::PeakRss, "peak_rss"),
    (Field::PeakVmem, "peak_vmem"),
    (Field::Rchar, "rchar"),
    (Field::Wchar, "wchar"),
    (Field::ReadBytes, "read_bytes"),
    (Field::WriteBytes, "write_bytes"),
    (Field::Cpus, "cpus"),
    (Field::Memory, "memory"),
    (Field::Time, "time"),
    (Field::Queue, "queue"),
    (Field::Container, "container"),
    (Field::Workdir, "workdir"),
    (Field::Hostname, "hostname"),
];

impl Field {
    fn name(self) -> &'static str {
        FIELDS[self as usize].1
    }
}

/// The columns of one trace, in the order of its header.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Columns {
    separator: char,
    names: Vec<String>,
    /// The field that each column holds; `None` where it is none of ours, or stood further left already.
    fields: Vec<Option<Field>>,
}

/// A value that was there but could not be understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Misread {
    pub column: &'static str,
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

/// What one line gives: its record, with the values that were not understood.
pub(super) type Row = Result<(TaskRecord, Vec<Misread>), Rejected>;

impl Columns {
    /// Reads a header line. The error holds the names of the columns that a trace must have and this line has not.
    pub fn parse(line: &str) -> Result<Columns, Vec<&'static str>> {
        let mut fewest = vec!["task_id", "name", "status"];
        for separator in SEPARATORS {
            let names: Vec<String> = line.split(separator).map(|name| name.trim().to_owned()).collect();
            let columns = Columns { separator, fields: fields(&names), names };
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
    pub fn record(&self, line: &str) -> Row {
        let mut row = Values { of: [None; FIELDS.len()], misread: Vec::new() };
        let mut found = 0;
        for value in line.split(self.separator) {
            if let Some(Some(field)) = self.fields.get(found) {
                row.of[*field as usize] = present(value.trim());
            }
            found += 1;
        }
        if found != self.names.len() {
            return Err(Rejected::Width { found });
        }
        let record = row.record().ok_or(Rejected::Anonymous)?;
        Ok((record, row.misread))
    }
}

/// The field of each column of a header: of columns with one name the first.
fn fields(names: &[String]) -> Vec<Option<Field>> {
    let field = |(at, name): (usize, &String)| {
        let (field, _) = FIELDS.iter().find(|(_, known)| known == name)?;
        (!names[..at].contains(name)).then_some(*field)
    };
    names.iter().enumerate().map(field).collect()
}

/// A value; `-` and its kin are absent.
fn present(value: &str) -> Option<&str> {
    (!matches!(value, "" | "-" | "null")).then_some(value)
}

/// The values of one line, each at the number of its field.
struct Values<'a> {
    of: [Option<&'a str>; FIELDS.len()],
    misread: Vec<Misread>,
}

impl<'a> Values<'a> {
    fn value(&self, field: Field) -> Option<&'a str> {
        self.of[field as usize]
    }

    fn text(&self, field: Field) -> Option<String> {
        self.value(field).map(str::to_owned)
    }

    fn read<T>(&mut self, field: Field, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let value = self.value(field)?;
        let parsed = parse(value);
        if parsed.is_none() {
            self.misread.push(Misread { column: field.name(), value: value.to_owned() });
        }
        parsed
    }

    fn record(&mut self) -> Option<TaskRecord> {
        let hash = self.text(Field::Hash);
        let process = self.text(Field::Process);
        let tag = self.text(Field::Tag);
        let task_id = self.text(Field::TaskId).or_else(|| hash.clone())?;
        let name = self.text(Field::Name).or_else(|| {
            let process = process.as_deref()?;
            Some(tag.as_deref().map_or_else(|| process.to_owned(), |tag| format!("{process} ({tag})")))
        })?;
        let status = Status::parse(self.value(Field::Status)?);
        let record = TaskRecord {
            task_id,
            hash,
            native_id: self.text(Field::NativeId),
            process,
            tag,
            name,
            status,
            exit: self.read(Field::Exit, whole::<i32>).filter(|&code| code != NO_EXIT),
            attempt: self.read(Field::Attempt, whole),
            submit_ms: self.read(Field::Submit, parse_date),
            start_ms: self.read(Field::Start, parse_date),
            complete_ms: self.read(Field::Complete, parse_date),
            duration_ms: self.read(Field::Duration, parse_duration),
            realtime_ms: self.read(Field::Realtime, parse_duration),
            cpu_percent: self.read(Field::CpuPercent, parse_percent),
            memory_percent: self.read(Field::MemoryPercent, parse_percent),
            rss_bytes: self.read(Field::Rss, parse_memory),
            peak_rss_bytes: self.read(Field::PeakRss, parse_memory),
            peak_vmem_bytes: self.read(Field::PeakVmem, parse_memory),
            rchar_bytes: self.read(Field::Rchar, parse_memory),
            wchar_bytes: self.read(Field::Wchar, parse_memory),
            read_bytes: self.read(Field::ReadBytes, parse_memory),
            write_bytes: self.read(Field::WriteBytes, parse_memory),
            cpus: self.read(Field::Cpus, whole),
            memory_bytes: self.read(Field::Memory, parse_memory),
            time_ms: self.read(Field::Time, parse_duration),
            queue: self.text(Field::Queue),
            container: self.text(Field::Container),
            workdir: self.text(Field::Workdir).map(PathBuf::from),
            hostname: self.text(Field::Hostname),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_stands_at_its_number() {
        for (number, (field, name)) in FIELDS.iter().enumerate() {
            assert_eq!((*field as usize, field.name()), (number, *name));
        }
    }

    #[test]
    fn columns_may_be_strange_or_stand_twice() {
        let columns = Columns::parse("status\tcolour\tname\texit\tstatus\ttask_id").unwrap();
        let (record, misread) = columns.record("COMPLETED\tred\tEMBED\tx\tFAILED\t7").unwrap();
        assert_eq!(
            (record.status, record.name.as_str(), record.task_id.as_str()),
            (Status::Completed, "EMBED", "7")
        );
        assert_eq!((record.exit, misread), (None, vec![Misread { column: "exit", value: "x".to_owned() }]));
        assert_eq!(columns.record("COMPLETED\tred").unwrap_err(), Rejected::Width { found: 2 });
        let longer = "COMPLETED\tred\tEMBED\t0\tFAILED\t7\t8\t9";
        assert_eq!(columns.record(longer).unwrap_err(), Rejected::Width { found: 8 });
    }
}
