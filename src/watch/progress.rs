//! How far a running task says it is, in its log.

use std::path::Path;

use crate::cost;

/// How many lines of the end of a log are searched: warnings may stand behind the last word on progress.
const LINES: usize = 200;

/// The kernels that tell the part they are at, and how far it is.
const BY_PART: [&str; 2] = ["BENCHMARK", "GEOMETRY"];

/// What a task last told of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Cells that are done, and all cells.
    pub cells: Option<(u64, u64)>,
    /// What it is at: `neighbours, 40 %`.
    pub part: Option<String>,
}

/// Reads the log in the directory of a task of this process.
pub(super) fn read(directory: &Path, process: &str) -> Progress {
    let lines = cost::log_tail(directory, LINES);
    let newest = || lines.iter().rev().map(String::as_str);
    Progress {
        cells: newest().find_map(cells),
        part: BY_PART.contains(&process).then(|| newest().find_map(part)).flatten(),
    }
}

/// The numbers of `300/700 cells`, wherever in the line it stands.
fn cells(line: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).find_map(|pair| {
        let (done, all) = pair[0].split_once('/').filter(|_| pair[1].starts_with("cells"))?;
        let (done, all) = (done.parse().ok()?, all.parse().ok()?);
        (all > 0 && done <= all).then_some((done, all))
    })
}

/// What stands behind the colon in `pca, pbmc: neighbours, 40 %`.
fn part(line: &str) -> Option<String> {
    let (what, part) = line.rsplit_once(": ")?;
    let is_message =
        ["warning", "error", "hint", "Caused by"].iter().any(|word| what.trim().starts_with(word));
    (what.contains(", ") && !is_message).then(|| part.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(log: &str, process: &str) -> Progress {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".command.err"), log).unwrap();
        read(folder.path(), process)
    }

    #[test]
    fn a_runner_tells_its_cells() {
        let log = "loaded 7/9 cellular parts\n8/700 cells\n300/700 cells\nwarning: slow\n";
        assert_eq!(told(log, "EMBED"), Progress { cells: Some((300, 700)), part: None });
        assert_eq!(told("embedded 5/5 cells on cpu\n", "EMBED").cells, Some((5, 5)));
        for silent in ["", "12 cells\n", "9/3 cells\n", "0/0 cells\n", "a/b cells\n"] {
            assert_eq!(told(silent, "EMBED"), Progress::default(), "{silent:?}");
        }
    }

    #[test]
    fn a_kernel_tells_its_part() {
        let log = "pca, pbmc: read\npca, pbmc: neighbours\npca, pbmc: neighbours, 40 %\nwarning: a, b: c\n";
        assert_eq!(told(log, "BENCHMARK").part.as_deref(), Some("neighbours, 40 %"));
        assert_eq!(told(log, "EMBED").part, None);
    }
}
