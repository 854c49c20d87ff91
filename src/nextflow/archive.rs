//! The class-data archive: Nextflow's classes as Java has them in memory after one run, so that a start need not
//! load and verify them again. It holds for one Java and one state of the jars; without it the engine only starts
//! more slowly.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest, Sha256};

use super::group::{self, Group};
use super::java::Java;
use super::store::Store;
use super::{Engine, jars};
use crate::ui::Ui;

const PIPELINE: &str = include_str!("../../templates/engine/training.nf");
const CONFIG: &str = include_str!("../../templates/engine/training.config");
const LIMIT: Duration = Duration::from_secs(120);
/// How long a failure keeps us from trying again: a full disk may have been emptied meanwhile.
const BELIEVED: Duration = Duration::from_secs(24 * 3600);
const KEPT: usize = 3;
const POLL: Duration = Duration::from_millis(50);

/// The archive for a Java: `Some(None)` where making it was tried and failed, `None` where it was not tried yet.
pub(super) fn stored(jars: &Path, java: &Java) -> Option<Option<PathBuf>> {
    let archive = place(jars, java);
    if archive.is_file() {
        return Some(Some(archive));
    }
    let failed = std::fs::metadata(archive.with_extension("failed")).and_then(|meta| meta.modified());
    let recent = failed.is_ok_and(|time| time.elapsed().is_ok_and(|age| age < BELIEVED));
    recent.then_some(None)
}

/// The options that have Java use an archive, and say nothing should it not fit after all.
pub(super) fn use_options(archive: &Path) -> [OsString; 3] {
    [option("-XX:SharedArchiveFile=", archive), "-Xlog:disable".into(), "-Xlog:all=off".into()]
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

fn place(jars: &Path, java: &Java) -> PathBuf {
    let mut hasher = Sha256::new();
    hasher.update(format!("{} {}\n", java.version, java.path.display()));
    hasher.update(jars::fingerprint(jars));
    let key: String = hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    jars.join(format!("classes-{key}.jsa"))
}

/// Makes the archive by running a small pipeline with `engine`. The caller holds the lock of the store.
///
/// A failure is recorded, so that it is not repeated at every start.
pub(super) fn make(store: &Store, java: &Java, engine: &Engine, ui: &Ui) -> Option<PathBuf> {
    let archive = place(&store.jars(), java);
    let started = Instant::now();
    ui.note(format_args!("Nextflow: preparing its fast start with Java {}, once", java.version));
    match train(store, engine, &archive) {
        Ok(()) => {
            // Tried before in vain, perhaps.
            let _ = std::fs::remove_file(archive.with_extension("failed"));
            forget_old(&store.jars());
            ui.detail(format_args!(
                "prepared in {:.1} s: {}",
                started.elapsed().as_secs_f64(),
                archive.display()
            ));
            Some(archive)
        }
        Err(reason) => {
            ui.detail(format_args!("no fast start with this Java: {reason}"));
            // If this cannot be written either, the next start tries again.
            let _ = std::fs::write(archive.with_extension("failed"), reason);
            None
        }
    }
}

/// Keeps the newest archives only: each new version of a Java leaves one of 35 MB behind.
fn forget_old(jars: &Path) {
    let Ok(entries) = std::fs::read_dir(jars) else { return };
    let mut archives: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "jsa"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    archives.sort();
    for (_, archive) in archives.iter().rev().skip(KEPT) {
        // One that cannot be removed only takes room.
        let _ = std::fs::remove_file(archive);
    }
}

fn train(store: &Store, engine: &Engine, archive: &Path) -> Result<(), String> {
    let partial = store.partial().map_err(|error| error.to_string())?;
    let text = |error: std::io::Error| error.to_string();
    std::fs::write(partial.path().join("main.nf"), PIPELINE).map_err(text)?;
    std::fs::write(partial.path().join("nextflow.config"), CONFIG).map_err(text)?;
    let made = partial.path().join("classes.jsa");
    let log = std::fs::File::create(partial.path().join("output")).map_err(text)?;

    let mut command = Command::new(&engine.program);
    command.arg(option("-XX:ArchiveClassesAtExit=", &made)).args(["-Xlog:disable", "-Xlog:all=off"]);
    command.args(&engine.prefix).args(["run", "main.nf", "-ansi-log", "false"]);
    command.current_dir(partial.path()).stdin(Stdio::null());
    command.stdout(log.try_clone().map_err(text)?).stderr(log);
    for name in ["JAVA_TOOL_OPTIONS", "NXF_WORK", "NXF_EXECUTOR", "NXF_PROFILE"] {
        command.env_remove(name);
    }
    command.envs(engine.env.iter().map(|(name, value)| (name, value)));
    wait(command)?;
    // Java reads it by this name only: it must be whole.
    std::fs::File::open(&made).and_then(|file| file.sync_all()).map_err(|_| last_words(partial.path()))?;
    std::fs::rename(&made, archive).map_err(text)
}

fn wait(mut command: Command) -> Result<(), String> {
    group::isolate(&mut command);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let deadline = Instant::now() + LIMIT;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
            Ok(None) | Err(_) => {
                Group::of(&child).kill();
                let _ = child.wait();
                return Err(format!("the training run did not end within {} s", LIMIT.as_secs()));
            }
        }
    }
}

fn last_words(directory: &Path) -> String {
    let output = std::fs::read_to_string(directory.join("output")).unwrap_or_default();
    let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
    format!("the training run left no archive: {last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn java(version: &str) -> Java {
        Java { path: "/opt/java/bin/java".into(), version: version.to_owned(), major: 17 }
    }

    #[test]
    fn an_archive_belongs_to_one_java_and_a_failure_is_remembered() {
        let jars = tempfile::tempdir().unwrap();
        let (old, new) = (java("17.0.15"), java("17.0.16"));
        assert_eq!(stored(jars.path(), &old), None);
        let archive = place(jars.path(), &old);
        std::fs::write(&archive, "classes").unwrap();
        assert_eq!(stored(jars.path(), &old), Some(Some(archive)));
        assert_eq!(stored(jars.path(), &new), None);
        let failed = place(jars.path(), &new).with_extension("failed");
        std::fs::write(&failed, "why").unwrap();
        assert_eq!(stored(jars.path(), &new), Some(None));
        let file = std::fs::File::options().write(true).open(&failed).unwrap();
        file.set_modified(SystemTime::now() - 2 * BELIEVED).unwrap();
        assert_eq!(stored(jars.path(), &new), None);
    }

    #[test]
    fn the_newest_archives_are_kept() {
        let jars = tempfile::tempdir().unwrap();
        std::fs::write(jars.path().join("a.jar"), "").unwrap();
        for age in 0..5 {
            let file = std::fs::File::create(jars.path().join(format!("classes-{age}.jsa"))).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(60 * age)).unwrap();
        }
        forget_old(jars.path());
        let mut left: Vec<String> = std::fs::read_dir(jars.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        left.sort();
        assert_eq!(left, ["a.jar", "classes-0.jsa", "classes-1.jsa", "classes-2.jsa"]);
    }
}
