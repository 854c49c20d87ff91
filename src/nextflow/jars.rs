//! The jars of Nextflow: resolved by coordinates through `mvn`, and checked against a list of hashes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::store::{Store, VERSION, cache_error};
use super::{Request, group, install};
use crate::error::{Error, Result};
use crate::ui::Ui;

const POM: &str = include_str!("../../templates/engine/pom.xml");
const LOCK: &str = include_str!("../../templates/engine/jars.lock");
/// In full, with the version left to the pom: a prefix would be looked up on the network.
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies";
const REPORT_EVERY: Duration = Duration::from_secs(3);

/// A jar as it must be.
struct Jar {
    sha256: &'static str,
    bytes: u64,
    name: &'static str,
}

/// The jars of `templates/engine/jars.lock`, a line each (SHA-256, bytes, name), in the order of the class path.
static JARS: LazyLock<Vec<Jar>> = LazyLock::new(|| {
    LOCK.lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            Some(Jar { sha256: fields.next()?, bytes: fields.next()?.parse().ok()?, name: fields.next()? })
        })
        .collect()
});

/// How much there is to bring, in words.
pub(super) fn size() -> String {
    format!("{} jars, {}", JARS.len(), megabytes(JARS.iter().map(|jar| jar.bytes).sum()))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

/// The class path, in a fixed order: an archive of classes is used only with the very path it was made with.
pub(super) fn class_path(directory: &Path) -> OsString {
    let mut path = OsString::new();
    for (index, jar) in JARS.iter().enumerate() {
        if index > 0 {
            path.push(":");
        }
        path.push(directory.join(jar.name));
    }
    path
}

/// Whether every jar is there with its right size. Hashes are looked at when something has changed: see
/// [`fingerprint`].
pub(super) fn present(directory: &Path) -> bool {
    JARS.iter().all(|jar| {
        std::fs::metadata(directory.join(jar.name))
            .is_ok_and(|meta| meta.is_file() && meta.len() == jar.bytes)
    })
}

/// What Java compares before it trusts an archive made for these jars: paths, sizes and times of change.
pub(super) fn fingerprint(directory: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let mut text = directory.display().to_string();
    for jar in JARS.iter() {
        let changed =
            std::fs::metadata(directory.join(jar.name)).map(|meta| (meta.mtime(), meta.mtime_nsec()));
        text.push_str(&format!("\n{} {} {:?}", jar.name, jar.bytes, changed.ok()));
    }
    text
}

/// Brings the jars unless they are there and right. The caller holds the lock of the store.
///
/// # Errors
/// When `mvn` is missing or fails, or what it brings has other hashes twice in a row.
pub(super) fn provision(request: &Request, store: &Store, ui: &Ui) -> Result<()> {
    let place = store.jars();
    if place.exists() {
        match wrong_jars(&place).as_slice() {
            [] => return Ok(()),
            wrong => ui.warn(format_args!(
                "{} of the {} jars in {} are missing or damaged: bringing them again",
                wrong.len(),
                JARS.len(),
                place.display()
            )),
        }
    }
    let tool = find_tool(request)?;
    let started = Instant::now();
    ui.note(format_args!("Nextflow {VERSION}: bringing it with mvn, once ({})", size()));
    let partial = store.partial()?;
    let jars = partial.path().join("jars");
    fetch(&tool, partial.path(), &jars, None, request, ui)?;
    if let [first, ..] = wrong_jars(&jars).as_slice() {
        ui.warn(format_args!("{first} from mvn's local repository is damaged: bringing all jars afresh"));
        let fresh = partial.path().join("repository");
        std::fs::remove_dir_all(&jars).map_err(cache_error("remove", &jars))?;
        fetch(&tool, partial.path(), &jars, Some(&fresh), request, ui)?;
        if let [first, ..] = wrong_jars(&jars).as_slice() {
            return Err(tampered(first));
        }
    }
    install::directory(&jars, &place)?;
    let seconds = started.elapsed().as_secs_f64();
    ui.note(format_args!("Nextflow {VERSION}: ready after {seconds:.0} s, in {}", place.display()));
    Ok(())
}

fn tampered(name: &str) -> Error {
    Error::environment(format_args!("{name} is not the file that Nextflow {VERSION} was published with"))
        .cause("its SHA-256 differs from the one recorded in scfoundry, also when brought afresh")
        .hint("look at the mirror that mvn uses (~/.m2/settings.xml), or install Nextflow yourself")
}

/// The names of the jars that are missing or have other contents than they must.
fn wrong_jars(directory: &Path) -> Vec<&'static str> {
    let right = |jar: &Jar| sha256(&directory.join(jar.name)).is_ok_and(|hash| hash == jar.sha256);
    JARS.iter().filter(|jar| !right(jar)).map(|jar| jar.name).collect()
}

