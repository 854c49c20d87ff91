//! Which directories go: decided from the records of all runs, nothing touched.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::work::of_tasks;
use super::{Age, PROBING, REMOVING, Size};
use crate::error::{Error, Result};
use crate::launch;
use crate::method::Task;
use crate::rundir::{Record, RunDir, Status};

/// What the user wants to be rid of.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Names or paths of runs; none: all runs of the workspace.
    pub names: Vec<PathBuf>,
    pub older_than: Option<Age>,
    /// Only runs that ended badly.
    pub failed: bool,
    /// Only the work directories.
    pub work: bool,
}

/// Which part of a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Its whole directory.
    Run,
    /// Its directory `work`, and the task cache.
    Work,
    /// What a removal or a probe that was cut off has left.
    Leftover,
}

impl Part {
    pub fn name(self) -> &'static str {
        match self {
            Part::Run => "run",
            Part::Work => "work",
            Part::Leftover => "leftover",
        }
    }
}

/// A directory that may go.
#[derive(Debug, Clone)]
pub struct Target {
    /// The name of the run.
    pub name: String,
    pub path: PathBuf,
    pub part: Part,
    /// The run with its status; none for a leftover.
    pub run: Option<(RunDir, Status)>,
    pub age: Option<Age>,
}

impl Target {
    /// All directories that go: with the work its task cache, which would know of tasks that are no more.
    pub fn directories(&self) -> Vec<PathBuf> {
        match (self.part, &self.run) {
            (Part::Work, Some((run, _))) => of_tasks(run.path()),
            _ => vec![self.path.clone()],
        }
    }

    /// What they take on disk.
    pub fn size(&self) -> Size {
        let mut size = Size::default();
        self.directories().iter().for_each(|path| size.merge(&Size::of(path)));
        size
    }
}

/// What goes, and what stays although it was meant.
#[derive(Debug, Default)]
pub struct Selection {
    pub targets: Vec<Target>,
    /// What is left alone because it is not a plain directory: one sentence each.
    pub odd: Vec<String>,
    /// Runs asked for by name that cannot go now: one sentence each.
    pub refused: Vec<String>,
}

/// A run and what its record says.
struct Known {
    run: RunDir,
    record: Record,
    /// Since it ended, or the last run that used its work.
    age: Age,
}

/// Selects from the runs below `runs`, newest first.
///
/// # Errors
/// A name is of no run, or `runs` itself is a symbolic link.
pub fn select(runs: &Path, wanted: &Wanted, now: Timestamp) -> Result<Selection> {
    if is_link(runs) {
        return Err(Error::input(format_args!("{} is a symbolic link", runs.display()))
            .cause("what it leads to may not belong to this workspace")
            .hint("remove runs there by hand, or make it a directory of the workspace"));
    }
    let mut selection = Selection::default();
    let mut known = survey(runs, now, &mut selection);
    if !wanted.names.is_empty() {
        selection.odd.clear();
    }
    known.sort_by(|one, other| one.age.cmp(&other.age).then_with(|| other.run.name().cmp(&one.run.name())));
    let users = users(&known);
    let named = named(&wanted.names, &known, runs)?;
    let mut leftovers = std::mem::take(&mut selection.targets);
    for run in &known {
        let is_named = named.iter().any(|path| path == run.run.path());
        if (wanted.names.is_empty() || is_named) && fits(run, wanted, is_named) {
            consider(run, wanted.work, is_named, &users, &mut selection);
        }
    }
    selection.targets.append(&mut leftovers);
    Ok(selection)
}

/// Adds the run to what goes, unless it or its work is in use.
fn consider(
    known: &Known,
    work: bool,
    is_named: bool,
    users: &HashMap<PathBuf, String>,
    selection: &mut Selection,
) {
    let name = known.run.name();
    let path = if work { known.run.join("work") } else { known.run.path().to_owned() };
    if work && is_link(&path) {
        let odd = format!("{} is a symbolic link and is left alone", path.display());
        return selection.odd.push(odd);
    }
    if work && !path.is_dir() {
        return;
    }
    let reason = if active(&known.record) {
        Some(format!("run {name} is {}", known.record.status.name()))
    } else {
        let used = |user| format!("the work of run {name} is used by run {user}, which is running");
        users.get(&real(known.run.path())).map(used)
    };
    match reason {
        Some(reason) if is_named => selection.refused.push(reason),
        Some(_) => {}
        None => selection.targets.push(Target {
            name,
            path,
            part: if work { Part::Work } else { Part::Run },
            run: Some((known.run.clone(), known.record.status)),
            age: Some(known.age),
        }),
    }
}

/// Whether the run is of the kind and age that is wanted. One that never started goes by its age or its name only.
fn fits(known: &Known, wanted: &Wanted, is_named: bool) -> bool {
    let kind = match known.record.status {
        Status::Failed | Status::Interrupted | Status::Lost => true,
        Status::Ok => !wanted.failed,
        Status::Planned => !wanted.failed && (is_named || wanted.older_than.is_some()),
        // It is told by name that it is in use, and passed over otherwise.
        Status::Running => is_named,
    };
    kind && (known.record.status == Status::Running || wanted.older_than.is_none_or(|age| known.age >= age))
}

