//! From a plan to a finished run: workspace, engine, run directory, child process, results, cost.

mod batch;
mod cards;
mod failure;
mod images;
mod leftovers;
mod progress;
mod runner;
mod session;
mod space;
mod trial;

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::atomic;
use crate::completion;
use crate::cost::{self, CostSummary, SummaryOptions};
use crate::error::{Error, Kind, Result};
use crate::gpu;
use crate::history::{self, Entry};
use crate::nextflow::{self, Event, Launch, Outcome};
use crate::plan::{self, Plan, Runtime};
use crate::render;
use crate::rundir::{self, OutputState, Record, RunDir, Status};
use crate::settings::Settings;
use crate::trace::{self, Trace};
use crate::ui::Ui;
use crate::workspace::{Cluster, Partition, Workspace};
use failure::Evidence;
use progress::Progress;

pub use images::Store as ImageStore;
pub use leftovers::end as end_leftovers;
pub use session::TASK_CACHE;
pub use space::check as check_space;
pub use trial::{Seen, Tried, attempt};

/// A run that has ended, well or not.
pub struct Finished {
    pub run: RunDir,
    pub record: Record,
    /// Results that are in place, in the plan's order.
    pub published: Vec<PathBuf>,
    /// This command did it; else it found all done by an earlier run.
    pub computed: bool,
    /// It went well, tasks did the work, and all results are in place.
    pub whole: bool,
    /// Absent where the engine left no trace.
    pub cost: Option<CostSummary>,
    /// What the command ends with.
    pub error: Option<Error>,
    /// What the history was given.
    pub entry: Option<Entry>,
    /// While it is held no other process goes on from this run.
    pub claim: Option<File>,
}

/// The plan with the cards and the batch size that it would get now, for `--dry-run`. Nothing is taken.
///
/// # Errors
/// There is no such card.
pub fn foresee(plan: &Plan, settings: &Settings, ui: &Ui) -> Result<Plan> {
    Ok(batch::settle(cards::foresee(plan, ui)?, settings, ui))
}

/// Runs the plan.
///
/// # Errors
/// What keeps the engine from starting; a run that fails once it has begun is a [`Finished`] with an error.
pub fn launch(plan: &Plan, workspace: &Workspace, settings: &Settings, ui: &Ui) -> Result<Finished> {
    if plan.needs_engine_here() {
        plan::check_engine(plan.runtime)?;
    }
    space::check(plan, images::to_pull(plan, ui).as_ref())?;
    let engine = nextflow::locate(&nextflow::Request::of(settings), ui)?;
    let mut cards = cards::take(plan, ui)?;
    let placed = cards.as_ref().map_or_else(|| plan.clone(), |cards| plan.on_cards(cards.numbers()));
    let plan = &batch::settle(placed, settings, ui);
    prepare_workspace(workspace, ui)?;
    let run = RunDir::create(&workspace.runs(), plan.task, &plan.run_stem)?;
    let prepared = match Prepared::write(plan, &run, &engine) {
        Ok(prepared) => prepared,
        Err(error) => {
            run.discard();
            return Err(error);
        }
    };
    if !plan.probe {
        ui.note(format_args!("run {}", run.path().display()));
        if let Some(batch) = &plan.batch {
            ui.note(format_args!("batch size: {batch}"));
        }
    }
    let mut record = prepared.record.clone();
    if let Some(cards) = &mut cards {
        cards.belong_to(run.path());
        record.cards.clone_from(&cards.taken);
    }
    let origin = record.origin.clone().unwrap_or_else(|| run.path().to_owned());
    if plan.resume.is_some() {
        leftovers::end(&origin, ui);
    }
    record.status = Status::Running;
    run.save(&record)?;
    let mut progress = Progress::new(ui, &prepared.trace, plan.inputs.len().max(1) * plan.stages.len());
    let started = Launch {
        engine: &engine,
        args: &prepared.arguments,
        cwd: run.path(),
        env: &prepared.variables,
        output: Some(&run.join("nextflow.out")),
        raw: plan.nextflow_option("-ansi-log") == Some(Some("true")),
    };
    let begun = Instant::now();
    let outcome = nextflow::run(started, &mut |event| match event {
        Event::Line(line) => progress.line(&line),
        Event::Tick => progress.tick(),
        Event::Signal { count, .. } => progress.signal(count),
        Event::OutputLost(error) => progress.warn(&error),
    });
    progress.finish();
    if outcome.as_ref().is_ok_and(Outcome::violent) {
        leftovers::end(&origin, ui);
    }
    // Others may have them while the results are put in place.
    drop(cards);
    let wall_seconds = begun.elapsed().as_secs_f64();
    let mut finished = finish(plan, run, record, outcome, prepared, settings)?;
    finished.entry = remember(plan, &finished, wall_seconds, settings, ui);
    Ok(finished)
}

