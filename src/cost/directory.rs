//! The directory of a task, opened once: its files are then found by their names alone, which is what makes a hundred
//! thousand directories quick to read.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};

/// How much of the end of a log is read, in bytes: what killed a task is written last.
const TAIL_BYTES: u64 = 64 * 1024;

/// A directory that was there when it was opened.
#[derive(Debug)]
pub(super) struct TaskDirectory {
    path: PathBuf,
    handle: OwnedFd,
}

impl TaskDirectory {
    /// `None`: no directory is there.
    pub fn open(path: PathBuf) -> Option<TaskDirectory> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, Mode::empty()).ok()?;
        Some(TaskDirectory { path, handle })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, name: &str) -> io::Result<File> {
        // Opening a named pipe that somebody left there would wait for ever.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.handle, name, flags, Mode::empty())?))
    }

    /// All bytes of a file.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(2048);
        // `take` keeps it from asking for the size first: these files are small.
        self.file(name)?.take(u64::MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The end of a log, at most 64 KiB, from the start of a line; `None` if it is absent or empty, or no file.
    pub fn tail(&self, name: &str) -> Option<Vec<u8>> {
        let file = self.file(name).ok()?;
        let metadata = file.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() > 0)?;
        let skipped = metadata.len().saturating_sub(TAIL_BYTES);
        let mut bytes = vec![0; (metadata.len() - skipped) as usize];
        let mut read = 0;
        while read < bytes.len() {
            match file.read_at(&mut bytes[read..], skipped + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        bytes.truncate(read);
        if skipped > 0
            && let Some(end) = bytes.iter().position(|&byte| byte == b'\n')
        {
            bytes.drain(..=end);
        }
        (!bytes.trim_ascii().is_empty()).then_some(bytes)
    }
}