/// The SHA-256 of a file, in hexadecimal digits.
pub(super) fn sha256(path: &Path) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    std::io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Finds `mvn`.
///
/// # Errors
/// When there is none, with the line that installs it.
pub(super) fn find_tool(request: &Request) -> Result<PathBuf> {
    request.program("mvn").ok_or_else(|| {
        Error::environment(format_args!(
            "Nextflow is missing, and so is mvn (Maven), with which scfoundry brings Nextflow {VERSION}"
        ))
        .hint(install::line(request, "maven"))
        .hint("or install Nextflow yourself and put it on PATH, or name it with --nextflow")
    })
}

/// Copies all jars into `into`; `repository` replaces the user's local repository.
fn fetch(
    tool: &Path,
    workspace: &Path,
    into: &Path,
    repository: Option<&Path>,
    request: &Request,
    ui: &Ui,
) -> Result<()> {
    let pom = workspace.join("pom.xml");
    std::fs::write(&pom, POM).map_err(cache_error("write", &pom))?;
    let option = |name: &str, path: &Path| {
        let mut option = OsString::from(format!("-D{name}="));
        option.push(path);
        option
    };
    let mut command = Command::new(tool);
    command.env_clear().envs(request.environment()).current_dir(workspace).stdin(Stdio::null());
    command.arg("--batch-mode").arg("--file").arg(&pom).arg(GOAL);
    command.arg(option("outputDirectory", into));
    command.args(repository.map(|path| option("maven.repo.local", path)));
    group::end_with_parent(&mut command);
    let complaints = follow(command, tool, ui)?;
    match complaints {
        None => Ok(()),
        Some(complaints) => Err(explain(&complaints)),
    }
}

/// Runs `mvn`, reporting its progress; gives its complaints if it fails.
fn follow(mut command: Command, tool: &Path, ui: &Ui) -> Result<Option<Vec<String>>> {
    let cannot = |error| Error::environment(format_args!("cannot run {}", tool.display())).cause(error);
    let (reader, writer) = std::io::pipe().map_err(cannot)?;
    command.stdout(writer.try_clone().map_err(cannot)?).stderr(writer);
    let mut child = command.spawn().map_err(cannot)?;
    // It holds the ends to write to, and with them the reader would wait for ever.
    drop(command);
    let mut progress = Progress::default();
    let mut complaints = Vec::new();
    for line in BufReader::new(reader).split(b'\n').map_while(std::io::Result::ok) {
        let line = String::from_utf8_lossy(&line);
        match line.strip_prefix("[ERROR] ") {
            Some(complaint) => complaints.push(complaint.trim().to_owned()),
            None => progress.line(&line, ui),
        }
    }
    let status = child.wait().map_err(cannot)?;
    Ok((!status.success()).then_some(complaints))
}

/// Counts the jars that `mvn` says it has downloaded or copied.
#[derive(Default)]
struct Progress {
    seen: BTreeSet<&'static str>,
    bytes: u64,
    reported: Option<Instant>,
}

impl Progress {
    fn line(&mut self, line: &str, ui: &Ui) {
        let Some(jar) = named_jar(line) else { return };
        if self.seen.insert(jar.name) {
            self.bytes += jar.bytes;
        }
        let since = *self.reported.get_or_insert_with(Instant::now);
        if since.elapsed() >= REPORT_EVERY {
            self.reported = Some(Instant::now());
            let (seen, all) = (self.seen.len(), JARS.len());
            ui.note(format_args!("Nextflow {VERSION}: {seen} of {all} jars, {}", megabytes(self.bytes)));
        }
    }
}

