//! Which Nextflow and which Java a run will use.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::java::{self, Java, JavaFound};
use super::{Request, launcher, managed, store};
use crate::error::{Error, Result};
use crate::ui::Ui;

/// Where the engine was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// `--nextflow`.
    #[default]
    Option,
    /// `$SCFOUNDRY_NEXTFLOW`.
    Environment,
    /// `nextflow` in a `scfoundry.toml`.
    Settings,
    /// `nextflow` on PATH.
    Path,
    /// The engine that scfoundry keeps in its cache.
    Managed,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Option => "--nextflow",
            Origin::Environment => "$SCFOUNDRY_NEXTFLOW",
            Origin::Settings => "scfoundry.toml",
            Origin::Path => "PATH",
            Origin::Managed => "managed",
        })
    }
}

/// An engine that can be started: `program prefix… run …` with `env` added to the environment.
#[derive(Debug, Clone)]
pub struct Engine {
    pub program: OsString,
    /// Everything that comes before the arguments of Nextflow itself.
    pub prefix: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub origin: Origin,
    /// Known without starting it for the managed engine and for the official launcher only.
    pub version: Option<String>,
    pub java: Option<Java>,
}

/// What [`locate`] would use, or why it would fail, found without changing anything.
#[derive(Debug, Clone)]
pub struct Inspection {
    pub origin: Origin,
    /// The `nextflow` program of the user, or the directory of the managed engine.
    pub path: Option<PathBuf>,
    pub version: Option<String>,
    /// The Java that will be used; none if one has to be brought, or none suits.
    pub java: Option<Java>,
    /// Every Java looked at, in the order of search.
    pub java_found: Vec<JavaFound>,
    /// What the first run will bring, in words for the user; empty when everything is there.
    pub missing: Vec<String>,
    /// The error that `locate` would end with, as far as it can be told beforehand.
    pub problem: Option<Error>,
}

/// Finds the engine to use: `--nextflow`, `$SCFOUNDRY_NEXTFLOW`, `nextflow` on PATH, else the managed one, which is
/// brought first if it is not there yet.
///
/// # Errors
/// Of kind `Environment` when there is no engine and none can be brought, the engine is too old, or no Java suits it.
pub fn locate(request: &Request, ui: &Ui) -> Result<Engine> {
    match own_program(request) {
        Some((origin, program)) => own_engine(request, origin, &program),
        None => managed::engine(request, ui),
    }
}

/// Says what [`locate`] would use. Never provisions, never fails.
pub fn inspect(request: &Request) -> Inspection {
    let Some((origin, program)) = own_program(request) else { return managed::inspect(request) };
    let (engine, problem) = match own_engine(request, origin, &program) {
        Ok(engine) => (Some(engine), None),
        Err(problem) => (None, Some(problem)),
    };
    Inspection {
        origin,
        version: launcher_version(request, &program),
        path: Some(program),
        java: engine.and_then(|engine| engine.java),
        java_found: java::found(request),
        missing: Vec::new(),
        problem,
    }
}

/// The `nextflow` that the user names or has; it need not exist when it is named.
fn own_program(request: &Request) -> Option<(Origin, PathBuf)> {
    if let Some(named) = &request.nextflow {
        return Some((request.named_by, resolve(request, named)));
    }
    if let Some(named) = request.variable("SCFOUNDRY_NEXTFLOW") {
        return Some((Origin::Environment, resolve(request, Path::new(named))));
    }
    Some((Origin::Path, request.program("nextflow")?))
}

/// A bare name is looked up on PATH; anything else is a path from the current directory.
fn resolve(request: &Request, named: &Path) -> PathBuf {
    let bare = named.components().count() == 1 && !named.exists();
    bare.then(|| request.program(named)).flatten().unwrap_or_else(|| {
        // The engine is started in the run directory, where a relative path would mean another file.
        std::path::absolute(named).unwrap_or_else(|_| named.to_path_buf())
    })
}

