use std::path::{Path, PathBuf};

use super::Global;
use super::surroundings::Surroundings;
use crate::cost::{self, Comparison, CostSummary, Rates, SummaryOptions};
use crate::error::{Error, Result};
use crate::launch::Finished;
use crate::rundir::{RunDir, Status};
use crate::settings::{Flags, Settings};
use crate::table::terminal_width;
use crate::trace;
use crate::ui::Ui;

/// Show what runs cost, from their traces
///
/// RUN is the name or path of a run directory, or a trace file of any Nextflow run. Without RUN: the newest run of the
/// workspace. Several runs are compared. A run that has ended is shown as it wrote its cost down, at today's rates.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry cost
  scfoundry cost 20261202-101500_pca_colon 20261202-102000_pca_colon
  scfoundry cost ~/other/pipeline/trace.txt --json
  scfoundry cost runs/embed/* --csv > costs.csv

Units: KiB, MiB, GiB are powers of 1024. CPU time is run time x %CPU. What was not measured is shown as `-`, never as 0.")]
pub struct Args {
    /// Runs or trace files
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,

    /// One row a task as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

pub fn run(args: Args, global: &Global, ui: &Ui) -> Result<()> {
    let summaries = match args.runs.as_slice() {
        [] => vec![newest(global)?],
        runs => {
            let around = Surroundings::find(global, &Flags::default())?;
            let rates = rates(&around.settings);
            let named = |run: &PathBuf| summary(run, &around.workspace.runs(), rates.clone());
            runs.iter().map(named).collect::<Result<_>>()?
        }
    };
    if args.csv {
        let mut text = Vec::new();
        cost::write_csv(&summaries, &mut text)?;
        return ui.line(String::from_utf8_lossy(&text).trim_end());
    }
    match (summaries.as_slice(), ui.json) {
        ([one], true) => ui.document(one)?,
        (several, true) => ui.document(&Comparison::new(several))?,
        ([one], false) => print(one, ui)?,
        (several, false) => ui.line(cost::comparison_table(several).render(terminal_width()))?,
    }
    match summaries.iter().find(|summary| summary.suspect()) {
        Some(summary) => Err(Error::failed(format_args!("{} is not clean", summary.trace.display()))
            .cause("a task was killed for memory although it is called complete")),
        None => Ok(()),
    }
}

/// The table of one run on stdout, remarks below.
fn print(summary: &CostSummary, ui: &Ui) -> Result<()> {
    let table = cost::task_table(summary);
    if !table.is_empty() {
        ui.line(table.render(terminal_width()))?;
    }
    for remark in cost::remarks(summary) {
        ui.line(remark)?;
    }
    Ok(())
}

/// The table of a run that has just ended, on stderr: stdout is for its results.
pub fn print_after_run(finished: &Finished, ui: &Ui) {
    let Some(summary) = &finished.cost else { return };
    let table = cost::task_table(summary);
    if !table.is_empty() {
        ui.note(format_args!("\n{}", table.render(terminal_width())));
    }
    for remark in cost::remarks(summary) {
        ui.note(remark);
    }
    ui.note("");
}

fn rates(settings: &Settings) -> Option<Rates> {
    settings.rates.as_ref().map(|rates| rates.value.clone())
}

fn newest(global: &Global) -> Result<CostSummary> {
    let around = Surroundings::existing(global)?;
    let run = RunDir::list(&around.workspace.runs()).into_iter().find(|run| trace_of(run.path()).is_some());
    match run {
        Some(run) => of_run(&run, rates(&around.settings)),
        None => {
            Err(Error::input(format_args!("no run in {} has a trace", around.workspace.runs().display())))
        }
    }
}

/// A run by name or path, or a trace file.
fn summary(given: &Path, runs: &Path, rates: Option<Rates>) -> Result<CostSummary> {
    if given.is_file() {
        let trace = trace::read(given)?;
        return Ok(cost::summarise(&trace, &SummaryOptions { rates, ..SummaryOptions::default() }));
    }
    if given.is_dir() {
        return match trace_of(given).filter(|_| !given.join("run.json").exists()) {
            // The launch directory of a run that is not ours.
            Some(trace) => summary(&trace, runs, rates),
            None => of_run(&RunDir::open(given)?, rates),
        };
    }
    let inside = crate::method::Task::ALL.iter().map(|task| runs.join(task.name()).join(given));
    match inside.into_iter().find(|path| path.is_dir()) {
        Some(path) => of_run(&RunDir::open(&path)?, rates),
        None => Err(Error::input(format_args!("{} is neither a run nor a trace file", given.display()))
            .hint("`scfoundry runs` lists the runs of the workspace")),
    }
}

/// What the run wrote down when it ended, at today's rates; else what its trace and its work directories tell.
fn of_run(run: &RunDir, rates: Option<Rates>) -> Result<CostSummary> {
    let path = trace_of(run.path()).ok_or_else(|| {
        Error::input(format_args!("run {} has no trace", run.name()))
            .cause("its engine did not come to start a task")
    })?;
    let trace = trace::read(&path)?;
    let record = run.record()?;
    let has_ended = matches!(record.status, Status::Ok | Status::Failed | Status::Interrupted);
    let recorded = cost::recorded(&run.join("cost.json")).filter(|cost| has_ended && cost.is_of(&trace));
    if let Some(mut summary) = recorded {
        summary.price_at(rates.as_ref());
        return Ok(CostSummary { run: Some(run.name()), trace: path, ..summary });
    }
    let method = record.method;
    Ok(cost::summarise(
        &trace,
        &SummaryOptions { run: Some(run.name()), method, rates, ..SummaryOptions::default() },
    ))
}

fn trace_of(run: &Path) -> Option<PathBuf> {
    Some(run.join("trace.txt")).filter(|path| path.is_file())
}
