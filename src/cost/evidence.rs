//! What a task left behind: its work directory and its logs.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::directory::TaskDirectory;
use crate::trace::TaskRecord;

/// The log files of a task, the one nearest to the task's own words first.
pub(super) const LOGS: [&str; 3] = [".command.err", ".command.log", ".command.out"];

/// The only directory under `work_root` that begins with a task's hash (`7e/e97eb7…`), if it is still there.
pub fn work_directory(hash: &str, work_root: &Path) -> Option<PathBuf> {
    let (folder, prefix) = parts(hash)?;
    let folder = work_root.join(folder);
    only(&names(&folder), prefix).map(|name| folder.join(name)).filter(|directory| directory.is_dir())
}

/// What is below a work root, listed once for all tasks that look for their directory there.
pub(super) struct WorkRoot<'a> {
    path: &'a Path,
    tasks: &'a [TaskRecord],
    /// The names in each folder of two digits, in order; listed where a task does not know its directory.
    folders: OnceLock<HashMap<&'a str, Vec<String>>>,
}

impl<'a> WorkRoot<'a> {
    pub(super) fn new(path: &'a Path, tasks: &'a [TaskRecord]) -> WorkRoot<'a> {
        WorkRoot { path, tasks, folders: OnceLock::new() }
    }

    /// The directory a task worked in: by its `workdir` column, else by its hash.
    pub(super) fn directory(&self, task: &TaskRecord) -> Option<TaskDirectory> {
        if let Some(directory) = task.workdir.clone().and_then(TaskDirectory::open) {
            return Some(directory);
        }
        let (folder, prefix) = parts(task.hash.as_deref()?)?;
        let name = only(self.folders.get_or_init(|| self.list()).get(folder)?, prefix)?;
        TaskDirectory::open(self.path.join(folder).join(name))
    }

    fn list(&self) -> HashMap<&'a str, Vec<String>> {
        let mut folders = HashMap::new();
        if self.path.is_dir() {
            for (folder, _) in self.tasks.iter().filter_map(|task| parts(task.hash.as_deref()?)) {
                folders.entry(folder).or_insert_with(|| names(&self.path.join(folder)));
            }
        }
        folders
    }
}

/// Both parts of a hash. One from a damaged trace must not lead out of the work root, nor match everything in it.
fn parts(hash: &str) -> Option<(&str, &str)> {
    let is_hexadecimal = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (folder, prefix) = hash.split_once('/')?;
    (is_hexadecimal(folder) && is_hexadecimal(prefix)).then_some((folder, prefix))
}

/// The only one of the sorted names that begins with the prefix.
fn only<'a>(names: &'a [String], prefix: &str) -> Option<&'a str> {
    let first = names.partition_point(|name| name.as_str() < prefix);
    let mut matching = names[first..].iter().take_while(|name| name.starts_with(prefix));
    let only = matching.next()?;
    matching.next().is_none().then_some(only)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// The end of a log as text, at most 64 KiB, from the start of a line; `None` if it is absent or empty.
pub(super) fn read_tail(directory: &TaskDirectory, name: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&directory.tail(name)?).into_owned())
}

/// The line of a task's logs by which a batch system says that it killed part of the task for memory.
pub(super) fn memory_kill(directory: &TaskDirectory) -> Option<String> {
    LOGS.iter().find_map(|name| {
        let bytes = directory.tail(name).filter(|bytes| mentions_memory(bytes))?;
        let text = String::from_utf8_lossy(&bytes);
        text.lines().rfind(|line| is_memory_kill(line)).map(|line| clean(line).trim().to_owned())
    })
}

/// Whether a line of [`is_memory_kill`] may be among these: all of them hold one of two words.
fn mentions_memory(log: &[u8]) -> bool {
    log.windows(3).any(|word| word.eq_ignore_ascii_case(b"oom") || word.eq_ignore_ascii_case(b"mem"))
}

/// Whether a batch system says in this line that it killed for memory (SLURM, PBS, LSF, Grid Engine).
pub(super) fn is_memory_kill(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().all(|word| line.contains(word));
    has(&["oom_kill event"])
        || has(&["oom-kill event"])
        || has(&["oom killed"])
        || has(&["slurmstepd", "out of memory"])
        || has(&["slurmstepd", "exceeded", "memory limit"])
        || has(&["job killed", "memory", "limit"])
        || has(&["term_memlimit"])
}

/// A line without terminal control: no escape sequences, and of a line drawn over itself only what stood last.
pub(super) fn clean(line: &str) -> String {
    let line = line.trim_end_matches(['\r', '\n']);
    let line = line.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or("");
    let mut kept = String::with_capacity(line.len());
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_escape_sequence(&mut letters),
            '\t' => kept.push(' '),
            letter if letter.is_control() => {}
            letter => kept.push(letter),
        }
    }
    kept
}

/// Skips what follows an escape: `[…letter` (colours, cursor), `]…bell` (titles), or one letter.
fn skip_escape_sequence(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match letters.next() {
        Some('[') => {
            letters.find(|letter| ('@'..='~').contains(letter));
        }
        Some(']') => {
            letters.find(|&letter| letter == '\u{7}' || letter == '\u{9c}' || letter == '\\');
        }
        _ => {}
    }
}

/// The last `count` lines of what a task said (`.command.err`, else `.command.log`, else `.command.out`), without
/// control codes and blank lines; empty where it said nothing.
pub fn log_tail(work_directory: &Path, count: usize) -> Vec<String> {
    let directory = TaskDirectory::open(work_directory.to_owned());
    let Some(text) = directory.and_then(|directory| LOGS.iter().find_map(|name| read_tail(&directory, name)))
    else {
        return Vec::new();
    };
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| clean(line).trim_end().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}
