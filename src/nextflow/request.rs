//! What the search for the engine depends on: two options and a snapshot of the environment.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Where to look for Nextflow and Java. Nothing in this module reads the process environment except
/// [`Request::from_env`].
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `--nextflow`: the engine to use, wherever else there is one.
    pub nextflow: Option<PathBuf>,
    /// `--java`: a `java` program or a Java home.
    pub java: Option<PathBuf>,
    environment: HashMap<OsString, OsString>,
}

impl Request {
    /// A request with the environment of this process.
    pub fn from_env(nextflow: Option<PathBuf>, java: Option<PathBuf>) -> Request {
        Request::new(nextflow, java, std::env::vars_os())
    }

    /// A request with an environment of its own.
    pub fn new(
        nextflow: Option<PathBuf>,
        java: Option<PathBuf>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Request {
        Request { nextflow, java, environment: environment.into_iter().collect() }
    }

    /// A variable of the environment; an empty one counts as absent.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    pub(super) fn environment(&self) -> &HashMap<OsString, OsString> {
        &self.environment
    }

    /// A program on the PATH of this environment, as an absolute path.
    pub(super) fn program(&self, name: impl AsRef<OsStr>) -> Option<PathBuf> {
        let here = std::env::current_dir().ok()?;
        which::which_in(name, self.variable("PATH"), here).ok()
    }

    /// The user's cache: `$SCFOUNDRY_CACHE`, else `$XDG_CACHE_HOME/scfoundry`, else `~/.cache/scfoundry`.
    pub fn cache(&self) -> Option<PathBuf> {
        if let Some(cache) = self.variable("SCFOUNDRY_CACHE") {
            return Some(PathBuf::from(cache));
        }
        let base = match self.variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute())
        {
            Some(base) => base,
            None => PathBuf::from(self.variable("HOME")?).join(".cache"),
        };
        Some(base.join("scfoundry"))
    }
}
