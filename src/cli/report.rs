//! What a finished run reports in its results, told to the user.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::launch::Finished;
use crate::ui::Ui;

/// The reports of a finished check on stdout: as text, or as the JSON documents in a list.
pub fn print_reports(finished: &Finished, ui: &Ui) -> Result<()> {
    for path in reports(finished, "txt") {
        ui.line(read(path)?.trim_end())?;
    }
    Ok(())
}

/// The reports of a finished check as JSON.
pub fn documents(finished: &Finished) -> Result<Vec<Value>> {
    reports(finished, "json").map(parse).collect()
}

/// The result whose name has this ending, a JSON document; none if the run made none.
pub fn published<T: DeserializeOwned>(finished: &Finished, ending: &str) -> Result<Option<T>> {
    let wanted = |path: &&PathBuf| path.to_string_lossy().ends_with(ending);
    finished.published.iter().find(wanted).map(|path| parse(path)).transpose()
}

/// The JSON document of this name in a directory among the results; none if the run made none.
pub fn within<T: DeserializeOwned>(finished: &Finished, name: &str) -> Result<Option<T>> {
    let mut paths = finished.published.iter().map(|path| path.join(name));
    paths.find(|path| path.is_file()).map(|path| parse(&path)).transpose()
}

/// With `--strict`: an error when a file failed the check.
pub fn verdict(finished: &Finished) -> Result<()> {
    let failed: Vec<String> = documents(finished)?
        .iter()
        .filter(|report| report["verdict"] == "FAIL")
        .map(|report| report["file"].as_str().unwrap_or_default().to_owned())
        .collect();
    match failed.as_slice() {
        [] => Ok(()),
        [one] => Err(Error::input(format_args!("{one} failed the check"))),
        [first, rest @ ..] => {
            Err(Error::input(format_args!("{first} and {} more failed the check", rest.len())))
        }
    }
}

fn reports<'a>(finished: &'a Finished, extension: &'a str) -> impl Iterator<Item = &'a Path> {
    let wanted = move |path: &&Path| path.extension().is_some_and(|found| found == extension);
    finished.published.iter().map(PathBuf::as_path).filter(wanted)
}

fn parse<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_str(&read(path)?)
        .map_err(|error| Error::failed(format_args!("{} is not a report", path.display())).cause(error))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(Error::io("read", path))
}
