//! From what was typed to files: patterns expanded, names made unique, every file opened once.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::names;
use super::request::Role;
use crate::error::{Error, Result};
use crate::h5ad::{H5ad, Slot};

/// An input file of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Input {
    pub role: Role,
    /// Unique within the plan and the stem of the output's name.
    pub id: String,
    /// Absolute.
    pub path: PathBuf,
    pub bytes: u64,
    /// Time of last change, in nanoseconds since 1970.
    pub modified_ns: i64,
    pub cells: usize,
    pub genes: usize,
    /// What an embedding of it takes over, at least: `obs` and `obsm`.
    #[serde(skip)]
    pub kept_bytes: u64,
    /// Values that X stores; absent where there is no X.
    #[serde(skip)]
    pub stored: Option<u64>,
    /// Nextflow stages it into the task's directory; else the task reads it where it is.
    pub staged: bool,
    /// Size and time of last change of a file that is not staged, so that a changed one is not taken for done.
    pub stamp: Option<String>,
    /// Of an embedding: what its scores are called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scored: Option<Scored>,
    /// Of an embedding whose geometry is probed: the id of its data set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// The names of an embedding in tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scored {
    pub method: String,
    /// The data set that was embedded: the same for several methods.
    pub sample: String,
}

/// Opens the inputs role by role, in the order of first mention.
pub fn gather(typed: &[(Role, PathBuf)]) -> Result<Vec<Input>> {
    let mut roles: Vec<Role> = Vec::new();
    for (role, _) in typed {
        if !roles.contains(role) {
            roles.push(*role);
        }
    }
    let mut found = Vec::new();
    for role in roles.into_iter().filter(|role| *role != Role::Fitted) {
        let paths: Vec<PathBuf> =
            typed.iter().filter(|(r, _)| *r == role).map(|(_, path)| path.clone()).collect();
        found.extend(resolve(role, &paths)?);
    }
    Ok(found)
}

/// Expands, names and opens all inputs of one role. Nothing is returned unless every file can be read.
fn resolve(role: Role, typed: &[PathBuf]) -> Result<Vec<Input>> {
    let mut paths = Vec::new();
    for path in typed {
        paths.extend(expand(role, path)?);
    }
    paths.dedup();
    let ids = ids(role, &paths)?;
    paths.into_iter().zip(ids).map(|(path, id)| open(role, path, id)).collect()
}

fn open(role: Role, path: PathBuf, id: String) -> Result<Input> {
    if path.to_str().is_none() {
        return Err(Error::input(format_args!("the name of {} is not valid UTF-8", path.display()))
            .hint("rename it, or name a link to it"));
    }
    let data = H5ad::open(&path)?;
    let metadata = std::fs::metadata(&path).map_err(Error::io("read", &path))?;
    let real = std::fs::canonicalize(&path).map_err(Error::io("read", &path))?;
    let staged = !is_misread(&path) && !is_misread(&real);
    Ok(Input {
        role,
        id,
        bytes: metadata.len(),
        modified_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
        cells: data.n_obs(),
        genes: data.n_vars(),
        kept_bytes: data.kept_bytes(),
        stored: data.matrix(&Slot::X).ok().map(|matrix| matrix.stored()),
        staged,
        stamp: (!staged)
            .then(|| format!("{} {}.{}", metadata.len(), metadata.mtime(), metadata.mtime_nsec())),
        path,
        scored: None,
        data: None,
    })
}

/// Whether Nextflow's task scripts would misread a path: they stage with `ln -s PATH`, in which quotes and spaces are
/// escaped, but not what the shell expands. `[1]` would even stage another file, if there is one of that name.
pub fn is_misread(path: &Path) -> bool {
    let expanded = |c: char| matches!(c, '$' | '{' | '}' | '[' | ']' | '*' | '?') || c.is_control();
    path.to_string_lossy().contains(expanded)
}

/// What the tasks of the inputs are told apart by. A tag becomes part of a shell script, so it is made harmless, and of the name
/// by which a task is known in the trace, so no two are the same.
pub fn tags(inputs: &[Input]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut tag = |input: &Input| {
        let plain = names::plain(&input.id);
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let free = candidates.find(|tag| taken.insert(tag.clone()));
        free.unwrap_or(plain)
    };
    inputs.iter().map(&mut tag).collect()
}

/// Fails where an input of `role` lacks the obs column that `option` names: the task would find out after its embedding.
pub fn require_column(inputs: &[Input], role: Role, column: &str, option: &str) -> Result<()> {
    for input in inputs.iter().filter(|input| input.role == role) {
        let data = H5ad::open(&input.path)?;
        if data.obs().find(column).is_none() {
            let missing = data.obs().column(column).map(drop);
            missing.map_err(|error| error.hint(format_args!("name the column with `{option}`")))?;
        }
    }
    Ok(())
}

/// Says of every embedding which data set it was made from: the only one of an only embedding, else the one of its file name.
///
/// # Errors
/// Input: an embedding has no data set of its name, or several have it.
pub fn pair(inputs: &mut [Input]) -> Result<()> {
    let data: Vec<(PathBuf, String)> =
        of_role(inputs, Role::Data).map(|input| (input.path.clone(), input.id.clone())).collect();
    let single = data.len() == 1 && of_role(inputs, Role::Embedding).count() == 1;
    for input in inputs.iter_mut().filter(|input| input.role == Role::Embedding) {
        let path = &input.path;
        let same = |other: &&(PathBuf, String)| single || other.0.file_stem() == path.file_stem();
        let own: Vec<&(PathBuf, String)> = data.iter().filter(same).collect();
        let [(_, id)] = own.as_slice() else { return Err(unpaired(path, &data, own.len())) };
        input.data = Some(id.clone());
    }
    Ok(())
}

