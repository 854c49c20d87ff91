//! Finding a Java that Nextflow accepts, in the order in which Nextflow's own launcher looks.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use super::Request;
use crate::error::{Error, Result};

/// The versions that Nextflow runs with.
pub(super) const SUPPORTED: RangeInclusive<u32> = 17..=26;

/// A Java run-time and the version it says it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Java {
    /// The `java` program.
    pub path: PathBuf,
    /// As the run-time writes it, such as `17.0.15`.
    pub version: String,
    pub major: u32,
}

impl Java {
    pub fn supported(&self) -> bool {
        SUPPORTED.contains(&self.major)
    }

    /// The directory that holds `bin/java`, with symbolic links followed.
    pub(super) fn home(&self) -> Option<PathBuf> {
        home_of(&self.path)
    }
}

impl Display for Java {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Java {} ({})", self.version, self.path.display())
    }
}

/// A place that was looked at, and what was there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JavaFound {
    /// The option or variable that names it: `--java`, `NXF_JAVA_HOME`, `JAVA_CMD`, `JAVA_HOME` or `PATH`.
    pub source: &'static str,
    pub path: PathBuf,
    /// None where the program is missing or does not behave like Java.
    pub java: Option<Java>,
}

impl JavaFound {
    pub fn supported(&self) -> bool {
        self.java.as_ref().is_some_and(Java::supported)
    }
}

impl Display for JavaFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.java {
            Some(java) => write!(f, "{java}, from {}", self.source),
            None => write!(f, "no Java at {}, from {}", self.path.display(), self.source),
        }
    }
}

/// Every Java that the user names or has, in the order of search.
pub(super) fn found(request: &Request) -> Vec<JavaFound> {
    candidates(request)
        .into_iter()
        .map(|(source, path)| JavaFound { source, java: probe(&path, request), path })
        .collect()
}

/// The Java to use among those found: the one of `--java`, whatever else there is, or the first that suits.
///
/// # Errors
/// When `--java` names one that does not suit.
pub(super) fn choose(found: &[JavaFound]) -> Result<Option<Java>> {
    if let Some(named) = found.iter().find(|candidate| candidate.source == OPTION) {
        return match &named.java {
            Some(java) if java.supported() => Ok(Some(java.clone())),
            _ => Err(unsuitable(std::slice::from_ref(named))),
        };
    }
    Ok(found.iter().find(|candidate| candidate.supported()).and_then(|candidate| candidate.java.clone()))
}

/// The error for a machine where none of the Javas found will do.
pub(super) fn unsuitable(found: &[JavaFound]) -> Error {
    let wanted = format!("Nextflow needs Java {} to {}", SUPPORTED.start(), SUPPORTED.end());
    let mut seen: Vec<&Path> = Vec::new();
    let error = match found.iter().find_map(|candidate| candidate.java.as_ref()) {
        Some(java) => {
            let age = if java.major < *SUPPORTED.start() { "old" } else { "new" };
            seen.push(&java.path);
            Error::environment(format_args!("{java} is too {age}: {wanted}"))
        }
        None => Error::environment(format_args!("Java is missing: {wanted}")),
    };
    found
        .iter()
        .filter(|candidate| !seen.contains(&candidate.path.as_path()))
        .fold(error, |error, candidate| error.cause(candidate))
        .hint(format_args!(
            "install one (on Debian: `apt-get install openjdk-17-jre-headless`), or name one with --java or JAVA_HOME"
        ))
}

const OPTION: &str = "--java";

fn candidates(request: &Request) -> Vec<(&'static str, PathBuf)> {
    let mut candidates = Vec::new();
    if let Some(path) = &request.java {
        let program = if path.is_dir() { path.join("bin/java") } else { path.clone() };
        candidates.push((OPTION, std::path::absolute(&program).unwrap_or(program)));
    }
    for name in ["NXF_JAVA_HOME", "JAVA_CMD", "JAVA_HOME"] {
        if let Some(value) = request.variable(name).map(PathBuf::from) {
            candidates.push((name, if name.ends_with("HOME") { value.join("bin/java") } else { value }));
        }
    }
    candidates.extend(request.program("java").map(|path| ("PATH", path)));
    candidates
}

/// Asks a `java` for its version, or reads it beside it, which saves starting a virtual machine.
pub(super) fn probe(path: &Path, request: &Request) -> Option<Java> {
    if let Some(java) = read(path) {
        return Some(java);
    }
    let version = announced(path, request)?;
    Some(Java { path: path.to_path_buf(), major: major(&version)?, version })
}

/// A Java whose home tells its version, without starting it.
pub(super) fn read(path: &Path) -> Option<Java> {
    let version = released(&std::fs::read_to_string(home_of(path)?.join("release")).ok()?)?;
    Some(Java { path: path.to_path_buf(), major: major(&version)?, version })
}

fn home_of(java: &Path) -> Option<PathBuf> {
    let program = java.canonicalize().ok()?;
    Some(program.parent()?.parent()?.to_path_buf())
}

/// The version in the `release` file of a Java home.
fn released(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    Some(value.trim().trim_matches('"').to_owned()).filter(|version| !version.is_empty())
}

