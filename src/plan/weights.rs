//! The weight files that a method's model is made of, and whether they are there.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::method::Profile;

/// A weight file of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Weight {
    pub path: PathBuf,
    pub present: bool,
    /// Size as the profile has it, absent where it is not known.
    pub bytes: Option<u64>,
}

/// The files of `model` below the weights directory; none for a method or a model of one's own without listed files.
pub fn weights(profile: &Profile, model: Option<&str>, folder: &Path) -> Vec<Weight> {
    let Some(model) = model.and_then(|name| profile.model(name)) else { return Vec::new() };
    let describe = |file: &crate::method::WeightFile| {
        let path = folder.join(&file.path);
        Weight { present: path.exists(), bytes: file.bytes, path }
    };
    model.files.iter().map(describe).collect()
}
