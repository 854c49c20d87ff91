//! Files that are whole or not there: written beside their place, synced, then renamed.

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

/// Moves a finished file to `target`, or copies it where that is on another disk, replacing what is there in one step.
///
/// # Errors
/// Environment for a full disk, else Input; `target` is as it was then.
pub fn publish(source: &Path, target: &Path) -> Result<()> {
    let folder = folder_of(target);
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
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
}
