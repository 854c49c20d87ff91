//! The tasks that the engine has given to its executor, from its log.

use std::path::PathBuf;

use crate::growing::Growing;

/// A task that the engine has submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Submitted {
    /// The first digits of its work directory: `3f/a1b2c3`.
    pub hash: String,
    /// `EMBED (pbmc)`.
    pub name: String,
}

/// Reads what is new in the log of an engine.
#[derive(Debug)]
pub(super) struct EngineLog {
    file: Growing,
}

impl EngineLog {
    pub fn new(path: impl Into<PathBuf>) -> EngineLog {
        EngineLog { file: Growing::new(path) }
    }

    pub fn poll(&mut self) -> Vec<Submitted> {
        self.file.poll().lines.lines().filter_map(submitted).collect()
    }
}

/// The task of `… nextflow.Session - [3f/a1b2c3] Submitted process > EMBED (pbmc)`, also where it was `Re-submitted`.
fn submitted(line: &str) -> Option<Submitted> {
    let (before, name) = line.split_once("ubmitted process > ")?;
    let (hash, word) = before.rsplit_once('[')?.1.split_once("] ")?;
    let (folder, digits) = hash.split_once('/')?;
    let hexadecimal = [folder, digits].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let is_task = matches!(word, "S" | "Re-s") && hexadecimal;
    is_task.then(|| Submitted { hash: hash.to_owned(), name: name.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_tasks_of_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nextflow.log");
        let mut log = EngineLog::new(&path);
        assert_eq!(log.poll(), []);
        let text = "\
Dec-03 05:59:25.843 [main] DEBUG nextflow.processor.TaskProcessor - Starting process > EMBED
Dec-03 05:59:26.072 [Task submitter] INFO  nextflow.Session - [46/3104c4] Submitted process > EMBED (a)
Dec-03 05:59:27.072 [Task submitter] INFO  nextflow.Session - [47/00aa11] Re-submitted process > EMBED (b [2])
Dec-03 05:59:27.172 [Actor] INFO  nextflow.processor.TaskProcessor - [31/832f73] Cached process > EMBED (c)
";
        std::fs::write(&path, format!("{text}Dec-03 [Task submitter] INFO [aa/bb")).unwrap();
        let found = log.poll();
        let named: Vec<(&str, &str)> =
            found.iter().map(|task| (task.hash.as_str(), task.name.as_str())).collect();
        assert_eq!(named, [("46/3104c4", "EMBED (a)"), ("47/00aa11", "EMBED (b [2])")]);
        assert_eq!(log.poll(), []);
    }
}