/// The jar that a line of `mvn` reports as there: `Downloaded from X: …/NAME.jar (…)` or `Copying NAME.jar to …`.
fn named_jar(line: &str) -> Option<&'static Jar> {
    let text = line.trim_start_matches("[INFO] ");
    let word = match text.strip_prefix("Copying ") {
        Some(rest) => rest.split(' ').next()?,
        None => text.strip_prefix("Downloaded from ")?.split_once(": ")?.1.split(' ').next()?,
    };
    let name = word.rsplit('/').next()?;
    JARS.iter().find(|jar| jar.name == name)
}

fn explain(complaints: &[String]) -> Error {
    const NO_NETWORK: [&str; 7] = [
        "Unknown host",
        "Connection refused",
        "Connect to",
        "Connection timed out",
        "Network is unreachable",
        "Could not transfer",
        "Cannot access",
    ];
    let with = |signs: &[&str]| complaints.iter().find(|line| signs.iter().any(|sign| line.contains(sign)));
    let (line, error) = if let Some(line) = with(&["No space left", "Disk quota exceeded"]) {
        let error = Error::environment(format_args!("there is no room on the disk for Nextflow {VERSION}"))
            .hint("set SCFOUNDRY_CACHE to a directory with 200 MB free; mvn needs 60 MB in ~/.m2 as well");
        (Some(line), error)
    } else if let Some(line) = with(&NO_NETWORK) {
        let error = Error::environment(format_args!(
            "Nextflow {VERSION} is missing and cannot be brought: mvn does not reach its registry"
        ))
        .hint("connect this machine once: afterwards no network is needed")
        .hint("or put a Nextflow on PATH; or copy ~/.cache/scfoundry/engine from a machine that has it");
        (Some(line), error)
    } else {
        let error = Error::environment(format_args!("mvn failed to bring Nextflow {VERSION}"))
            .hint("`mvn --version` must work; see ~/.m2/settings.xml for mirrors and proxies");
        (complaints.iter().find(|line| !line.is_empty()), error)
    };
    match line {
        Some(line) => error.cause(line.trim_end_matches(" -> [Help 1]")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_lock_is_a_jar_in_the_order_of_the_class_path() {
        assert_eq!(JARS.len(), LOCK.lines().count());
        assert_eq!(JARS.len(), 54);
        assert!(JARS.iter().all(|jar| jar.sha256.len() == 64 && jar.name.ends_with(".jar") && jar.bytes > 0));
        assert!(JARS.is_sorted_by_key(|jar| jar.name));
        assert!(JARS.iter().any(|jar| jar.name == format!("nextflow-{VERSION}.jar")));
        assert!(POM.contains(&format!("<version>{VERSION}</version>")));
    }

    #[test]
    fn progress_is_read_from_mvn() {
        let name = JARS[3].name;
        let lines = [
            format!("[INFO] Downloaded from central: https://registry.example/a/b/{name} (963 kB at 2 MB/s)"),
            format!("[INFO] Copying {name} to /somewhere/{name}"),
        ];
        for line in &lines {
            assert_eq!(named_jar(line).map(|jar| jar.name), Some(name));
        }
        assert!(
            named_jar("[INFO] Downloaded from central: https://registry.example/plugin-1.jar (1 kB)")
                .is_none()
        );
        assert!(named_jar("[INFO] BUILD SUCCESS").is_none());
    }

    #[test]
    fn the_failures_of_mvn_are_told_apart() {
        let offline =
            explain(&["Plugin x: Could not transfer artifact y: Connection refused".into(), "z".into()]);
        assert!(offline.message.contains("does not reach"), "{offline}");
        let full = explain(&["Error copying artifact: No space left on device -> [Help 1]".into()]);
        assert!(full.message.contains("no room on the disk"), "{full}");
        assert!(full.causes[0].ends_with("on device"), "{full}");
        let other = explain(&["Non-parseable settings ~/.m2/settings.xml".into()]);
        assert!(other.message.contains("mvn failed"), "{other}");
        assert_eq!(other.causes.len(), 1);
    }

    #[test]
    fn a_jar_of_the_right_size_and_the_wrong_bytes_is_wrong() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!present(directory.path()));
        for jar in JARS.iter() {
            std::fs::write(directory.path().join(jar.name), vec![0; jar.bytes as usize]).unwrap();
        }
        assert!(present(directory.path()));
        assert_eq!(wrong_jars(directory.path()).len(), JARS.len());
    }
}
