//! `--resume`: whether there is anything to do, and if so, which run to go on from.

use std::path::{Path, PathBuf};

use crate::completion::{self, Difference};
use crate::error::{Error, Result};
use crate::launch::{self, Finished};
use crate::plan::{Plan, Request, Resume};
use crate::rundir::{Record, RunDir, Status};

/// Decides from which of the earlier runs the plan goes on, or that one of them has done it all. A warning says why all is
/// done from the start where something else was to be expected.
pub fn decide(request: &Request, plan: &mut Plan, runs: &Path) -> Result<()> {
    // `-- -resume` means the same work, so it gets the same run; the argument itself is Nextflow's.
    let found = match (&request.resume, plan.nextflow_option("-resume")) {
        (Some(Resume::Named(name)), _) => {
            let run = named(name, plan, runs)?;
            // One that has begun no session, or whose first run is gone, is refused later, with the reason.
            let is_bare = launch::session(&run).is_some() && !launch::holds_tasks(&run);
            let holding = Some(run.clone()).filter(|_| !is_bare);
            take_over_or_resume(plan, run, holding, runs)
        }
        (Some(Resume::Latest), _) => {
            let earlier = alike(plan, runs);
            let Some(newest) = earlier.first().cloned() else {
                return Err(Error::input(
                    "there is no earlier run of the same task, method and input to resume",
                )
                .hint("leave `--resume` out, or name a run; `scfoundry runs` lists them"));
            };
            let holding = earlier.into_iter().find(launch::holds_tasks);
            take_over_or_resume(plan, newest, holding, runs)
        }
        (None, Some(Some(session))) => Some(of_session(session, runs)?),
        (None, Some(None)) => alike(plan, runs).into_iter().find(launch::holds_tasks),
        (None, None) => None,
    };
    if let Some(run) = found {
        // The work is that of the earlier run, which may have been told to keep it.
        plan.keep_work |= run.record()?.keep_work;
        plan.resume = Some(run.path().to_owned());
    }
    Ok(())
}

/// The run that has done it all, as if it had just ended.
pub fn taken_over(run: &Path) -> Result<Finished> {
    let run = RunDir::open(run)?;
    let record = run.record()?;
    let published = record.outputs.iter().map(|output| output.path.clone()).collect();
    Ok(Finished {
        run,
        record,
        published,
        computed: false,
        whole: true,
        cost: None,
        error: None,
        entry: None,
        claim: None,
    })
}

/// Looks for a run that has done it all: the one that is meant, else any that is alike. Else goes on from the one that holds
/// work, and warns where `meant` seemed to promise more.
fn take_over_or_resume(
    plan: &mut Plan,
    meant: RunDir,
    holding: Option<RunDir>,
    runs: &Path,
) -> Option<RunDir> {
    let others = alike(plan, runs).into_iter().filter(|run| run.path() != meant.path());
    let mut differences = Vec::new();
    for run in std::iter::once(meant.clone()).chain(others) {
        match standing(plan, &run) {
            Standing::Whole => {
                plan.done_by = Some(run.path().to_owned());
                return None;
            }
            Standing::Differs(difference) => differences.push((run, difference)),
            Standing::Unknown => {}
        }
    }
    plan.warnings.extend(surprise(&meant, &differences, holding.as_ref()));
    holding
}

/// What the user may not expect where `meant` is no run that can simply be gone on from. Of several good runs the one tells
/// most for which the same was decided.
fn surprise(
    meant: &RunDir,
    differences: &[(RunDir, Difference)],
    holding: Option<&RunDir>,
) -> Option<String> {
    let consequence = match holding {
        Some(run) => format!("the tasks that it has in common with run {} are reused", run.name()),
        None => "all is done from the start".to_owned(),
    };
    let nearest = differences.iter().find(|(_, difference)| difference.same_decisions);
    match differences.first().filter(|(run, _)| run == meant) {
        Some(first) => {
            let (run, Difference { sentence, .. }) = nearest.unwrap_or(first);
            Some(format!("run {} cannot stand for this one, since {sentence}: {consequence}", run.name()))
        }
        None if holding.is_none() => {
            Some(format!("run {} left no work to go on from: {consequence}", meant.name()))
        }
        None => None,
    }
}

/// How a run stands to the plan.
enum Standing {
    /// It has done all of it, and nothing has changed since.
    Whole,
    /// It went well, but something is different.
    Differs(Difference),
    /// It has not gone well, or does not tell what it was made from.
    Unknown,
}

fn standing(plan: &Plan, run: &RunDir) -> Standing {
    let Ok(record) = run.record() else { return Standing::Unknown };
    let Some(completion) = record.completion.as_ref().filter(|_| record.status == Status::Ok) else {
        return Standing::Unknown;
    };
    if !is_alike(plan, &record) {
        let sentence = "it is of another task, method or input".to_owned();
        return Standing::Differs(Difference { same_decisions: false, sentence });
    }
    match completion::difference(plan, run, &record, completion) {
        Some(difference) => Standing::Differs(difference),
        None => Standing::Whole,
    }
}

/// A run by the name or the path of its directory.
fn named(name: &str, plan: &Plan, runs: &Path) -> Result<RunDir> {
    let inside = runs.join(plan.task.name()).join(name);
    RunDir::open(if inside.is_dir() { &inside } else { Path::new(name) })
}

/// The runs of the same task, method and inputs, newest first.
fn alike(plan: &Plan, runs: &Path) -> Vec<RunDir> {
    let same = |run: &RunDir| run.record().is_ok_and(|record| is_alike(plan, &record));
    RunDir::list(runs).into_iter().filter(same).collect()
}

fn is_alike(plan: &Plan, record: &Record) -> bool {
    let inputs: Vec<&PathBuf> = plan.inputs.iter().map(|input| &input.path).collect();
    record.task == plan.task.name()
        && record.method == plan.method
        && record.inputs.iter().collect::<Vec<_>>() == inputs
}

/// The run with a session of Nextflow's. One that it does not know it would silently take for its last.
fn of_session(session: &str, runs: &Path) -> Result<RunDir> {
    let has = |run: &RunDir| launch::session(run).as_deref() == Some(session);
    RunDir::list(runs).into_iter().find(has).ok_or_else(|| {
        Error::input(format_args!("no run of the workspace has the session {session:?}"))
            .hint("write `-resume` alone, or `--resume RUN` before `--`; `scfoundry runs --json` shows the sessions")
    })
}
