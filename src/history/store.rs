//! The directory of the entries. Many may write at once: every file has a name of its own and appears when it is whole.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Entry, SCHEMA};
use crate::atomic;
use crate::error::{Error, Result};

/// Entries that are read at most, the newest.
const MOST: usize = 5000;

/// What a directory holds.
#[derive(Debug, Default)]
pub struct History {
    /// Oldest first.
    pub entries: Vec<Entry>,
    /// Files that are damaged, or of a later version of the program.
    pub unreadable: Vec<PathBuf>,
}

/// Adds an entry under a name of its own; the directory is made where it is missing.
///
/// # Errors
/// Environment for a full disk, else Input; nothing is left then.
pub fn keep(directory: &Path, entry: &Entry) -> Result<PathBuf> {
    let text = serde_json::to_string_pretty(entry)
        .map_err(|error| Error::failed("cannot write the history").cause(error))?;
    let io = || Error::io("write to", directory);
    fs::create_dir_all(directory).map_err(io())?;
    let mut file = atomic::temporary_in(directory).map_err(io())?;
    std::io::Write::write_all(&mut file, format!("{text}\n").as_bytes()).map_err(io())?;
    file.as_file().sync_all().map_err(io())?;
    let random = file.path().file_name().unwrap_or_default().to_string_lossy().replace('.', "");
    let stamp = entry.written.replace([':', '-'], "");
    let path = directory.join(format!("{stamp}-{random}.json"));
    file.persist_noclobber(&path).map_err(|error| io()(error.error))?;
    Ok(path)
}

/// Reads all entries; a directory that is not there holds none.
///
/// # Errors
/// Input: the directory cannot be read.
pub fn read(directory: &Path) -> Result<History> {
    let listed = match fs::read_dir(directory) {
        Ok(listed) => listed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(History::default()),
        Err(error) => return Err(Error::io("read", directory)(error)),
    };
    let is_entry = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".json") && !name.starts_with('.')
    };
    let mut paths: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).filter(is_entry).collect();
    paths.sort();
    let mut history = History::default();
    for path in paths.split_off(paths.len().saturating_sub(MOST)) {
        match parse(&path) {
            Some(entry) => history.entries.push(entry),
            None => history.unreadable.push(path),
        }
    }
    Ok(history)
}

fn parse(path: &Path) -> Option<Entry> {
    let entry: Entry = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (entry.schema <= SCHEMA).then_some(entry)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const OLD: &str = r#"{"schema": 0, "task": "embed", "steps": [{"process": "EMBED", "seconds": 2.5}]}"#;

    #[test]
    fn many_writers_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("made/by/the/first");
        let entry: Entry = serde_json::from_str(OLD).unwrap();
        let names: HashSet<PathBuf> = std::thread::scope(|scope| {
            let writers: Vec<_> =
                (0..64).map(|_| scope.spawn(|| keep(&directory, &entry).unwrap())).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        assert_eq!(names.len(), 64);
        let history = read(&directory).unwrap();
        assert_eq!((history.entries.len(), history.unreadable.len()), (64, 0));
        assert_eq!(history.entries[0], entry);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 64, "something was left");
    }

    #[test]
    fn old_files_are_read_and_damaged_and_later_ones_are_told() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.json"), OLD).unwrap();
        fs::write(folder.path().join("b.json"), &OLD[..30]).unwrap();
        fs::write(folder.path().join("c.json"), OLD.replace("\"schema\": 0", "\"schema\": 99")).unwrap();
        fs::write(folder.path().join(".half.json"), "").unwrap();
        fs::write(folder.path().join("README"), "not ours").unwrap();
        let history = read(folder.path()).unwrap();
        assert_eq!(history.entries[0].steps[0].seconds, Some(2.5));
        assert_eq!((history.entries.len(), history.unreadable.len()), (1, 2));
        assert!(read(&folder.path().join("absent")).unwrap().entries.is_empty());
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let entry: Entry = serde_json::from_str(OLD).unwrap();
        let error = keep(&file.join("history"), &entry).unwrap_err();
        assert!(error.message.contains("file/history"), "{error}");
    }
}
