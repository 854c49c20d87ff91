//! One task in a container, run to see what it finds there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::atomic;
use crate::cost::{self, Diagnosis, Facts};
use crate::error::{Error, Kind, Result};
use crate::nextflow::{self, Event, Launch};
use crate::plan::Trial;
use crate::render;
use crate::settings::Settings;
use crate::trace::{self, Status, TaskRecord};
use crate::ui::Ui;
use crate::workspace::Workspace;

/// Lines of a log that are shown where nothing better is known.
const TAIL: usize = 8;

/// What the task told.
#[derive(Debug, Default)]
pub struct Seen {
    /// What it printed, `name=value` a line; a name may come more than once.
    pub told: BTreeMap<String, Vec<String>>,
    /// Owners of the files it left, by number.
    pub owners: BTreeMap<u32, usize>,
    /// From the start of the engine to its end.
    pub took: Duration,
}

/// How the task went.
#[derive(Debug)]
pub enum Tried {
    Ended(Seen),
    Failed(Diagnosis),
}

/// Runs the task through Nextflow in a directory of its own below the workspace's cache, which is removed afterwards.
///
/// # Errors
/// What keeps the engine from starting, and a signal that stopped it.
pub fn attempt(trial: &Trial, workspace: &Workspace, settings: &Settings, ui: &Ui) -> Result<Tried> {
    let engine = nextflow::locate(&nextflow::Request::of(settings), ui)?;
    let cache = workspace.cache();
    std::fs::create_dir_all(&cache).map_err(Error::io("create", &cache))?;
    let temporary = tempfile::Builder::new().prefix(".doctor-").tempdir_in(&cache);
    let temporary = temporary.map_err(Error::io("create a directory in", &cache))?;
    let folder = temporary.path();
    let config = render::trial_config(trial, workspace.root(), &folder.join("work"));
    atomic::write(&folder.join("nextflow.config"), config.as_bytes())?;
    atomic::write(&folder.join("main.nf"), render::TRIAL_PIPELINE.as_bytes())?;
    let words = ["-log", "nextflow.log", "run", "main.nf", "-ansi-log", "false"];
    let mut arguments: Vec<OsString> = words.map(OsString::from).into();
    if let Some(profile) = &trial.profile {
        arguments.extend(["-profile".into(), profile.into()]);
    }
    let output = folder.join("nextflow.out");
    let launch = Launch {
        engine: &engine,
        args: &arguments,
        cwd: folder,
        env: &[],
        output: Some(&output),
        raw: false,
    };
    let started = Instant::now();
    let outcome = nextflow::run(launch, &mut |event| {
        if let Event::Line(line) = event {
            ui.detail(line);
        }
    })?;
    if outcome.violent() {
        super::leftovers::end(folder, ui);
    }
    if let Some(signal) = outcome.interrupted {
        return Err(Error::new(Kind::of_signal(signal), "the test was stopped"));
    }
    let trace = trace::read(&folder.join("trace.txt")).ok();
    let task = trace.as_ref().and_then(|trace| trace.tasks.last());
    match task.zip(task.and_then(|task| task.workdir.as_deref())) {
        Some((task, place)) if outcome.success() && task.status == Status::Completed => {
            Ok(Tried::Ended(seen(place, started.elapsed())))
        }
        _ => Ok(Tried::Failed(diagnosis(trial, task, folder))),
    }
}

fn seen(place: &Path, took: Duration) -> Seen {
    let mut seen = Seen { took, ..Seen::default() };
    let said = std::fs::read(place.join(".command.out")).unwrap_or_default();
    for line in String::from_utf8_lossy(&said).lines() {
        if let Some((name, value)) = line.split_once('=') {
            seen.told.entry(name.to_owned()).or_default().push(value.trim().to_owned());
        }
    }
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        if let Ok(metadata) = entry.path().symlink_metadata() {
            *seen.owners.entry(metadata.uid()).or_default() += 1;
        }
    }
    seen
}

/// Why there is no answer, by what the task, then what the engine left in writing.
fn diagnosis(trial: &Trial, task: Option<&TaskRecord>, folder: &Path) -> Diagnosis {
    let facts = Facts {
        engine: Some(trial.runtime.name().to_owned()),
        gpu: !trial.gpus.is_empty(),
        ..Facts::default()
    };
    let place = task.and_then(|task| task.workdir.as_deref());
    let said = std::fs::read(folder.join("nextflow.out")).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let known = task.and_then(|task| cost::diagnose(task, place, &facts));
    known.or_else(|| cost::diagnose_log(&said, &facts)).unwrap_or_else(|| {
        let own = place.map(|place| cost::log_tail(place, TAIL)).unwrap_or_default();
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let engine = lines[lines.len().saturating_sub(TAIL)..].join("\n");
        Diagnosis {
            what: if own.is_empty() { engine } else { own.join("\n") },
            hint: "`--verbose` shows all that Nextflow says".to_owned(),
        }
    })
}
