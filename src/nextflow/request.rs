//! What the search for the engine depends on: two options and a snapshot of the environment.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::Origin;
use crate::settings::{self, Setting, Settings};

/// Where to look for Nextflow and Java. Nothing in this module reads the process environment except
/// [`Request::from_env`].
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `--nextflow`: the engine to use, wherever else there is one.
    pub nextflow: Option<PathBuf>,
    /// What names it, for messages: `--nextflow`, unless the settings say otherwise.
    pub named_by: Origin,
    /// `--java`: a `java` program or a Java home.
    pub java: Option<PathBuf>,
    environment: HashMap<OsString, OsString>,
}

impl Request {
    /// What the settings in force ask for, with the environment of this process.
    pub fn of(settings: &Settings) -> Request {
        let path = |setting: &Option<Setting<PathBuf>>| setting.as_ref().map(|setting| setting.value.clone());
        let mut request = Request::from_env(path(&settings.nextflow), path(&settings.java));
        request.named_by = match settings.nextflow.as_ref().map(|setting| &setting.origin) {
            Some(settings::Origin::Environment(_)) => Origin::Environment,
            Some(settings::Origin::File(_)) => Origin::Settings,
            _ => Origin::Option,
        };
        request
    }

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
        Request { nextflow, named_by: Origin::Option, java, environment: environment.into_iter().collect() }
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

    /// The variable that gives Java a Unicode locale where the environment has none.
    ///
    /// In the C locale, as in cron jobs and containers, Java turns every non-ASCII letter of an argument or a path
    /// into a question mark.
    pub(super) fn unicode_locale(&self) -> Option<(OsString, OsString)> {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| self.variable(name));
        let unicode = locale.is_some_and(|locale| {
            let locale = locale.to_string_lossy().to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        (!unicode).then(|| ("LC_ALL".into(), "C.UTF-8".into()))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn request(variables: &[(&str, &str)]) -> Request {
        Request::new(None, None, variables.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    #[test]
    fn the_cache_is_the_nearest_that_is_named() {
        let all = [("SCFOUNDRY_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(request(&all).cache(), Some("/a".into()));
        assert_eq!(request(&all[1..]).cache(), Some("/b/scfoundry".into()));
        assert_eq!(request(&all[2..]).cache(), Some("/c/.cache/scfoundry".into()));
        assert_eq!(
            request(&[("XDG_CACHE_HOME", "relative"), ("HOME", "/c")]).cache(),
            Some("/c/.cache/scfoundry".into())
        );
        assert_eq!(request(&[("SCFOUNDRY_CACHE", "")]).cache(), None);
    }

    #[test]
    fn a_unicode_locale_is_given_only_where_there_is_none() {
        assert!(request(&[]).unicode_locale().is_some());
        assert!(request(&[("LANG", "C"), ("LC_ALL", "")]).unicode_locale().is_some());
        assert!(request(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]).unicode_locale().is_some());
        assert_eq!(request(&[("LANG", "en_US.utf8")]).unicode_locale(), None);
        assert_eq!(request(&[("LC_ALL", "C.UTF-8"), ("LANG", "C")]).unicode_locale(), None);
    }
}