fn own_engine(request: &Request, origin: Origin, program: &Path) -> Result<Engine> {
    check_program(origin, program)?;
    let version = launcher_version(request, program);
    if let Some(version) = version.as_deref().filter(|version| launcher::too_old(version)) {
        return Err(too_old(&format!("{version} ({})", program.display())));
    }
    let found = java::found(request);
    let mut env = vec![
        // The launcher would look for a newer version on the network before each run.
        ("NXF_DISABLE_CHECK_LATEST".into(), "true".into()),
        // A site may still have the language of old pipelines as its default.
        ("NXF_DEFAULT_DSL".into(), "2".into()),
    ];
    let chosen = java::choose(&found)?;
    let java = match (&version, chosen) {
        // The launcher takes the first Java there is; where a later one suits, it has to be told.
        (_, Some(java)) => {
            if !found.first().is_some_and(JavaFound::supported) || request.java.is_some() {
                env.extend(java.home().map(|home| ("NXF_JAVA_HOME".into(), home.into())));
            }
            Some(java)
        }
        (Some(_), None) => return Err(java::unsuitable(&found)),
        // A wrapper may bring its own.
        (None, None) => None,
    };
    env.extend(request.unicode_locale());
    Ok(Engine { program: program.into(), prefix: Vec::new(), env, origin, version, java })
}

fn check_program(origin: Origin, program: &Path) -> Result<()> {
    let wrong = |what: &str| {
        let path = program.display();
        Error::environment(format_args!("{path}, given by {origin}, {what}"))
            .hint("name the `nextflow` program, or leave it out: scfoundry then brings Nextflow itself")
    };
    if !program.exists() {
        return Err(wrong("does not exist"));
    }
    if program.is_dir() {
        return Err(wrong("is a directory"));
    }
    match rustix::fs::access(program, rustix::fs::Access::EXEC_OK) {
        Ok(()) => Ok(()),
        Err(_) => Err(wrong("is not executable").hint(format_args!("`chmod +x {}`", program.display()))),
    }
}

fn launcher_version(request: &Request, program: &Path) -> Option<String> {
    launcher::version(program, request.variable("NXF_VER").and_then(OsStr::to_str))
}

/// Why an engine failed that has said in its output which version it is, if that is too old. What lies behind a wrapper or a
/// module cannot be known before.
pub fn outdated(output: &str) -> Option<Error> {
    launcher::said_version(output).filter(|version| launcher::too_old(version)).map(too_old)
}

