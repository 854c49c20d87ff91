//! How much disk space a run takes, as far as that is known before it: a lower bound.
//!
//! Counted are embeddings, which a task writes and the engine copies before they are moved to their place, and weights that
//! are missing. Models and tables are not; images that will be pulled are known only to a registry, which `launch` asks.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Input, Plan};
use crate::method::{Profile, Task};
use crate::settings::Settings;

/// The least that a run writes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// All shares together; 0 where nothing is known.
    pub bytes: u64,
    pub shares: Vec<Share>,
}

/// What goes to one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Share {
    pub part: Part,
    /// A directory at or below which it is written; it may not exist yet.
    pub path: PathBuf,
    pub bytes: u64,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    Results,
    /// By the tasks, in the run's directory.
    Work,
    Weights,
    /// By the container engine.
    Images,
}

impl Part {
    pub fn name(self) -> &'static str {
        match self {
            Part::Results => "results",
            Part::Work => "work",
            Part::Weights => "weights",
            Part::Images => "images",
        }
    }
}

impl Disk {
    /// What the plan's inputs, its method's dimensions and its missing weights come to.
    pub(super) fn of(
        plan: &Plan,
        profile: Option<&Profile>,
        parameters: &Map<String, Value>,
        settings: &Settings,
    ) -> Disk {
        let embedded = matches!(plan.task, Task::Embed | Task::Transfer);
        let embeddings = profile
            .filter(|_| embedded)
            .map_or(0, |profile| plan.inputs.iter().map(|input| embedding(input, profile, parameters)).sum());
        let missing = plan.weights.iter().filter(|weight| !weight.present).filter_map(|weight| weight.bytes);
        let shares: Vec<Share> = [
            (Part::Results, &settings.outdir.value, embeddings),
            (Part::Work, &plan.workspace.join("runs"), embeddings),
            (Part::Weights, &settings.weights_dir.value, missing.sum()),
        ]
        .into_iter()
        .filter(|(.., bytes)| *bytes > 0)
        .map(|(part, path, bytes)| Share { part, path: path.clone(), bytes })
        .collect();
        Disk { bytes: shares.iter().map(|share| share.bytes).sum(), shares }
    }
}

/// The bytes of an embedding file: float32 values and what it takes over of its input; 0 where its dimensions are not known.
fn embedding(input: &Input, profile: &Profile, parameters: &Map<String, Value>) -> u64 {
    let Some(dimensions) = dimensions(input, profile, parameters) else { return 0 };
    let values = (input.cells as u64).saturating_mul(dimensions).saturating_mul(4);
    values.saturating_add(input.kept_bytes)
}

/// As many components as were asked for or the input has; else what the profile says of its default model.
fn dimensions(input: &Input, profile: &Profile, parameters: &Map<String, Value>) -> Option<u64> {
    let most = input.cells.min(input.genes).saturating_sub(1) as u64;
    if let Some(asked) = parameters.get("pca_n_comps").and_then(Value::as_u64) {
        return Some(asked.min(most));
    }
    let chosen = parameters.get("model").and_then(Value::as_str);
    let default = profile.default_model().map(|model| model.name.as_str());
    profile.dimension.filter(|_| chosen == default).map(u64::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::method::Catalogue;
    use crate::plan::Role;

    fn bytes(method: &str, parameters: Value) -> u64 {
        let input = Input {
            role: Role::Data,
            id: "x".to_owned(),
            path: PathBuf::from("/x"),
            bytes: 0,
            cells: 1000,
            genes: 200,
            kept_bytes: 77,
            stored: None,
            modified_ns: 0,
            staged: true,
            stamp: None,
            scored: None,
            data: None,
        };
        let catalogue = Catalogue::load(None).unwrap();
        embedding(&input, catalogue.get(method).unwrap(), parameters.as_object().unwrap())
    }

    #[test]
    fn values_and_annotation_count() {
        assert_eq!(bytes("pca", json!({ "pca_n_comps": 30 })), 1000 * 30 * 4 + 77);
        // No more components than the data have.
        assert_eq!(bytes("pca", json!({ "pca_n_comps": 5000 })), 1000 * 199 * 4 + 77);
    }

    #[test]
    fn the_dimension_of_a_profile_is_that_of_its_default_model() {
        let default = bytes("scgpt", json!({ "model": "scGPT/scGPT_human" }));
        assert_eq!(default, 1000 * 512 * 4 + 77);
        assert_eq!(bytes("scgpt", json!({ "model": "another" })), 0, "guessed");
    }
}