/// Whether a process is at work in the run, or may be: its record is read afresh each time.
pub(super) fn active(record: &Record) -> bool {
    // A planned run without a process was written by another program, and never started.
    record.status == Status::Running || (record.status == Status::Planned && record.pid.is_some())
}

/// Directories whose work a running run uses, and its name.
fn users(known: &[Known]) -> HashMap<PathBuf, String> {
    let running = known.iter().filter(|known| active(&known.record));
    running
        .filter_map(|known| Some((real(known.record.origin.as_deref()?), known)))
        .filter(|(origin, known)| *origin != real(known.run.path()))
        .map(|(origin, known)| (origin, known.run.name()))
        .collect()
}

/// The path without symbolic links: the workspace may have been reached by another way then.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// All runs; what an earlier removal left and what is no plain directory goes into the selection.
fn survey(runs: &Path, now: Timestamp, selection: &mut Selection) -> Vec<Known> {
    let mut known = Vec::new();
    for task in Task::ALL {
        let folder = runs.join(task.name());
        if is_link(&folder) {
            selection.odd.push(format!("{} is a symbolic link and is left alone", folder.display()));
            continue;
        }
        for path in entries(&folder) {
            if let Some(name) = leftover(&path) {
                selection.targets.push(remains(name, path));
            } else if is_link(&path) && path.join("run.json").is_file() {
                selection.odd.push(format!("{} is a symbolic link and is left alone", path.display()));
            } else if let Some((run, record)) = read(&path).filter(|_| !is_link(&path)) {
                let inside = entries(run.path()).into_iter().filter(|path| leftover(path).is_some());
                selection.targets.extend(inside.map(|path| remains(run.name(), path)));
                let age = age(&run, &record, now);
                known.push(Known { run, record, age });
            }
        }
    }
    count_from_last_use(&mut known);
    known
}

/// Makes a run as young as the youngest that used its work, so that this one can be resumed as long as it is kept.
fn count_from_last_use(known: &mut [Known]) {
    let mut last: HashMap<PathBuf, Age> = HashMap::new();
    for known in known.iter() {
        let origin = real(known.record.origin.as_deref().unwrap_or(known.run.path()));
        let age = last.entry(origin).or_insert(known.age);
        *age = known.age.min(*age);
    }
    for known in known {
        let used = last.get(&real(known.run.path())).copied();
        known.age = used.map_or(known.age, |age| age.min(known.age));
    }
}

fn read(path: &Path) -> Option<(RunDir, Record)> {
    let hidden = path.file_name()?.as_encoded_bytes().starts_with(b".");
    let run = RunDir::open(path).ok().filter(|_| !hidden)?;
    let record = run.record().ok()?;
    Some((run, record))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The name of what was being removed, or of a probe that was killed, if the path is a directory that says so.
fn leftover(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    if !path.symlink_metadata().ok()?.is_dir() {
        return None;
    }
    let probe = || name.strip_prefix('.').filter(|_| name.starts_with(PROBING));
    let dead = |_: &&str| launch::claim(path).is_ok();
    name.strip_prefix(REMOVING).or_else(|| probe().filter(dead)).map(str::to_owned)
}

fn remains(name: String, path: PathBuf) -> Target {
    Target { name, path, part: Part::Leftover, run: None, age: None }
}

pub(super) fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
}

/// Since the run ended, else since it started, else since its record was written.
fn age(run: &RunDir, record: &Record, now: Timestamp) -> Age {
    let told = [&record.finished, &record.started].into_iter().flatten().find_map(|text| moment(text));
    let written = || Timestamp::try_from(run.join("run.json").metadata().ok()?.modified().ok()?).ok();
    let then = told.or_else(written).unwrap_or(now);
    Age::of_seconds(u64::try_from(now.duration_since(then).as_secs()).unwrap_or(0))
}

/// A moment as records write it; those of the Python command are in local time.
fn moment(text: &str) -> Option<Timestamp> {
    let local = || Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::system()).ok()?.timestamp());
    text.parse().ok().or_else(local)
}

/// The directories of the runs that the user named.
fn named(names: &[PathBuf], known: &[Known], runs: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in names {
        let place = std::path::absolute(name).ok().filter(|path| !is_link(path)).map(|path| real(&path));
        let is_meant = |run: &&RunDir| {
            run.path().file_name() == Some(name.as_os_str()) || place.as_deref() == Some(&real(run.path()))
        };
        let meant = known.iter().map(|known| &known.run).filter(is_meant);
        let before = found.len();
        found.extend(meant.map(|run| run.path().to_owned()));
        if found.len() == before {
            return Err(unknown(name, runs));
        }
    }
    Ok(found)
}

fn unknown(name: &Path, runs: &Path) -> Error {
    let error = Error::input(format_args!("{} is not a run of this workspace", name.display()));
    let places = Task::ALL.iter().map(|task| runs.join(task.name()).join(name));
    match places.chain([name.to_owned()]).find(|path| is_link(path)) {
        Some(link) => error
            .cause(format_args!("{} is a symbolic link", link.display()))
            .hint("remove by hand what it leads to"),
        None => error.hint("`scfoundry runs` lists the runs of the workspace"),
    }
}
