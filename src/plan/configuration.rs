//! Which configuration files and profiles Nextflow will read, and what they say in plain words.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::request::Request;
use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::workspace::{Config, Workspace};

/// The files of `--config`, absolute.
///
/// # Errors
/// Input: one is not there.
pub fn files(request: &Request) -> Result<Vec<PathBuf>> {
    let absolute = |path: &PathBuf| -> Result<PathBuf> {
        let absolute = std::path::absolute(path).map_err(Error::io("resolve", path))?;
        match absolute.is_file() {
            true => Ok(absolute),
            false => Err(Error::input(format_args!("cannot read {}", path.display()))
                .cause("no such file")
                .hint("`--config` takes a Nextflow configuration file")),
        }
    };
    request.configs.iter().map(absolute).collect()
}

/// The profiles of the configuration: as typed, after `--` too, else the one that the settings name.
pub fn profile(request: &Request, settings: &Settings) -> Option<String> {
    let after = option_after(&request.nextflow_args, &["-profile"]).next();
    match (&request.profile, after) {
        (Some(typed), _) => Some(typed.clone()),
        (None, Some(_)) => None,
        (None, None) => settings.profile.as_ref().map(|profile| profile.value.clone()),
    }
}

/// What the files say that Nextflow will read before the run's own: the workspace's and those given on the command line.
pub fn read(
    workspace: &Workspace,
    configs: &[PathBuf],
    request: &Request,
    profile: Option<&str>,
) -> Result<Config> {
    let own = workspace.nextflow_config();
    // A relative path after `--` counts from the run directory, which is not there yet.
    let after = option_after(&request.nextflow_args, &["-c", "-config"]).map(Path::new);
    let after: Vec<&Path> = after.filter(|path| path.is_absolute() && path.is_file()).collect();
    let paths: Vec<&Path> =
        [own.as_path()].into_iter().chain(configs.iter().map(PathBuf::as_path)).chain(after).collect();
    let typed = option_after(&request.nextflow_args, &["-profile"]).next();
    Config::read_all(&paths, profile.or_else(|| typed?.to_str()))
}

/// The values of an option of Nextflow's among the arguments after `--`.
fn option_after<'a>(arguments: &'a [OsString], names: &'a [&str]) -> impl Iterator<Item = &'a OsString> {
    arguments.windows(2).filter(move |pair| names.iter().any(|name| pair[0] == *name)).map(|pair| &pair[1])
}
