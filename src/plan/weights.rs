//! The weight files that a method's model is made of, and whether they are there.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use super::Plan;
use crate::error::Error;
use crate::method::Profile;

/// A weight file of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Weight {
    pub path: PathBuf,
    pub present: bool,
    /// Size as the profile has it, absent where it is not known.
    pub bytes: Option<u64>,
}

impl Plan {
    /// The files of the model that are not there.
    pub fn missing_weights(&self) -> impl Iterator<Item = &Path> {
        self.weights.iter().filter(|weight| !weight.present).map(|weight| weight.path.as_path())
    }

    /// Why it cannot be run here, of kind Environment: this build has no way to do it, or files of the model are missing.
    pub fn obstacle(&self) -> Option<Error> {
        if let Some(reason) = &self.unavailable {
            return Some(
                Error::environment(reason)
                    .hint("`--dry-run` shows what would be run; `scfoundry list methods` marks what runs"),
            );
        }
        let first = self.missing_weights().next()?;
        let method = self.method.as_deref().unwrap_or_default();
        let error = Error::environment(format_args!("weights of {method} are missing: {}", first.display()));
        let error = match self.missing_weights().count() - 1 {
            0 => error,
            others => error.cause(format_args!("and {others} other files of this model")),
        };
        Some(error.hint(format_args!(
            "`scfoundry download --method {method} --dry-run` names the files and where they are from; `--weights-dir` says \
             where they are"
        )))
    }
}

/// The files of the chosen model below the weights directory; none for a method without, or weights of one's own.
pub fn weights(profile: Option<&Profile>, parameters: &Map<String, Value>, folder: &Path) -> Vec<Weight> {
    let chosen = parameters.get("model").and_then(Value::as_str);
    let Some(model) = profile.zip(chosen).and_then(|(profile, name)| profile.model(name)) else {
        return Vec::new();
    };
    let describe = |file: &crate::method::WeightFile| {
        let path = folder.join(&file.path);
        Weight { present: path.exists(), bytes: file.bytes, path }
    };
    model.files.iter().map(describe).collect()
}
