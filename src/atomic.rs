//! Files and directories that are whole or not there: written beside their place, synced, then renamed.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Writes `contents` to `path`, replacing what is there in one step.
///
/// # Errors
/// Environment for a full disk, else Input; nothing is left then.
pub fn write(path: &Path, contents: &[u8]) -> Result<()> {
    replace(path, |file| file.write_all(contents)).map_err(Error::io("write", path))
}

/// Moves a finished file or directory to `target`, or copies it where that is on another disk, replacing what is there:
/// a file in one step, a directory by moving the old one aside first.
///
/// # Errors
/// Environment for a full disk, else Input; `target` is as it was then.
pub fn publish(source: &Path, target: &Path) -> Result<()> {
    let folder = folder_of(target);
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    if source.is_dir() {
        return publish_directory(source, target);
    }
    let sync = || File::open(source)?.sync_all();
    sync().map_err(Error::io("read", source))?;
    if fs::rename(source, target).is_ok() {
        return Ok(());
    }
    replace(target, |file| io::copy(&mut File::open(source)?, file).map(drop))
        .map_err(Error::io("write", target))?;
    // The copy is in place; a leftover in the run directory does no harm.
    let _ = fs::remove_file(source);
    Ok(())
}

fn publish_directory(source: &Path, target: &Path) -> Result<()> {
    let folder = folder_of(target);
    let beside = || tempfile::Builder::new().prefix(".scfoundry-").tempdir_in(folder);
    // Removed with what is left in it: the old directory, or half a copy.
    let aside = beside().map_err(Error::io("create", folder))?;
    let (old, copy) = (aside.path().join("old"), aside.path().join("new"));
    let movable = fs::rename(source, &copy).is_ok();
    if !movable {
        copy_tree(source, &copy)?;
    }
    let put = || {
        let replaced = target.symlink_metadata().is_ok();
        if replaced {
            fs::rename(target, &old)?;
        }
        fs::rename(&copy, target).inspect_err(|_| {
            // Back to as it was; should that fail too, the first error is the one to tell.
            if replaced {
                let _ = fs::rename(&old, target);
            }
        })?;
        File::open(folder)?.sync_all()
    };
    put().map_err(Error::io("write", target)).inspect_err(|_| {
        if movable {
            let _ = fs::rename(&copy, source);
        }
    })?;
    if !movable {
        // The copy is in place; a leftover in the run directory does no harm.
        let _ = fs::remove_dir_all(source);
    }
    Ok(())
}

/// Copies a directory with all in it to a new place, and waits until it is on disk.
///
/// # Errors
/// Environment for a full disk, else Input; what has been copied is left.
pub fn copy_tree(source: &Path, target: &Path) -> Result<()> {
    fs::create_dir(target).map_err(Error::io("create", target))?;
    for entry in fs::read_dir(source).map_err(Error::io("list", source))? {
        let entry = entry.map_err(Error::io("list", source))?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        if from.is_dir() {
            copy_tree(&from, &to)?;
        } else {
            let copy = || {
                fs::copy(&from, &to)?;
                File::open(&to)?.sync_all()
            };
            copy().map_err(Error::io("write", &to))?;
        }
    }
    let sync = || File::open(target)?.sync_all();
    sync().map_err(Error::io("write", target))
}

/// A temporary file with the permissions of any new file, so less what the umask takes away; removed unless persisted.
pub fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    let ordinary = Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(".scfoundry-").permissions(ordinary).tempfile_in(folder)
}

/// The directory that holds `path`, for a bare file name the current one.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn replace(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = folder_of(path);
    let mut file = temporary_in(folder)?;
    fill(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        write(&path, b"old").unwrap();
        let failed = replace(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn publishing_replaces_and_removes_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("staged"), folder.path().join("new/x"));
        fs::write(&source, "new").unwrap();
        publish(&source, &target).unwrap();
        assert!(!source.exists());
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    /// A directory of two files, one of them deeper.
    fn tree(root: &Path, text: &str) {
        fs::create_dir_all(root.join("deep")).unwrap();
        fs::write(root.join("a"), text).unwrap();
        fs::write(root.join("deep/b"), text).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_directory_takes_the_place_of_an_old_one_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("staged"), folder.path().join("models/x"));
        tree(&target, "old");
        fs::write(target.join("gone"), "old").unwrap();
        tree(&source, "new");
        publish(&source, &target).unwrap();
        assert_eq!(names(&target), ["a", "deep"]);
        assert_eq!(fs::read(target.join("deep/b")).unwrap(), b"new");
        assert_eq!(names(&folder.path().join("models")), ["x"], "nothing is left beside it");
        assert!(!source.exists());
    }

    #[test]
    fn a_directory_is_copied_to_another_disk() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
        let (source, target) = (other.path().join("staged"), folder.path().join("x"));
        tree(&source, "new");
        tree(&target, "old");
        publish(&source, &target).unwrap();
        assert_eq!(fs::read(target.join("deep/b")).unwrap(), b"new");
        assert_eq!((names(folder.path()), source.exists()), (vec!["x".to_owned()], false));
    }

    #[test]
    fn a_directory_that_cannot_be_copied_leaves_the_old_one() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
        let (source, target) = (other.path().join("staged"), folder.path().join("x"));
        tree(&source, "new");
        tree(&target, "old");
        std::os::unix::fs::symlink("nowhere", source.join("broken")).unwrap();
        let error = publish(&source, &target).unwrap_err();
        assert!(error.message.starts_with("cannot write "), "{error}");
        assert_eq!(fs::read(target.join("deep/b")).unwrap(), b"old");
        assert_eq!((names(folder.path()), source.exists()), (vec!["x".to_owned()], true));
    }
}
