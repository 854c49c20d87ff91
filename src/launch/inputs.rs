//! Inputs whose paths Nextflow's task scripts would misread.
//!
//! A task stages its input with `ln -s PATH`, in which Nextflow escapes quotes and spaces, but not what the shell expands:
//! `$x`, `{a,b}`, and `[1]`, which would even stage another file if there is one of that name. Such an input goes under a
//! plain link in the run directory.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// What the shell expands in a word that Nextflow has escaped.
const EXPANDED: [char; 7] = ['$', '{', '}', '[', ']', '*', '?'];

/// Replaces such paths in the `inputs` of the pipeline's parameters by links in `origin/inputs`.
///
/// The links are those of the run that is resumed, since a task is known again by its input's path.
pub fn make_plain(parameters: &mut Map<String, Value>, origin: &Path) -> Result<()> {
    let inputs = parameters.get_mut("inputs").and_then(Value::as_array_mut);
    for (number, input) in inputs.into_iter().flatten().enumerate() {
        let Some(path) = input["path"].as_str().filter(|path| path.contains(is_misread)) else { continue };
        let link = origin.join("inputs").join(format!("{number}.h5ad"));
        if std::fs::read_link(&link).ok().as_deref() != Some(Path::new(path)) {
            std::fs::create_dir_all(origin.join("inputs")).map_err(Error::io("create", &link))?;
            symlink(path, &link).map_err(Error::io("create", &link))?;
        }
        input["path"] = link.to_string_lossy().into();
    }
    Ok(())
}

fn is_misread(character: char) -> bool {
    EXPANDED.contains(&character) || character.is_control()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_would_be_misread_is_linked() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = json!([{ "path": "/data/it's a (b).h5ad" }, { "path": "/data/$x [1].h5ad" }]);
        let mut parameters = Map::from_iter([("inputs".to_owned(), inputs)]);
        for _ in 0..2 {
            let mut again = parameters.clone();
            make_plain(&mut again, folder.path()).unwrap();
            let link = folder.path().join("inputs/1.h5ad");
            assert_eq!(again["inputs"], json!([{ "path": "/data/it's a (b).h5ad" }, { "path": link }]));
            assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("/data/$x [1].h5ad"));
        }
        parameters.clear();
        make_plain(&mut parameters, folder.path()).unwrap();
    }
}