fn too_old(version: &str) -> Error {
    let (year, month) = launcher::OLDEST;
    Error::environment(format_args!("nextflow {version} is too old: {year}.{month:02}.0 or newer is needed"))
        .hint(format_args!("`export NXF_VER={}`: the launcher then fetches that version", store::VERSION))
        .hint("or take `nextflow` off PATH: scfoundry then brings a version that suits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const TOOLS: &str = "/usr/bin:/bin";

    fn program(path: &Path, text: &str) -> PathBuf {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_path_buf()
    }

    fn java(directory: &Path, version: &str) {
        program(&directory.join("java"), &format!("#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n"));
    }

    fn launcher(directory: &Path, version: &str) -> PathBuf {
        let text = format!("#!/usr/bin/env bash\nNXF_VER=${{NXF_VER:-'{version}'}}\n");
        program(&directory.join("nextflow"), &text)
    }

    fn request(nextflow: Option<PathBuf>, variables: &[(&str, &str)]) -> Request {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Request::new(nextflow, None, variables)
    }

    fn path(directory: &Path) -> String {
        format!("{}:{TOOLS}", directory.display())
    }

    #[test]
    fn the_option_wins_over_the_variable_and_that_over_path() {
        let directory = tempfile::tempdir().unwrap();
        let bin = directory.path().join("x/bin");
        java(&bin, "21.0.1");
        let on_path = launcher(&bin, "25.04.2");
        let other = launcher(&directory.path().join("other"), "24.10.5");
        let other_text = other.to_str().unwrap();
        let path = path(&bin);
        let both = [("PATH", path.as_str()), ("SCFOUNDRY_NEXTFLOW", other_text)];
        let ui = Ui { quiet: true, ..Ui::default() };

        let engine = locate(&request(Some(on_path.clone()), &both), &ui).unwrap();
        assert_eq!((engine.origin, engine.version.as_deref()), (Origin::Option, Some("25.04.2")));
        let engine = locate(&request(None, &both), &ui).unwrap();
        assert_eq!((engine.origin, engine.program.to_str()), (Origin::Environment, Some(other_text)));
        let engine = locate(&request(None, &both[..1]), &ui).unwrap();
        assert_eq!((engine.origin, engine.program), (Origin::Path, on_path.into()));
        assert_eq!(engine.java.unwrap().major, 21);
    }

    #[test]
    fn java_11_only_is_named_with_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let bin = directory.path().join("bin");
        java(&bin, "11.0.22");
        launcher(&bin, "24.10.5");
        let request = request(None, &[("PATH", &path(&bin))]);
        let error = own_engine(&request, Origin::Path, &bin.join("nextflow")).unwrap_err();
        assert_eq!(error.kind.exit_code(), 4);
        assert!(error.message.contains("Java 11.0.22"), "{error}");
        assert!(error.message.contains(bin.join("java").to_str().unwrap()), "{error}");
        assert!(!error.hints.is_empty());
        let inspection = inspect(&request);
        assert_eq!(inspection.problem.unwrap().message, error.message);
        assert_eq!(inspection.java_found[0].java.as_ref().unwrap().major, 11);
    }

    #[test]
    fn the_launcher_is_told_of_a_java_that_suits_when_its_first_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let bin = directory.path().join("good/bin");
        java(&bin, "17.0.9");
        launcher(&bin, "24.10.5");
        let old = directory.path().join("old");
        java(&old.join("bin"), "1.8.0_251");
        let path = path(&bin);
        let request = request(None, &[("PATH", &path), ("JAVA_HOME", old.to_str().unwrap())]);
        let engine = own_engine(&request, Origin::Path, &bin.join("nextflow")).unwrap();
        let home =
            engine.env.iter().find(|(name, _)| name == "NXF_JAVA_HOME").map(|(_, home)| PathBuf::from(home));
        assert_eq!(home.unwrap(), directory.path().join("good").canonicalize().unwrap());
    }

    #[test]
    fn an_old_engine_is_refused_unless_nxf_ver_asks_for_a_newer() {
        let directory = tempfile::tempdir().unwrap();
        let bin = directory.path().join("bin");
        java(&bin, "17.0.9");
        let old = launcher(&bin, "23.10.1");
        let path = path(&bin);
        let error = own_engine(&request(None, &[("PATH", &path)]), Origin::Path, &old).unwrap_err();
        assert!(error.message.contains("nextflow 23.10.1"), "{error}");
        assert!(error.hints[0].contains("NXF_VER"), "{error:?}");
        let newer = request(None, &[("PATH", &path), ("NXF_VER", "24.10.8")]);
        assert_eq!(own_engine(&newer, Origin::Path, &old).unwrap().version.as_deref(), Some("24.10.8"));
    }

    #[test]
    fn a_named_program_must_be_one() {
        let directory = tempfile::tempdir().unwrap();
        let plain = directory.path().join("plain");
        std::fs::write(&plain, "text").unwrap();
        for (named, what) in [
            (directory.path().join("none"), "does not exist"),
            (directory.path().to_path_buf(), "is a directory"),
            (plain, "is not executable"),
        ] {
            let ui = Ui { quiet: true, ..Ui::default() };
            let error = locate(&request(Some(named.clone()), &[("PATH", TOOLS)]), &ui).unwrap_err();
            assert_eq!(error.kind.exit_code(), 4);
            assert!(error.message.contains(what) && error.message.contains("--nextflow"), "{error}");
        }
    }

    #[test]
    fn a_wrapper_is_not_judged_by_the_java_we_see() {
        let directory = tempfile::tempdir().unwrap();
        let bin = directory.path().join("bin");
        java(&bin, "11.0.22");
        let wrapper = program(&bin.join("nextflow"), "#!/bin/sh\nmodule load nextflow\n");
        let request = request(None, &[("PATH", &path(&bin))]);
        let engine = own_engine(&request, Origin::Path, &wrapper).unwrap();
        assert_eq!((engine.version, engine.java), (None, None));
    }
}
