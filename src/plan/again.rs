//! The command line as it was typed, and how it is typed to go on from a run.

use std::ffi::{OsStr, OsString};

use crate::shell;

/// The words of a command line, the program's name first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typed(pub Vec<OsString>);

impl Typed {
    /// The line to paste that goes on from the run: the same words, with `--resume RUN` in front of any `--`.
    pub fn resume(&self, run: &str) -> String {
        let mut words: Vec<&OsStr> = Vec::new();
        let mut given = self.0.iter().map(OsString::as_os_str).peekable();
        let mut rest = Vec::new();
        while let Some(word) = given.next() {
            let text = word.to_string_lossy();
            if text == "--" {
                rest.push(word);
                rest.extend(given.by_ref());
            } else if text == "--resume" {
                // Its value is optional.
                given.next_if(|value| !value.to_string_lossy().starts_with('-'));
            } else if !text.starts_with("--resume=") {
                words.push(word);
            }
        }
        words.extend([OsStr::new("--resume"), OsStr::new(run)]);
        // Nextflow's own resumption would be a second one.
        words.extend(rest.into_iter().filter(|word| *word != "-resume"));
        shell::line(&words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_to_paste() {
        let resume = |words: &[&str]| Typed(words.iter().map(OsString::from).collect()).resume("r1");
        assert_eq!(resume(&["s", "embed", "--data", "a b.h5ad"]), "s embed --data 'a b.h5ad' --resume r1");
        assert_eq!(resume(&["s", "embed", "--resume", "--gpu", "0"]), "s embed --gpu 0 --resume r1");
        assert_eq!(resume(&["s", "embed", "--resume", "r0", "--quiet"]), "s embed --quiet --resume r1");
        assert_eq!(
            resume(&["s", "embed", "--resume=r0", "--", "-with-dag"]),
            "s embed --resume r1 -- -with-dag"
        );
        assert_eq!(resume(&["s", "embed", "--", "-resume", "--resume"]), "s embed --resume r1 -- --resume");
    }
}
