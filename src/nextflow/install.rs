//! Putting things in place, and the lines that install what we cannot.

use std::path::Path;

use super::Request;
use super::store::cache_error;
use crate::error::Result;

/// Gives a directory that is whole its final name, in place of what had it.
pub(super) fn directory(built: &Path, place: &Path) -> Result<()> {
    for entry in std::fs::read_dir(built).map_err(cache_error("read", built))?.flatten() {
        // On disk before it has its name; a file that cannot be opened was found wrong before.
        if let Ok(file) = std::fs::File::open(entry.path()) {
            file.sync_all().map_err(cache_error("write", place))?;
        }
    }
    if place.exists() {
        std::fs::remove_dir_all(place).map_err(cache_error("remove", place))?;
    }
    std::fs::rename(built, place).map_err(cache_error("create", place))
}

/// The line to type for a package of Debian, or of what this machine has instead.
pub(super) fn line(request: &Request, package: &str) -> String {
    let other = |debian: &str| match debian {
        "openjdk-17-jre-headless" => "java-17-openjdk-headless".to_owned(),
        other => other.to_owned(),
    };
    let sudo = if rustix::process::geteuid().is_root() { "" } else { "sudo " };
    let has = |program: &str| request.program(program).is_some();
    if has("apt-get") {
        format!("`{sudo}apt-get install {package}`")
    } else if has("dnf") {
        format!("`{sudo}dnf install {}`", other(package))
    } else if has("conda") {
        let package = if package.starts_with("openjdk") { "openjdk" } else { package };
        format!("`conda install -c conda-forge {package}`")
    } else {
        format!("install {} (on Debian: `apt-get install {package}`)", other(package))
    }
}
