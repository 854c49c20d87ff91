//! The memory of processes by the directory they work in, from `/proc`.

use std::path::{Path, PathBuf};

use crate::usage::status_bytes;

/// The processes of this machine that we may look at, at one moment.
#[derive(Debug, Default)]
pub struct Processes {
    /// Where each works, and its resident memory in bytes.
    found: Vec<(PathBuf, u64)>,
}

impl Processes {
    /// Looks at all of them; nothing is found where there is no `/proc`.
    pub fn look() -> Processes {
        let resident = |process: &Path| -> Option<u64> {
            status_bytes(&std::fs::read_to_string(process.join("status")).ok()?, "VmRSS:")
        };
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let process = entry.path();
            let place = std::fs::read_link(process.join("cwd")).ok()?;
            Some((place, resident(&process)?))
        });
        Processes { found: found.collect() }
    }

    /// Resident memory in bytes, added up, of those that work in the directory or below; `None` if none does.
    pub fn resident_below(&self, directory: &Path) -> Option<u64> {
        let real = directory.canonicalize().ok()?;
        let below = self.found.iter().filter(|(place, _)| place.starts_with(&real));
        below.map(|(_, bytes)| *bytes).reduce(|sum, bytes| sum + bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn counts_who_works_below() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("work/ab/12");
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir(folder.path().join("work2")).unwrap();
        // One that answers has its memory; one that was only just started has a page.
        let mut cat = Command::new("cat");
        cat.current_dir(&inside).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = cat.spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"?").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let processes = Processes::look();
        let seen = processes.resident_below(&folder.path().join("work"));
        let others = processes.resident_below(&folder.path().join("work2"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen.is_some_and(|bytes| bytes > 64 << 10), "{seen:?}");
        assert_eq!(others, None);
    }
}
