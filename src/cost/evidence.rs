//! What a task left behind: its work directory and its logs.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::trace::TaskRecord;

/// How much of the end of a log is read, in bytes: what killed a task is written last.
const TAIL_BYTES: u64 = 64 * 1024;

/// The log files of a task, the one nearest to the task's own words first.
pub(super) const LOGS: [&str; 3] = [".command.err", ".command.log", ".command.out"];

/// The directory a task worked in, if it is still there.
///
/// The `workdir` column, else the only directory under `work_root` that begins with the task's hash (`7e/e97eb7…`).
pub fn work_directory(task: &TaskRecord, work_root: &Path) -> Option<PathBuf> {
    if let Some(directory) = task.workdir.as_ref().filter(|directory| directory.is_dir()) {
        return Some(directory.clone());
    }
    let (folder, prefix) = task.hash.as_deref()?.split_once('/')?;
    let is_hexadecimal = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    // A hash from a damaged trace must not lead out of the work root, nor match everything in it.
    if !is_hexadecimal(folder) || !is_hexadecimal(prefix) {
        return None;
    }
    let mut matching = fs::read_dir(work_root.join(folder)).ok()?.filter_map(|entry| {
        let entry = entry.ok()?;
        let fits = entry.file_name().to_str()?.starts_with(prefix) && entry.path().is_dir();
        fits.then(|| entry.path())
    });
    let only = matching.next()?;
    matching.next().is_none().then_some(only)
}

/// The end of a log as text, at most 64 KiB, from the start of a line; `None` if it is absent or empty.
pub(super) fn read_tail(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    // Opening a named pipe that somebody left there would wait for ever.
    if !metadata.is_file() {
        return None;
    }
    let length = metadata.len();
    let mut file = File::open(path).ok()?;
    let skipped = length.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(skipped)).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = match text.split_once('\n') {
        Some((_, whole_lines)) if skipped > 0 => whole_lines,
        _ => &text,
    };
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// The line of a work directory's logs by which a batch system says that it killed part of the task for memory.
pub(super) fn memory_kill(work_directory: &Path) -> Option<String> {
    LOGS.iter().find_map(|name| {
        let text = read_tail(&work_directory.join(name))?;
        text.lines().rfind(|line| is_memory_kill(line)).map(|line| clean(line).trim().to_owned())
    })
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
    let Some(text) = LOGS.iter().find_map(|name| read_tail(&work_directory.join(name))) else {
        return Vec::new();
    };
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| clean(line).trim_end().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}
