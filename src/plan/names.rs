//! Names: of the run, of its results, and those that Nextflow cannot work with.

use super::inputs::{Input, Scored};
use super::request::{Request, Role};
use crate::error::{Error, Result};
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

/// Names the embeddings for tables: the method as given, else the folder's name; the sample is the file's name.
///
/// Two embeddings of one method and one file name are told apart by the ids that their folders gave them.
pub fn score(request: &Request, inputs: &mut [Input]) {
    let scored: Vec<Scored> = inputs.iter().map(|input| names_in_tables(request, input)).collect();
    for (position, input) in inputs.iter_mut().enumerate().filter(|(_, input)| input.role == Role::Embedding)
    {
        let mut own = scored[position].clone();
        if scored.iter().filter(|other| **other == own).count() > 1 {
            own.sample = plain(&input.id);
        }
        input.scored = Some(own);
    }
}

fn names_in_tables(request: &Request, input: &Input) -> Scored {
    let folder = || Some(input.path.parent()?.file_name()?.to_string_lossy().into_owned());
    let method = request.method.clone().or_else(folder).unwrap_or_else(|| request.task.name().to_owned());
    let stem = input.path.file_stem().unwrap_or_default().to_string_lossy();
    Scored { method: file_part(&method), sample: file_part(&stem) }
}

/// Part of a file's name: what would begin another folder becomes `_`.
fn file_part(text: &str) -> String {
    text.replace(['/', '\0'], "_")
}

/// The method's name; for scores that of the embeddings' methods, the first and how many more.
pub fn label(request: &Request, inputs: &[Input]) -> String {
    if let Some(method) = &request.method {
        return file_part(method);
    }
    let mut methods: Vec<&str> =
        inputs.iter().filter_map(|input| Some(input.scored.as_ref()?.method.as_str())).collect();
    methods.sort_unstable();
    methods.dedup();
    match methods.as_slice() {
        [] => request.task.name().to_owned(),
        [one] => (*one).to_owned(),
        [first, rest @ ..] => format!("{first}+{}", rest.len()),
    }
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
