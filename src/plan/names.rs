//! Names: of the run, of its results, and those that Nextflow cannot work with.

use super::inputs::Input;
use super::request::Request;
use crate::error::{Error, Result};
use crate::method::Task;
use crate::workspace::Workspace;

/// Nextflow writes the paths of a run into shell scripts, where it escapes some characters and not others.
pub fn check_workspace(workspace: &Workspace) -> Result<()> {
    let root = workspace.root().to_string_lossy();
    let misread = |c: &char| matches!(*c, '$' | '{' | '}' | char::REPLACEMENT_CHARACTER) || c.is_control();
    match root.chars().find(misread) {
        None => Ok(()),
        Some(character) => {
            Err(Error::input(format_args!("the workspace {root:?} holds {character:?} in its path"))
                .cause("Nextflow's task scripts would misread it")
                .hint("use another directory, or a link to this one: `--workspace LINK`"))
        }
    }
}

/// The method's name; for scores the folder of the first embedding, which names the method that made it.
pub fn label(request: &Request, inputs: &[Input]) -> String {
    let folder =
        || inputs.first()?.path.parent()?.file_name().map(|name| name.to_string_lossy().into_owned());
    let fallback = match request.task {
        Task::Benchmark | Task::Geometry => folder(),
        _ => None,
    };
    request.method.clone().or(fallback).unwrap_or_else(|| request.task.name().to_owned())
}

/// The name of the run directory: as given, else when, with what and of what.
pub fn run_stem(request: &Request, label: &str, inputs: &[Input], stamp: &str) -> String {
    if let Some(name) = &request.run_name {
        return plain(name);
    }
    let input = match inputs {
        [one] => one.id.clone(),
        [first, rest @ ..] => format!("{}+{}", first.id, rest.len()),
        [] => "fitted".to_owned(),
    };
    format!("{stamp}_{}_{}", plain(label), plain(&input))
}

/// A name that is easy to type: letters, digits and `. _ - +`; others become `_`.
pub fn plain(text: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    let name: String = text.chars().map(|c| if keep(c) { c } else { '_' }).take(100).collect();
    if name.starts_with(['.', '-']) { format!("_{name}") } else { name }
}
