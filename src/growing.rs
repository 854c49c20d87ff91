//! A text file read while somebody else writes it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Reads the lines that were added to a file since the last look.
///
/// Only whole lines count. A file that is not there yet, or not yet readable, has no lines yet; one that was replaced
/// or became shorter is read again from its start.
#[derive(Debug)]
pub struct Growing {
    path: PathBuf,
    /// How many bytes of the file are in `pending` or behind it.
    offset: u64,
    /// The identity of the file that `offset` is about: device and inode.
    file: Option<(u64, u64)>,
    /// The beginning of a line whose end is not written yet.
    pending: Vec<u8>,
}

/// What a look at a file gave.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Grown {
    /// The lines are those from the start of the file.
    pub from_start: bool,
    /// Whole lines with their ends; bytes that are not UTF-8 are replaced.
    pub lines: String,
}

impl Growing {
    pub fn new(path: impl Into<PathBuf>) -> Growing {
        Growing { path: path.into(), offset: 0, file: None, pending: Vec::new() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lines that were finished since the last call.
    pub fn poll(&mut self) -> Grown {
        // A file that cannot be read now may be readable at the next look: nothing is lost by waiting.
        let Ok(from_start) = self.fetch() else { return Grown::default() };
        let Some(end) = self.pending.iter().rposition(|&byte| byte == b'\n') else {
            return Grown { from_start, ..Grown::default() };
        };
        let lines: Vec<u8> = self.pending.drain(..=end).collect();
        Grown { from_start, lines: String::from_utf8_lossy(&lines).into_owned() }
    }

    fn fetch(&mut self) -> std::io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let mut file = File::open(&self.path)?;
        let metadata = file.metadata()?;
        let identity = Some((metadata.dev(), metadata.ino()));
        let from_start = self.file != identity || metadata.len() < self.offset;
        if from_start {
            *self = Growing::new(std::mem::take(&mut self.path));
            self.file = identity;
        }
        file.seek(SeekFrom::Start(self.offset))?;
        self.offset += file.read_to_end(&mut self.pending)? as u64;
        Ok(from_start)
    }
}
