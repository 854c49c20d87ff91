//! A trace read while it grows.

use std::path::{Path, PathBuf};

use super::TaskRecord;
use super::columns::Columns;
use crate::growing::Growing;

/// Reads the rows that were added to a trace since the last look.
///
/// A trace that was replaced or became shorter is read again from its start. What cannot be understood is left to
/// [`super::read`].
#[derive(Debug)]
pub struct Follower {
    file: Growing,
    columns: Option<Columns>,
}

impl Follower {
    pub fn new(path: impl Into<PathBuf>) -> Follower {
        Follower { file: Growing::new(path), columns: None }
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The tasks whose rows were finished since the last call.
    pub fn poll(&mut self) -> Vec<TaskRecord> {
        let grown = self.file.poll();
        if grown.from_start {
            self.columns = None;
        }
        grown.lines.lines().filter_map(|line| self.take(line)).collect()
    }

    fn take(&mut self, line: &str) -> Option<TaskRecord> {
        match &self.columns {
            Some(columns) => columns.record(line).ok().map(|(record, _)| record),
            None => {
                self.columns = Columns::parse(line.trim_start_matches('\u{feff}')).ok();
                None
            }
        }
    }
}
