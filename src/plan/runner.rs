//! The script that does a method's work, and where its tasks find it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::method::{Origin, Profile, RunnerKind};

/// A method's script. Tasks are given the directory, whose name tells its contents: a resumed run finds the same path
/// again for the same script, and another one for a script that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Runner {
    /// File name of the script.
    pub entry: String,
    /// Made from the script when the run starts.
    pub directory: PathBuf,
    #[serde(skip)]
    pub script: Vec<u8>,
}

impl Runner {
    /// The runner of a method of the workspace, whose script lies beside its profile. A built-in method has none yet.
    ///
    /// # Errors
    /// Input: the script is not there or cannot be read.
    pub fn of(profile: &Profile, origin: Option<&Origin>, cache: &Path) -> Result<Option<Runner>> {
        let Some(Origin::File(toml)) = origin.filter(|_| profile.runner.kind != RunnerKind::Native) else {
            return Ok(None);
        };
        let path = toml.with_file_name(&profile.runner.entry);
        let script = std::fs::read(&path).map_err(|error| {
            Error::input(format_args!("method \"{}\" has no runner", profile.name))
                .cause(format_args!("cannot read {}: {error}", path.display()))
                .hint(format_args!("key \"runner.entry\" of {} names it", toml.display()))
        })?;
        let hash = format!("{:x}", Sha256::digest(&script));
        let directory = cache.join("runners").join(format!("{}-{}", profile.name, &hash[..16]));
        Ok(Some(Runner { entry: profile.runner.entry.clone(), directory, script }))
    }
}
