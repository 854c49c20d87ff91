//! The script that does a method's work, and where its tasks find it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::method::{Origin, Profile, RunnerKind, SHARED_RUNNER_FILES, Task, built_in_runner};

/// A method's script and the package that all share. Tasks are given the directory, whose name tells its contents: a resumed
/// run finds the same path again for the same script, and another one for a script that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Runner {
    /// File name of the script.
    pub entry: String,
    /// It is of the workspace: only its author knows what it reads.
    pub own: bool,
    /// Made from the files when the run starts.
    pub directory: PathBuf,
    /// Path in the directory, and contents.
    #[serde(skip)]
    pub files: Vec<(String, Vec<u8>)>,
}

impl Runner {
    /// The runner of a method of the workspace, whose script lies beside its profile, or of a built-in one that can do the
    /// task. A native method has none.
    ///
    /// # Errors
    /// Input: the script is not there or cannot be read.
    pub fn of(
        profile: &Profile,
        task: Task,
        origin: Option<&Origin>,
        cache: &Path,
    ) -> Result<Option<Runner>> {
        let entry = &profile.runner.entry;
        let script = match origin {
            _ if profile.runner.kind == RunnerKind::Native => return Ok(None),
            Some(Origin::File(toml)) => read(profile, toml)?,
            _ => match built_in_runner(entry).filter(|runner| runner.tasks.contains(&task)) {
                Some(runner) => runner.script.as_bytes().to_vec(),
                None => return Ok(None),
            },
        };
        let shared =
            SHARED_RUNNER_FILES.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        let files: Vec<_> = shared.chain([(entry.clone(), script)]).collect();
        let directory = cache.join("runners").join(format!("{}-{}", profile.name, &hash(&files)[..16]));
        let own = matches!(origin, Some(Origin::File(_)));
        Ok(Some(Runner { entry: entry.clone(), own, directory, files }))
    }
}

fn read(profile: &Profile, toml: &Path) -> Result<Vec<u8>> {
    let path = toml.with_file_name(&profile.runner.entry);
    std::fs::read(&path).map_err(|error| {
        Error::input(format_args!("method \"{}\" has no runner", profile.name))
            .cause(format_args!("cannot read {}: {error}", path.display()))
            .hint(format_args!("key \"runner.entry\" of {} names it", toml.display()))
    })
}

fn hash(files: &[(String, Vec<u8>)]) -> String {
    let mut hasher = Sha256::new();
    for part in files.iter().flat_map(|(path, contents)| [path.as_bytes(), contents]) {
        // With lengths in front, no other files give the hasher the same bytes.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    format!("{:x}", hasher.finalize())
}
