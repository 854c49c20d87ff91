use std::path::{Path, PathBuf};

use super::surroundings::Surroundings;
use super::{Global, follow};
use crate::cost::{self, Comparison, CostSummary, Rates, SummaryOptions};
use crate::error::{Error, Result};
use crate::launch::Finished;
use crate::rundir::{RunDir, Status};
use crate::settings::{Flags, Settings};
use crate::table::terminal_width;
use crate::trace;
use crate::trace::units::format_bytes;
use crate::ui::Ui;
use crate::watch;

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
  scfoundry cost --detail                  # cells, batches, disk, and requests that would fit better
  scfoundry cost runs/embed/* --csv > costs.csv
  scfoundry cost --json | jq .disk.left_bytes
  scfoundry cost --follow                  # the newest running run: its tasks now, its cost when it ends
  scfoundry cost --follow 20261202-101500_pca_colon && ./next-step.sh

Peak GPU is measured by the `allocator` of the task, or `sampled` from nvidia-smi once a second for the whole card; on a `shared
card` the memory of others is in it. Rates in scfoundry.toml add money, energy and CO2.

What a run leaves on the disk is measured when it is shown: `disk` (its results, the work of its tasks, and both together) and
`disk_bytes` of each task in --json, the last columns in --csv. A run that went well has removed its work.

--follow shows a table of the tasks on a terminal, else one line for each task that ends, then the cost. It ends with 0 where the
run went well and with 1 where not. Ctrl-C ends the watching only, never the run.

Units: KiB, MiB, GiB are powers of 1024. CPU time is run time x %CPU. What was not measured is shown as `-`, never as 0.")]
pub struct Args {
    /// Runs or trace files
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,

    /// One row a task as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// Show all that is known of each task, the disk in use, and settings that would fit better
    #[arg(long, conflicts_with_all = ["csv", "json"])]
    pub detail: bool,

    /// Watch a running run until it ends, then show its cost [default: the newest running run]
    #[arg(short, long)]
    pub follow: bool,
}

pub fn run(args: Args, global: &Global, ui: &Ui) -> Result<()> {
    if args.follow {
        return watch(&args, global, ui);
    }
    let summaries = match args.runs.as_slice() {
        [] => vec![newest(global)?],
        runs => {
            let around = Surroundings::find(global, &Flags::default())?;
            let rates = rates(&around.settings);
            let named = |run: &PathBuf| summary(run, &around.workspace.runs(), rates.clone());
            runs.iter().map(named).collect::<Result<_>>()?
        }
    };
    show(summaries, &args, ui)
}

/// Watches one run until it ends, then shows its cost.
fn watch(args: &Args, global: &Global, ui: &Ui) -> Result<()> {
    let (run, around) = match args.runs.as_slice() {
        [] => {
            let around = Surroundings::existing(global)?;
            (newest_running(&around.workspace.runs())?, around)
        }
        [run] => {
            let around = Surroundings::find(global, &Flags::default())?;
            (one_run(run, &around.workspace.runs())?, around)
        }
        _ => return Err(Error::usage("--follow watches one run").hint("name one, or none for the newest")),
    };
    let record = follow::until_end(&run, args.csv || ui.json, ui)?;
    let verdict = follow::verdict(&run, &record);
    if trace_of(run.path()).is_none() {
        return verdict.and_then(|()| of_run(&run, None).map(drop));
    }
    let shown = show(vec![of_run(&run, rates(&around.settings))?], args, ui);
    verdict.and(shown)
}

fn newest_running(runs: &Path) -> Result<RunDir> {
    let newest = watch::running(runs).into_iter().next();
    newest.map(|(run, _)| run).ok_or_else(|| {
        Error::input(format_args!("no run in {} is running", runs.display()))
            .hint("`scfoundry cost` shows what the newest run cost, `scfoundry cost --follow RUN` watches a certain one")
    })
}

fn show(mut summaries: Vec<CostSummary>, args: &Args, ui: &Ui) -> Result<()> {
    if args.csv || args.detail || ui.json {
        summaries.iter_mut().for_each(measure_disk);
    }
    if args.csv {
        let mut text = Vec::new();
        cost::write_csv(&summaries, &mut text)?;
        return ui.line(String::from_utf8_lossy(&text).trim_end());
    }
    match (summaries.as_slice(), ui.json) {
        ([one], true) => ui.document(one)?,
        (several, true) => ui.document(&Comparison::new(several))?,
        ([one], false) => print(one, args.detail, ui)?,
        (several, false) => compare(several, ui)?,
    }
    match summaries.iter().find(|summary| summary.suspect()) {
        Some(summary) => Err(Error::failed(format_args!("{} is not clean", summary.trace.display()))
            .cause("a task was killed for memory although it is called complete")),
        None => Ok(()),
    }
}

fn compare(summaries: &[CostSummary], ui: &Ui) -> Result<()> {
    ui.line(cost::comparison_table(summaries).render(terminal_width()))?;
    ui.line(
        "\nper 1000 cells, and as a multiple of the first run (time: per cell where both know their cells)",
    )?;
    ui.line(cost::ratio_table(summaries).render(terminal_width()))
}

/// The table of one run on stdout, remarks below.
fn print(summary: &CostSummary, detail: bool, ui: &Ui) -> Result<()> {
    let table = cost::task_table(summary);
    if !table.is_empty() {
        ui.line(table.render(terminal_width()))?;
    }
    for remark in cost::remarks(summary) {
        ui.line(remark)?;
    }
    if !detail || summary.tasks.is_empty() {
        return Ok(());
    }
    ui.line(format_args!("\n{}", cost::detail_table(summary).render(terminal_width())))?;
    if let Some(disk) = summary.disk {
        let (results, work) = (format_bytes(disk.results_bytes), format_bytes(disk.work_bytes));
        ui.line(format_args!("disk in use: results {results}, work {work}"))?;
    }
    if let Some(advice) = cost::advice(summary) {
        ui.line("\nRequests that would fit better, for nextflow.config:")?;
        ui.line(advice)?;
    }
    Ok(())
}

/// Measures what a run of ours has left on the disk, as it is now.
fn measure_disk(summary: &mut CostSummary) {
    let run = summary.trace.parent().and_then(|run| RunDir::open(run).ok());
    if let Some((run, record)) = run.and_then(|run| run.record().ok().map(|record| (run, record))) {
        let work = record.origin.as_deref().unwrap_or(run.path()).join("work");
        summary.measure_disk(record.outputs.iter().map(|output| output.path.as_path()), &work);
    }
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
    // The launch directory of a run that is not ours.
    match trace_of(given).filter(|_| !given.join("run.json").exists()) {
        Some(trace) => summary(&trace, runs, rates),
        None => of_run(&one_run(given, runs)?, rates),
    }
}

/// A run by name or path.
fn one_run(given: &Path, runs: &Path) -> Result<RunDir> {
    if given.is_dir() {
        return RunDir::open(given);
    }
    let inside = crate::method::Task::ALL.iter().map(|task| runs.join(task.name()).join(given));
    match inside.into_iter().find(|path| path.is_dir()) {
        Some(path) => RunDir::open(&path),
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
    let record = run.record()?;
    let has_ended = matches!(record.status, Status::Ok | Status::Failed | Status::Interrupted);
    let written = || has_ended.then(|| cost::recorded(&run.join("cost.json"))).flatten();
    let (trace, recorded) = rayon::join(|| trace::read(&path), written);
    let trace = trace?;
    let recorded = recorded.filter(|cost| cost.is_of(&trace));
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