/// Adds what the run cost to the history. The run has gone well either way.
fn remember(
    plan: &Plan,
    finished: &Finished,
    wall_seconds: f64,
    settings: &Settings,
    ui: &Ui,
) -> Option<Entry> {
    let cost = finished.cost.as_ref().filter(|_| finished.whole)?;
    let entry = Entry::of(plan, cost, wall_seconds)?;
    let kept = settings.history.as_ref().map(|history| history::keep(&history.value, &entry));
    if let Some(Err(error)) = kept {
        ui.warn(format_args!("what this run cost is not kept for estimates: {error}"));
    }
    Some(entry)
}

/// The engine's session of a run, which another run can go on from; none if it had not begun one.
pub fn session(run: &RunDir) -> Option<String> {
    session::of(run.path()).ok()
}

/// Whether another run can go on from this one and reuse its tasks.
pub fn holds_tasks(run: &RunDir) -> bool {
    session::holds_tasks(run.path())
}

/// Claims the work and the task cache of the run at `origin` until the file is dropped or the process ends.
///
/// # Errors
/// Another process uses them.
pub fn claim(origin: &Path) -> Result<File> {
    session::lock(origin)
}

/// Makes the workspace where there is none, with what works on this machine.
fn prepare_workspace(workspace: &Workspace, ui: &Ui) -> Result<()> {
    if workspace.exists() {
        return Ok(());
    }
    let runtime = Runtime::detect();
    let limits = Partition::choose(&Partition::all(), None).map(Partition::limits).unwrap_or_default();
    let cluster = Cluster { limits, ..Cluster::default() };
    let config = render::workspace_config(runtime, &gpu::usual_choice(), &cluster);
    workspace.create(&config, crate::settings::TEMPLATE, false)?;
    ui.note(format_args!("made workspace {}", workspace.root().display()));
    Ok(())
}

/// The run directory with all that the engine reads.
struct Prepared {
    record: Record,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    trace: PathBuf,
    /// Held until the run is done with, so that no other process resumes the same session.
    claim: File,
}

impl Prepared {
    fn write(plan: &Plan, run: &RunDir, engine: &nextflow::Engine) -> Result<Prepared> {
        let program = std::env::current_exe().map_err(Error::io("find", Path::new("scfoundry")))?;
        let origin = match &plan.resume {
            Some(resumed) => session::origin(resumed)?,
            None => run.path().to_owned(),
        };
        if let Some(runner) = &plan.runner {
            runner::install(runner)?;
        }
        let claim = session::lock(&origin)?;
        let session = plan.resume.as_deref().map(session::of).transpose()?;
        let work = origin.join("work");
        let config =
            render::run_config(plan, &program.to_string_lossy(), run.path(), &work.to_string_lossy());
        run.write("nextflow.config", config.as_bytes())?;
        run.write("params.json", render::ascii_json(&plan.parameters.clone().into()).as_bytes())?;
        for (path, text) in render::pipeline(plan.task) {
            run.write(path, text.as_bytes())?;
        }
        if render::samples(plan) {
            run.write(render::SAMPLER.0, render::SAMPLER.1.as_bytes())?;
        }
        let mut arguments: Vec<OsString> = vec!["-log".into(), "nextflow.log".into()];
        arguments.extend(render::arguments(plan, session.as_deref()));
        let variables = variables(plan, run, &origin);
        let words: Vec<OsString> = std::iter::once(&engine.program).chain(&engine.prefix).cloned().collect();
        let all: Vec<_> = engine.env.iter().chain(&variables).cloned().collect();
        run.write("command.sh", &render::script(run.path(), &all, &words, &arguments, &program))?;
        let trace = match plan.nextflow_option("-with-trace") {
            Some(Some(file)) => run.join(file),
            _ => run.join("trace.txt"),
        };
        let record = record(plan, origin, session, trace.clone());
        run.save(&record)?;
        Ok(Prepared { record, arguments, variables, trace, claim })
    }
}

fn variables(plan: &Plan, run: &RunDir, origin: &Path) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = vec![
        ("SCFOUNDRY_WORKSPACE".into(), plan.workspace.clone().into()),
        ("SCFOUNDRY_PIPELINE".into(), run.join("pipeline").into()),
    ];
    if plan.site_config.is_some() {
        // Nextflow would read that file in place of the run's, which includes it.
        variables.push(("NXF_CONFIG_FILE".into(), "".into()));
    }
    if origin != run.path() {
        variables.push(("NXF_CACHE_DIR".into(), origin.join(".nextflow").into()));
    }
    variables
}

fn record(plan: &Plan, origin: PathBuf, session: Option<String>, trace: PathBuf) -> Record {
    let pid = std::process::id();
    Record {
        task: plan.task.name().to_owned(),
        method: plan.method.clone(),
        input: plan.inputs.first().map(|input| input.id.clone()),
        workspace: Some(plan.workspace.clone()),
        started: Some(rundir::now()),
        finished: None,
        exit_code: None,
        status: Status::Planned,
        scfoundry: Some(env!("CARGO_PKG_VERSION").to_owned()),
        inputs: plan.inputs.iter().map(|input| input.path.clone()).collect(),
        outputs: plan.outputs.clone(),
        origin: Some(origin),
        session,
        trace: Some(trace),
        keep_work: plan.keep_work,
        pid: Some(pid),
        pid_started: rundir::process_started(pid),
        cards: Vec::new(),
        message: None,
        completion: None,
    }
}

