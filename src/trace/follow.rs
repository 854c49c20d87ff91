//! A trace read while it grows.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::TaskRecord;
use super::columns::Columns;

/// Reads the rows that were added to a trace since the last look.
///
/// Only whole lines count. A file that is not there yet, or not yet readable, has no rows yet; one that was replaced
/// or became shorter is read again from its start. What cannot be understood is left to [`super::read`].
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    /// How many bytes of the file are in `pending` or behind it.
    offset: u64,
    /// The identity of the file that `offset` is about: device and inode.
    file: Option<(u64, u64)>,
    /// The beginning of a line whose end is not written yet.
    pending: Vec<u8>,
    columns: Option<Columns>,
}

impl Follower {
    pub fn new(path: impl Into<PathBuf>) -> Follower {
        Follower { path: path.into(), offset: 0, file: None, pending: Vec::new(), columns: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tasks whose rows were finished since the last call.
    pub fn poll(&mut self) -> Vec<TaskRecord> {
        // A trace that cannot be read now may be readable at the next look: nothing is lost by waiting.
        if self.fetch().is_err() {
            return Vec::new();
        }
        let Some(end) = self.pending.iter().rposition(|&byte| byte == b'\n') else {
            return Vec::new();
        };
        let lines: Vec<u8> = self.pending.drain(..=end).collect();
        let text = String::from_utf8_lossy(&lines).into_owned();
        text.lines().filter_map(|line| self.take(line)).collect()
    }

    fn fetch(&mut self) -> std::io::Result<()> {
        use std::os::unix::fs::MetadataExt;
        let mut file = File::open(&self.path)?;
        let metadata = file.metadata()?;
        let identity = Some((metadata.dev(), metadata.ino()));
        if self.file != identity || metadata.len() < self.offset {
            *self = Follower::new(std::mem::take(&mut self.path));
            self.file = identity;
        }
        file.seek(SeekFrom::Start(self.offset))?;
        self.offset += file.read_to_end(&mut self.pending)? as u64;
        Ok(())
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
