//! A whole trace file into records and notes.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

use rayon::prelude::*;

use super::columns::{Columns, Misread, Rejected, Row};
use super::{Status, TaskRecord, Trace};
use crate::error::{Error, Result};

/// How many columns or lines a note names before it says how many more there are.
const NAMED: usize = 3;

/// Reads the trace at `path`.
///
/// An empty file and one with a header only give a trace without tasks and a note that says so. Errors: the file
/// cannot be read, or it is no trace at all.
pub fn read(path: &Path) -> Result<Trace> {
    let bytes = fs::read(path).map_err(Error::io("read", path))?;
    parse(path, &bytes)
}

/// Reads the bytes of a trace; `path` is for messages and for finding what lies beside it.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Trace> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut trace = Trace { path: path.to_owned(), tasks: Vec::new(), notes: Vec::new() };
    let mut lines = text.split_inclusive('\n').enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((_, header)) = lines.next() else {
        trace.notes.push(format!("no tasks: {} is empty", path.display()));
        return Ok(trace);
    };
    let columns = Columns::parse(header.trim_end()).map_err(|missing| not_a_trace(path, header, &missing))?;
    let mut rows = Rows::new(&columns);
    let lines: Vec<(usize, &str)> = lines.map(|(index, line)| (index + 1, line)).collect();
    let (ended, unended) = match lines.split_last() {
        Some((last, ended)) if !last.1.ends_with('\n') => (ended, Some(last)),
        _ => (lines.as_slice(), None),
    };
    // A hundred thousand lines are read here.
    let read: Vec<Row> = ended.par_iter().map(|(_, line)| columns.record(without_end(line))).collect();
    for (&(number, line), row) in ended.iter().zip(read) {
        rows.take(number, Cow::Borrowed(without_end(line)), row);
    }
    if let Some(&(number, line)) = unended {
        rows.take_unended(number, without_end(line));
    }
    if rows.is_untouched() {
        trace.notes.push(format!("no tasks: {} holds a header only", path.display()));
    }
    trace.notes.extend(rows.notes());
    trace.tasks = rows.tasks;
    Ok(trace)
}

fn without_end(line: &str) -> &str {
    line.trim_end_matches(['\n', '\r'])
}

fn not_a_trace(path: &Path, header: &str, missing: &[&str]) -> Error {
    let error = Error::input(format_args!("{} is not a Nextflow trace", path.display()));
    if missing.len() == 3 {
        let shown: String = header.trim().chars().filter(|letter| !letter.is_control()).take(60).collect();
        return error
            .cause(format_args!(
                "its first line names none of the columns task_id, name and status: \"{shown}\""
            ))
            .hint("name the file that `nextflow run -with-trace` wrote, or a run of `scfoundry runs`");
    }
    error
        .cause(format_args!("its header lacks the column {}", missing.join(", ")))
        .hint("a trace needs task_id, name and status: add them to `trace.fields` in nextflow.config")
}

/// The rows of one trace as they are taken, and what was wrong with some of them.
struct Rows<'a> {
    columns: &'a Columns,
    tasks: Vec<TaskRecord>,
    /// What tells the rows that were kept from each other.
    seen: HashSet<Cow<'a, str>>,
    repeated: usize,
    broken: Vec<(usize, usize)>,
    anonymous: Vec<usize>,
    misread: Vec<(usize, Misread)>,
    cut: Option<String>,
}

impl<'a> Rows<'a> {
    fn new(columns: &'a Columns) -> Rows<'a> {
        Rows {
            columns,
            tasks: Vec::new(),
            seen: HashSet::new(),
            repeated: 0,
            broken: Vec::new(),
            anonymous: Vec::new(),
            misread: Vec::new(),
            cut: None,
        }
    }

    /// Whether no row, good or bad, has come by.
    fn is_untouched(&self) -> bool {
        self.tasks.is_empty() && self.broken.is_empty() && self.anonymous.is_empty() && self.cut.is_none()
    }

    /// Takes what was read of the line with the given number, counted from 1.
    fn take(&mut self, number: usize, line: Cow<'a, str>, row: Row) {
        match row {
            Ok((record, misread)) => {
                self.misread.extend(misread.into_iter().map(|misread| (number, misread)));
                self.keep(line, record);
            }
            Err(Rejected::Width { found }) => self.broken.push((number, found)),
            Err(Rejected::Anonymous) => self.anonymous.push(number),
        }
    }

    /// Takes a last line without a line end. If it has all its columns, its last value may have lost its end (`5` of `512 B`).
    fn take_unended(&mut self, number: usize, line: &'a str) {
        if self.columns.width_of(line) < self.columns.len() {
            self.cut = Some(format!("line {number}, the last, is cut short and left out"));
            return;
        }
        match self.columns.without_last_value(line) {
            Some(shortened) => {
                let row = self.columns.record(&shortened);
                self.take(number, Cow::Owned(shortened), row);
                let column = self.columns.last();
                self.cut =
                    Some(format!("line {number}, the last, has no line end: its {column} is left out"));
            }
            None => self.take(number, Cow::Borrowed(line), self.columns.record(line)),
        }
    }

    fn keep(&mut self, line: Cow<'a, str>, record: TaskRecord) {
        let identity = match (&record.status, &record.hash) {
            (Status::Cached, Some(hash)) => {
                format!("cached {} {hash} {}", record.task_id, record.attempt.unwrap_or(1)).into()
            }
            _ => line,
        };
        if self.seen.insert(identity) {
            self.tasks.push(record);
        } else {
            self.repeated += 1;
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.repeated > 0 {
            notes.push(format!("{} repeated {} dropped", self.repeated, plural(self.repeated, "row")));
        }
        if !self.broken.is_empty() {
            let lines = list(self.broken.iter().map(|(number, found)| format!("{number} with {found}")));
            let verb = if self.broken.len() == 1 { "has" } else { "have" };
            notes.push(format!(
                "{} {} left out: line {lines} {verb} not the {} columns of the header (a tab or a line break in a tag?)",
                self.broken.len(),
                plural(self.broken.len(), "row"),
                self.columns.len(),
            ));
        }
        if !self.anonymous.is_empty() {
            let lines = list(self.anonymous.iter().map(usize::to_string));
            notes.push(format!(
                "{} {} left out: line {lines} lacks task_id, name or status",
                self.anonymous.len(),
                plural(self.anonymous.len(), "row"),
            ));
        }
        if !self.misread.is_empty() {
            let values = list(self.misread.iter().map(|(number, misread)| {
                format!("{} \"{}\" in line {number}", misread.column, misread.value)
            }));
            notes.push(format!(
                "{} {} not understood and left out: {values}",
                self.misread.len(),
                plural(self.misread.len(), "value"),
            ));
        }
        notes.extend(self.cut.clone());
        notes
    }
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// The first few items, and how many more there are.
fn list(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(NAMED);
    let shown: Vec<String> = items.take(NAMED).collect();
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}