/// Puts results in place, adds up the cost and closes the record.
fn finish(
    plan: &Plan,
    run: RunDir,
    mut record: Record,
    outcome: Result<Outcome>,
    prepared: Prepared,
    settings: &Settings,
) -> Result<Finished> {
    let trace_file = prepared.trace.as_path();
    // A trace that is none says as little as an absent one.
    let trace = trace_file.is_file().then(|| trace::read(trace_file).ok()).flatten();
    let went_well = outcome.as_ref().is_ok_and(Outcome::success);
    let Placed { paths: published, states, unplaced } = publish(plan, &run, went_well);
    let cost = trace.as_ref().map(|trace| summary(plan, &run, trace, settings));
    let mut error = match outcome {
        Err(error) => Some(error),
        Ok(outcome) => {
            let (trace, cost) = (trace.as_ref(), cost.as_ref());
            failure::judge(plan, &run, Evidence { outcome, trace, cost, published: &published, unplaced })
        }
    };
    let kept = keep_trace(&run, trace_file)
        .and_then(|()| cost.as_ref().map_or(Ok(()), |cost| keep_cost(&run, cost)));
    error = error.or(kept.err());
    record.status = match &error {
        None => Status::Ok,
        Some(Error { kind: Kind::Signal(_), .. }) => Status::Interrupted,
        Some(_) => Status::Failed,
    };
    record.finished = Some(rundir::now());
    record.exit_code = Some(error.as_ref().map_or(0, |error| i32::from(error.kind.exit_code())));
    record.message = error.as_ref().map(|error| error.message.clone());
    record.session = record.session.or_else(|| session::last(&run.join(".nextflow")));
    let whole = error.is_none()
        && published.len() == plan.outputs.len()
        && trace.is_some_and(|trace| !trace.tasks.is_empty())
        && !plan.is_rehearsal();
    let complete = whole && states.len() == published.len();
    record.completion = complete.then(|| completion::of(plan, states));
    // The first error is the one to tell; on a full disk this would be its echo.
    error = error.or(run.save(&record).err());
    let whole = whole && error.is_none();
    let claim = Some(prepared.claim);
    Ok(Finished { run, record, published, computed: true, whole, cost, error, entry: None, claim })
}

/// The results that are in place.
#[derive(Default)]
struct Placed {
    paths: Vec<PathBuf>,
    /// What they are, if that was asked and all could be read.
    states: Vec<OutputState>,
    /// Why a result could not be put in place.
    unplaced: Option<Error>,
}

/// Moves what the pipeline has staged to its place; `hashed`: and says what it is.
///
/// It is read before it is moved: at its place another run may replace it at any moment.
fn publish(plan: &Plan, run: &RunDir, hashed: bool) -> Placed {
    let mut placed = Placed::default();
    for output in &plan.outputs {
        let staged = run.join("outputs").join(&output.staged);
        if staged.exists() {
            placed.states.extend(hashed.then(|| completion::state(&staged).ok()).flatten());
            match atomic::publish(&staged, &output.path) {
                Ok(()) => placed.paths.push(output.path.clone()),
                Err(error) => placed.unplaced = placed.unplaced.or(Some(error)),
            }
        }
    }
    placed
}

fn keep_cost(run: &RunDir, cost: &CostSummary) -> Result<()> {
    let text = serde_json::to_string_pretty(cost)
        .map_err(|error| Error::failed("cannot write the cost").cause(error))?;
    run.write("cost.json", format!("{text}\n").as_bytes())
}

fn summary(plan: &Plan, run: &RunDir, trace: &Trace, settings: &Settings) -> CostSummary {
    let options = SummaryOptions {
        run: Some(run.name()),
        method: plan.method.clone(),
        gpu_processes: plan
            .stages
            .iter()
            .filter(|stage| stage.gpu)
            .map(|stage| stage.process.to_owned())
            .collect(),
        gpus_per_task: plan.stages.iter().map(|stage| stage.cards_per_task).max().unwrap_or(0) as u32,
        rates: settings.rates.as_ref().map(|rates| rates.value.clone()),
        ..SummaryOptions::default()
    };
    cost::summarise(trace, &options)
}

/// There is always a `trace.txt`, also when `-with-trace FILE` sent the engine's elsewhere.
fn keep_trace(run: &RunDir, trace_file: &Path) -> Result<()> {
    if trace_file == run.join("trace.txt") || !trace_file.is_file() {
        return Ok(());
    }
    let contents = std::fs::read(trace_file).map_err(Error::io("read", trace_file))?;
    run.write("trace.txt", &contents)
}
