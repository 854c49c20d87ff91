//! The method's script, put where its tasks find it.

use std::fs;

use crate::error::{Error, Result};
use crate::plan::Runner;

/// Makes the runner's directory, whole or not at all. One that is there has the same contents: its name says so.
pub fn install(runner: &Runner) -> Result<()> {
    let directory = &runner.directory;
    if directory.join(&runner.entry).is_file() {
        return Ok(());
    }
    let parent = directory.parent().unwrap_or(directory);
    fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    let partial = tempfile::Builder::new().prefix(".scfoundry-").tempdir_in(parent);
    let partial = partial.map_err(Error::io("create", parent))?;
    let whole = partial.path().join("runner");
    for (path, contents) in &runner.files {
        let file = whole.join(path);
        let folder = file.parent().unwrap_or(&whole);
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        fs::write(&file, contents).map_err(Error::io("write", &file))?;
    }
    match fs::rename(&whole, directory) {
        Ok(()) => Ok(()),
        // Another run of the same method was faster.
        Err(_) if directory.join(&runner.entry).is_file() => Ok(()),
        Err(error) => Err(Error::io("create", directory)(error)),
    }
}
