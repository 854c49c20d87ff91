//! Links with plain names to inputs whose own names the shell would expand in the scripts of tasks.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::plan::{Plan, expanded_by_shell};

/// The plan with such inputs reached through `<origin>/inputs/`: the same links for a run and all that resume it, so that
/// the engine knows their tasks again.
pub fn with_plain_names(plan: &Plan, origin: &Path) -> Result<Plan> {
    let mut plan = plan.clone();
    let Some(Value::Array(described)) = plan.parameters.get_mut("inputs") else { return Ok(plan) };
    for (number, (input, described)) in plan.inputs.iter().zip(described).enumerate() {
        if expanded_by_shell(&input.path).is_none() {
            continue;
        }
        let folder = origin.join("inputs");
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let link = folder.join(format!("{number}.h5ad"));
        match symlink(&input.path, &link) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(Error::io("create", &link)(error));
            }
            _ => described["path"] = json!(link),
        }
    }
    Ok(plan)
}
