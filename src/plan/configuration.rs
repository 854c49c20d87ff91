//! Which configuration files and profiles Nextflow will read, and what they say in plain words.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Context;
use super::request::Request;
use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::workspace::Config;

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

/// The file that a site has all its users' runs read.
///
/// # Errors
/// Input: it is not there; Nextflow would go on without it and without the run's own.
pub fn of_the_site(context: &Context<'_>) -> Result<Option<PathBuf>> {
    let Some(given) = (context.variable)("NXF_CONFIG_FILE") else { return Ok(None) };
    let path = std::path::absolute(&given).map_err(Error::io("resolve", Path::new(&given)))?;
    match path.is_file() {
        true => Ok(Some(path)),
        false => Err(Error::input(format_args!("cannot read {given}, given by $NXF_CONFIG_FILE"))
            .cause("no such file")
            .hint("`unset NXF_CONFIG_FILE`, or name a Nextflow configuration file")),
    }
}

/// What the files say that Nextflow will read beside the run's own: the site's, the workspace's, and those given on the command
/// line, which win.
pub fn read(
    context: &Context<'_>,
    outer: Option<&Path>,
    configs: &[PathBuf],
    request: &Request,
    profile: Option<&str>,
) -> Result<Config> {
    let own = context.workspace.nextflow_config();
    // A relative path after `--` counts from the run directory, which is not there yet.
    let after = option_after(&request.nextflow_args, &["-c", "-config"]).map(Path::new);
    let after: Vec<&Path> = after.filter(|path| path.is_absolute() && path.is_file()).collect();
    let inner = configs.iter().map(PathBuf::as_path).chain(after);
    let outer = outer.into_iter().chain([own.as_path()]);
    let paths: Vec<&Path> = outer.chain(inner).collect();
    let typed = option_after(&request.nextflow_args, &["-profile"]).next();
    Config::read_all(&paths, profile.or_else(|| typed?.to_str()))
}

/// The values of an option of Nextflow's among the arguments after `--`.
fn option_after<'a>(arguments: &'a [OsString], names: &'a [&str]) -> impl Iterator<Item = &'a OsString> {
    arguments.windows(2).filter(move |pair| names.iter().any(|name| pair[0] == *name)).map(|pair| &pair[1])
}
