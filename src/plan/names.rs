//! Names that the shell would take for something else.
//!
//! Nextflow writes the paths of inputs and of the work directory into the scripts of tasks, and escapes spaces and quotes in
//! them, but not these: `$` is expanded, and `a[1].h5ad` would stand for a neighbour called `a1.h5ad`.

use std::path::Path;

use crate::error::{Error, Result};

const EXPANDED: [char; 7] = ['$', '*', '?', '[', ']', '{', '}'];

/// The first character of `path` that Nextflow leaves to the shell.
pub fn expanded_by_shell(path: &Path) -> Option<char> {
    path.to_string_lossy().chars().find(|c| EXPANDED.contains(c) || c.is_control())
}

/// Refuses a workspace in which no task could find its own directory.
pub fn check_workspace(root: &Path) -> Result<()> {
    match expanded_by_shell(root) {
        None => Ok(()),
        Some(character) => Err(Error::input(format_args!(
            "Nextflow cannot work in {}: there is {character:?} in its name",
            root.display()
        ))
        .hint("choose another place with `--workspace DIR`; the data can stay where they are")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_the_shell_expands() {
        for (path, found) in [
            ("/data/it's \"my\" `x` \\ (1) γδ;&|<>!#~.h5ad", None),
            ("/data/a[1].h5ad", Some('[')),
            ("/$HOME/a.h5ad", Some('$')),
            ("/data/two\nlines", Some('\n')),
        ] {
            assert_eq!(expanded_by_shell(Path::new(path)), found, "{path}");
            assert_eq!(check_workspace(Path::new(path)).is_ok(), found.is_none(), "{path}");
        }
    }
}