fn of_role(inputs: &[Input], role: Role) -> impl Iterator<Item = &Input> {
    inputs.iter().filter(move |input| input.role == role)
}

fn unpaired(embedding: &Path, data: &[(PathBuf, String)], found: usize) -> Error {
    let name = embedding.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let files: Vec<String> = data.iter().map(|(path, _)| path.display().to_string()).collect();
    let message = match found {
        0 => format!("no file after --data is called {name}, as the embedding {} is", embedding.display()),
        _ => format!(
            "{found} files after --data are called {name}, as the embedding {} is",
            embedding.display()
        ),
    };
    Error::input(message)
        .cause(format_args!(
            "several embeddings are paired with data by file name; data: {}",
            files.join(", ")
        ))
        .hint("name each data set once, under the file name of its embeddings, or run one pair at a time")
}

/// The files that `typed` stands for: itself, the .h5ad files of a directory, or the matches of a pattern. Sorted.
fn expand(role: Role, typed: &Path) -> Result<Vec<PathBuf>> {
    let absolute = std::path::absolute(typed).map_err(Error::io("resolve", typed))?;
    if absolute.is_dir() {
        let mut found = files_in(&absolute, |name| name.ends_with(".h5ad"))?;
        found.sort();
        if found.is_empty() {
            return Err(Error::input(format_args!("no .h5ad file in {}", typed.display()))
                .hint(format_args!("name a file after {}", role.flag())));
        }
        return Ok(found);
    }
    let pattern = typed.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // A file may have pattern characters in its name: what exists is meant.
    if absolute.symlink_metadata().is_err() && pattern.contains(['*', '?']) {
        let folder = absolute.parent().unwrap_or(Path::new("/"));
        let mut found = files_in(folder, |name| matches(pattern.as_bytes(), name.as_bytes()))?;
        found.sort();
        if found.is_empty() {
            return Err(Error::input(format_args!("no file matches {}", typed.display())));
        }
        return Ok(found);
    }
    Ok(vec![absolute])
}

fn files_in(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(Error::io("list", folder))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("list", folder))?;
        let name = entry.file_name();
        if name.to_str().is_some_and(&wanted) && entry.path().is_file() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Whether `name` matches a shell pattern of `*` and `?`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.first(), name.first()) {
        (None, None) => true,
        (Some(b'*'), _) => matches(&pattern[1..], name) || (!name.is_empty() && matches(pattern, &name[1..])),
        (Some(b'?'), Some(_)) => matches(&pattern[1..], &name[1..]),
        (Some(a), Some(b)) if a == b => matches(&pattern[1..], &name[1..]),
        _ => false,
    }
}

/// The file stems; where two are the same, with as many parent folders in front as it takes.
fn ids(role: Role, paths: &[PathBuf]) -> Result<Vec<String>> {
    let depth = paths.iter().map(|path| path.components().count()).max().unwrap_or(0);
    for parents in 0..depth.max(1) {
        let ids: Vec<String> = paths.iter().map(|path| id(path, parents)).collect();
        let distinct: BTreeMap<&String, ()> = ids.iter().map(|id| (id, ())).collect();
        if distinct.len() == ids.len() {
            return Ok(ids);
        }
    }
    Err(Error::usage(format_args!("the same file is named twice after {}", role.flag())))
}

fn id(path: &Path, parents: usize) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut parts = vec![stem];
    let mut folder = path.parent();
    for _ in 0..parents {
        if let Some(name) = folder.and_then(Path::file_name) {
            parts.insert(0, name.to_string_lossy().into_owned());
        }
        folder = folder.and_then(Path::parent);
    }
    parts.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stems_take_their_folders_in() {
        let paths: Vec<PathBuf> = ["/a/x.h5ad", "/b/x.h5ad"].map(PathBuf::from).to_vec();
        assert_eq!(ids(Role::Data, &paths).unwrap(), ["a_x", "b_x"]);
        let single = [PathBuf::from("/a/my data [1].h5ad")];
        assert_eq!(ids(Role::Data, &single).unwrap(), ["my data [1]"]);
        let same = vec![PathBuf::from("/a/x.h5ad"), PathBuf::from("/c.h5ad"), PathBuf::from("/a/x.h5ad")];
        assert!(ids(Role::Data, &same).is_err());
    }

    #[test]
    fn patterns() {
        assert!(matches(b"*.h5ad", b"pbmc.h5ad"));
        assert!(matches(b"p?mc*", b"pbmc.h5ad"));
        assert!(!matches(b"*.h5ad", b"pbmc.h5"));
    }

    #[test]
    fn tags_are_harmless_and_unique() {
        let input = |id: &str| Input {
            role: Role::Data,
            id: id.to_owned(),
            path: PathBuf::from("/x"),
            bytes: 0,
            cells: 0,
            genes: 0,
            kept_bytes: 0,
            stored: None,
            modified_ns: 0,
            staged: true,
            stamp: None,
            scored: None,
            data: None,
        };
        assert_eq!(tags(&["a b", "a_b", "a\n; rm"].map(input)), ["a_b", "a_b-2", "a___rm"]);
    }
}