fn announced(path: &Path, request: &Request) -> Option<String> {
    let output = Command::new(path)
        .arg("-version")
        .env_clear()
        .envs(request.environment())
        .stdin(Stdio::null())
        .output()
        .ok()?;
    version_of(&String::from_utf8_lossy(&output.stderr))
        .or_else(|| version_of(&String::from_utf8_lossy(&output.stdout)))
}

/// The version in what `java -version` prints: the quoted word, or the first number after the product's name.
fn version_of(text: &str) -> Option<String> {
    text.lines().filter(|line| !line.starts_with("Picked up")).find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let word = words.next()?;
        let version = if word == "version" { words.next()?.trim_matches('"') } else { word };
        major(version).map(|_| version.to_owned())
    })
}

/// The feature release: 8 for `1.8.0_251`, 22 for `22-ea`.
fn major(version: &str) -> Option<u32> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    match numbers.next()?.parse().ok()? {
        1 => numbers.next()?.parse().ok(),
        number => Some(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn fake_java(directory: &Path, text: &str) -> PathBuf {
        let program = directory.join("bin/java");
        std::fs::create_dir_all(directory.join("bin")).unwrap();
        std::fs::write(&program, format!("#!/bin/sh\ncat >&2 <<'END'\n{text}\nEND\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    fn openjdk(version: &str) -> String {
        format!("openjdk version \"{version}\" 2024-01-16")
    }

    fn request(java: Option<PathBuf>, variables: &[(&str, &Path)]) -> Request {
        let variables = variables.iter().map(|(name, path)| ((*name).into(), path.as_os_str().to_owned()));
        Request::new(None, java, variables)
    }

    #[test]
    fn versions_are_read_as_java_prints_them() {
        let table = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cases/c09_java_versions.tsv");
        let table = std::fs::read_to_string(table).unwrap();
        let rows: Vec<(&str, &str)> =
            table.lines().skip(1).map(|line| line.split_once('\t').unwrap()).collect();
        assert_eq!(rows.len(), 10);
        for (text, expected) in rows {
            let version = version_of(&text.replace("\\n", "\n"));
            let found = version.as_deref().and_then(major);
            assert_eq!(found.map_or("none".into(), |major| major.to_string()), expected, "{text}");
        }
    }

    #[test]
    fn the_programs_of_the_table_are_judged_by_what_they_print() {
        let directory = tempfile::tempdir().unwrap();
        let old = fake_java(directory.path(), "Picked up _JAVA_OPTIONS: -Xmx2g\nopenjdk version \"11.0.22\"");
        let path = [("PATH", Path::new("/usr/bin:/bin"))];
        let java = probe(&old, &request(None, &path)).unwrap();
        assert_eq!((java.major, java.version.as_str(), java.supported()), (11, "11.0.22", false));
        assert_eq!(probe(&directory.path().join("none"), &request(None, &path)), None);
    }

    #[test]
    fn the_order_is_that_of_the_launcher() {
        let directory = tempfile::tempdir().unwrap();
        let homes: Vec<PathBuf> = ["a", "b", "c", "d", "e"].map(|name| directory.path().join(name)).into();
        for (home, version) in homes.iter().zip(["17.0.1", "18.0.1", "19.0.1", "20.0.1", "21.0.1"]) {
            fake_java(home, &openjdk(version));
        }
        let command = homes[2].join("bin/java");
        let path = std::env::join_paths([homes[4].join("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
        let all = [
            ("NXF_JAVA_HOME", homes[1].as_path()),
            ("JAVA_CMD", command.as_path()),
            ("JAVA_HOME", homes[3].as_path()),
            ("PATH", Path::new(&path)),
        ];
        let found = found(&request(Some(homes[0].clone()), &all));
        let majors: Vec<u32> = found.iter().map(|found| found.java.as_ref().unwrap().major).collect();
        assert_eq!(majors, [17, 18, 19, 20, 21]);
        let chosen = |found: &[JavaFound]| choose(found).unwrap().unwrap().major;
        assert_eq!(chosen(&found), 17);
        assert_eq!(chosen(&found[1..]), 18);
        assert_eq!(chosen(&found[4..]), 21);
    }

    #[test]
    fn an_unsuitable_java_is_passed_over_unless_it_was_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let (old, good) = (directory.path().join("old"), directory.path().join("good"));
        fake_java(&old, &openjdk("11.0.22"));
        fake_java(&good, &openjdk("21.0.2"));
        let path = std::env::join_paths([good.join("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
        let variables = [("JAVA_HOME", old.as_path()), ("PATH", Path::new(&path))];
        assert_eq!(choose(&found(&request(None, &variables))).unwrap().unwrap().major, 21);

        let error = choose(&found(&request(Some(old.clone()), &variables))).unwrap_err();
        assert_eq!(error.kind.exit_code(), 4);
        assert!(error.message.contains("Java 11.0.22"), "{error}");
        assert!(error.message.contains(&old.join("bin/java").display().to_string()), "{error}");
        assert!(error.message.contains("too old"), "{error}");
    }

    #[test]
    fn no_java_at_all_is_one_line() {
        let error = unsuitable(&found(&request(None, &[("PATH", Path::new("/nowhere"))])));
        assert!(error.message.starts_with("Java is missing"), "{error}");
        assert!(error.causes.is_empty());
    }

    #[test]
    fn the_release_file_saves_a_start() {
        assert_eq!(released("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n").as_deref(), Some("17.0.15"));
        assert_eq!(released("OTHER=1\n"), None);
    }
}
