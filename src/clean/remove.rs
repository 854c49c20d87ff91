//! Removing what was selected, one directory after the other.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::select::{active, is_link};
use super::{REMOVING, Target};
use crate::error::{Error, Result};
use crate::launch;
use crate::method::Task;
use crate::rundir::{RunDir, Status};
use crate::ui::Ui;

/// Removes the directory; `false` if it was gone already. What a killed run has left alive in its work is ended first.
///
/// # Errors
/// It has come into use meanwhile, or something in it cannot be removed. Part of it may be gone then; the rest has its
/// hidden name and is tried again by the next removal.
pub fn remove(target: &Target, ui: &Ui) -> Result<bool> {
    let taken = match &target.run {
        Some((run, status)) => claim(run).and_then(|(claims, origin)| {
            if *status != Status::Ok {
                launch::end_leftovers(&origin, ui);
            }
            Ok((claims, hide_all(target)?))
        }),
        None => Ok((Vec::new(), vec![target.path.clone()])),
    };
    match taken {
        // Held until all is gone, so that nobody goes on from a run that is being removed.
        Ok((_claims, hidden)) => hidden.iter().try_for_each(|path| delete(path)).map(|()| !hidden.is_empty()),
        Err(_) if target.path.symlink_metadata().is_err() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the folders of tasks that have no runs any more.
pub fn remove_empty_folders(runs: &Path) {
    for task in Task::ALL {
        let folder = runs.join(task.name());
        if !is_link(&folder) {
            // One that is not empty stays, by the meaning of the call.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Claims the run's work and that of the run it resumed, and sees that the run is not under way; gives the directory of the
/// run whose work it uses, too.
///
/// The claim also tells of processes on other machines that share the disk, which the record cannot.
fn claim(run: &RunDir) -> Result<(Vec<File>, PathBuf)> {
    let mut claims = vec![launch::claim(run.path())?];
    let record = run.record()?;
    if active(&record) {
        return Err(Error::failed(format_args!("run {} is {}", run.name(), record.status.name())));
    }
    let origin = record.origin.unwrap_or_else(|| run.path().to_owned());
    if origin != run.path() && origin.is_dir() {
        claims.push(launch::claim(&origin)?);
    }
    Ok((claims, origin))
}

/// Hides the directories of the target: a run beside itself, what is in a run in its directory.
fn hide_all(target: &Target) -> Result<Vec<PathBuf>> {
    let folder = target.path.parent().unwrap_or(&target.path);
    target.directories().iter().map(|path| hide(path, folder)).collect()
}

/// Moves the directory to a hidden name in `folder`, on the same disk.
pub(super) fn hide(path: &Path, folder: &Path) -> Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(Error::input(format_args!("{} has no name", path.display())));
    };
    let free = |path: &PathBuf| path.symlink_metadata().is_err();
    let mut candidates = (1..).map(|number| folder.join(hidden_name(name, number))).filter(free);
    let hidden = candidates.next().unwrap_or_default();
    fs::rename(path, &hidden).map_err(failure(path))?;
    Ok(hidden)
}

fn hidden_name(name: &OsStr, number: u32) -> OsString {
    let mut hidden = OsString::from(REMOVING);
    hidden.push(name);
    if number > 1 {
        hidden.push(format!("-{number}"));
    }
    hidden
}

/// Removes a directory with all in it. The standard library follows no symbolic link in it, not even one that takes a
/// directory's place meanwhile.
pub(super) fn delete(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failure(path)(error)),
        _ => Ok(()),
    }
}

fn failure(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |error| {
        let denied = error.kind() == ErrorKind::PermissionDenied;
        let failed = Error::failed(format_args!("cannot remove {}", path.display())).cause(error);
        if !denied {
            return failed;
        }
        failed.hint(format_args!(
            "it holds files of another user, perhaps root's from a container: `sudo rm -rf -- {}`",
            quoted(path)
        ))
    }
}

/// The path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    if text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
