//! The weight files that a method's model is made of, and whether they are there.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::method::Profile;

/// A weight file of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Weight {
    pub path: PathBuf,
    pub present: bool,
    /// Size as the profile has it, absent where it is not known.
    pub bytes: Option<u64>,
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
