//! Plain names for inputs whose own names the shell would expand in the scripts of tasks.

use std::path::Path;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::plan::{Plan, expanded_by_shell};

/// The plan with such inputs reached through `<origin>/inputs/`: under the same names for a run and all that resume it, so
/// that the engine knows their tasks again.
///
/// # Errors
/// Where a file can have no second name, as on another disk. A symbolic link will not do: Nextflow looks through it.
pub fn with_plain_names(plan: &Plan, origin: &Path) -> Result<Plan> {
    let mut plan = plan.clone();
    let Some(Value::Array(described)) = plan.parameters.get_mut("inputs") else { return Ok(plan) };
    for (number, (input, described)) in plan.inputs.iter().zip(described).enumerate() {
        let Some(character) = expanded_by_shell(&input.path) else { continue };
        let folder = origin.join("inputs");
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let link = folder.join(format!("{number}.h5ad"));
        // An earlier run's may be that of a file which has been replaced since.
        let _ = std::fs::remove_file(&link);
        std::fs::canonicalize(&input.path).and_then(|file| std::fs::hard_link(file, &link)).map_err(
            |error| {
                let path = input.path.display();
                Error::input(format_args!("Nextflow cannot read {path}: there is {character:?} in its name"))
                    .cause(format_args!("it could not be linked to {}: {error}", link.display()))
                    .hint("give the file, or the folder it is in, another name")
            },
        )?;
        described["path"] = json!(link);
    }
    Ok(plan)
}
