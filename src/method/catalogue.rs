//! The registry of all methods a run can name.

use std::fmt;
use std::path::{Path, PathBuf};

use super::builtin::PROFILES;
use super::{MethodOption, Profile, Task, nearest, parse_profile};
use crate::error::{Error, Result};

/// Where a profile comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    /// A TOML file of the workspace; the runner's script lies beside it.
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn => f.write_str("built-in"),
            Origin::File(path) => write!(f, "{}", path.display()),
        }
    }
}

#[derive(Debug, Clone)]
struct Entry {
    profile: Profile,
    origin: Origin,
}

/// All methods: those of the binary and those of the workspace, by category and then by name.
#[derive(Debug, Clone)]
pub struct Catalogue {
    entries: Vec<Entry>,
    notes: Vec<String>,
}

impl Catalogue {
    /// The methods that the binary carries.
    ///
    /// # Errors
    /// None in a build whose tests pass.
    pub fn builtin() -> Result<Catalogue> {
        let mut entries = Vec::with_capacity(PROFILES.len());
        for (name, text) in PROFILES {
            let profile = parse_profile(text, Path::new(&format!("{name}.toml")))?;
            entries.push(Entry { profile, origin: Origin::BuiltIn });
        }
        let mut catalogue = Catalogue { entries, notes: Vec::new() };
        catalogue.sort();
        Ok(catalogue)
    }

    /// The built-in methods and those of `<workspace>/methods/*.toml`. A file with the name of a built-in method takes
    /// its place, which `notes` says. A folder that does not exist adds nothing.
    ///
    /// # Errors
    /// Input: the folder or a file cannot be read, or a file is not a sound profile (file, line and key are named).
    pub fn load(methods_dir: Option<&Path>) -> Result<Catalogue> {
        let mut catalogue = Catalogue::builtin()?;
        for path in profile_files(methods_dir)? {
            let text = std::fs::read_to_string(&path).map_err(Error::io("read", &path))?;
            let profile = parse_profile(&text, &path)?;
            catalogue.add(profile, path);
        }
        catalogue.sort();
        Ok(catalogue)
    }

    fn add(&mut self, profile: Profile, path: PathBuf) {
        let built_in = self.entries.iter().position(|entry| entry.profile.name == profile.name);
        if let Some(position) = built_in {
            self.entries.remove(position);
            let note = format!(
                "method \"{}\" is taken from {} in place of the built-in one",
                profile.name,
                path.display()
            );
            self.notes.push(note);
        }
        self.entries.push(Entry { profile, origin: Origin::File(path) });
    }

    fn sort(&mut self) {
        self.entries.sort_by(|a, b| {
            (a.profile.category, &a.profile.name).cmp(&(b.profile.category, &b.profile.name))
        });
    }

    /// All methods, by category and then by name.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.entries.iter().map(|entry| &entry.profile)
    }

    /// The methods that can do the task, in the same order. Check, benchmark and geometry take any method.
    pub fn for_task(&self, task: Task) -> impl Iterator<Item = &Profile> {
        self.iter().filter(move |profile| !task.is_done_by_a_method() || profile.supports(task))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What the user should know of the files read: one line for each built-in method that a file replaces.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Where the method's profile comes from.
    pub fn origin(&self, name: &str) -> Option<&Origin> {
        self.entries.iter().find(|entry| entry.profile.name == name).map(|entry| &entry.origin)
    }

    /// The method of this name.
    ///
    /// # Errors
    /// Usage, with the names it may have meant.
    pub fn get(&self, name: &str) -> Result<&Profile> {
        self.iter().find(|profile| profile.name == name).ok_or_else(|| {
            let names = nearest(name, self.iter().map(|profile| profile.name.as_str()));
            let all = format!("\"scfoundry list methods\" lists all {}", self.len());
            let hint = match names.as_slice() {
                [] => all,
                names => format!("did you mean {}? {all}", one_of(names)),
            };
            Error::usage(format_args!("method \"{name}\" is unknown")).hint(hint)
        })
    }

    /// The method of this name, if it can do the task.
    ///
    /// # Errors
    /// Usage: unknown, with the names it may have meant; or not for this task, with the methods that are.
    pub fn get_for(&self, name: &str, task: Task) -> Result<&Profile> {
        let profile = self.get(name)?;
        if !task.is_done_by_a_method() || profile.supports(task) {
            return Ok(profile);
        }
        let able: Vec<&str> = self.for_task(task).map(|profile| profile.name.as_str()).collect();
        Err(Error::usage(format_args!("method \"{name}\" cannot do {task}"))
            .hint(format_args!("methods that can: {}", able.join(", "))))
    }

    /// Names of the methods that use the option in the task, in the order of lists.
    pub fn who_honours(&self, task: Task, option: MethodOption) -> Vec<&str> {
        self.iter()
            .filter(|profile| profile.honours(task, option))
            .map(|profile| profile.name.as_str())
            .collect()
    }

    /// Names of the methods that read `--parameter value` in the task, in the order of lists.
    pub fn who_reads(&self, task: Task, parameter: &str) -> Vec<&str> {
        self.iter()
            .filter(|profile| profile.reads(task, parameter))
            .map(|profile| profile.name.as_str())
            .collect()
    }

    /// The warning for an option that was given and that the method does not use; none where it does.
    pub fn unused_option(&self, profile: &Profile, task: Task, option: MethodOption) -> Option<String> {
        if profile.honours(task, option) {
            return None;
        }
        let place = if task == Task::Finetune { " in finetune" } else { "" };
        Some(format!(
            "{} has no {}{place}; {option} is not used ({})",
            profile.name,
            option.noun(),
            those(&self.who_honours(task, option), "have one")
        ))
    }

    /// The warning for a parameter that some methods read in the task and this one does not. None where it does, or
    /// where no method knows the name.
    pub fn unused_parameter(&self, profile: &Profile, task: Task, parameter: &str) -> Option<String> {
        let readers = self.who_reads(task, parameter);
        if readers.is_empty() || profile.reads(task, parameter) {
            return None;
        }
        Some(format!(
            "{} does not read {parameter}; --{parameter} is not used ({})",
            profile.name,
            those(&readers, "do")
        ))
    }
}

/// The TOML files of the folder, in the order of their names; hidden files are left out.
fn profile_files(methods_dir: Option<&Path>) -> Result<Vec<PathBuf>> {
    let Some(folder) = methods_dir else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    let listing = match std::fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        Err(error) => return Err(Error::io("read", folder)(error)),
    };
    for entry in listing {
        let path = entry.map_err(Error::io("read", folder))?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// `"a", "b" or "c"`.
fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// `methods that VERB: a, b`, or that there is none.
fn those(names: &[&str], verb: &str) -> String {
    if names.is_empty() {
        return "no method has it here".to_owned();
    }
    format!("methods that {verb}: {}", names.join(", "))
}
