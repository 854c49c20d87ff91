use std::ffi::OsString;
use std::path::Path;

use clap::Parser;
use serde_json::json;

use super::arguments::{self, Arguments};
use super::groups::{RunOptions, positive};
use super::surroundings::Surroundings;
use super::task::{self, Asked};
use super::{Cli, Command, Global};
use crate::error::{Error, Result};
use crate::estimate::{Estimate, Range, estimate};
use crate::gpu::{self, Card};
use crate::history::{self, Entry, Machine};
use crate::method::Task;
use crate::plan::Plan;
use crate::probe;
use crate::settings::Settings;
use crate::table::{ABSENT, Column, Table, terminal_width};
use crate::trace::units::{format_bytes, format_duration};
use crate::ui::Ui;

/// Tell what a run will cost before it is started
///
/// Takes the options of the task, and several methods with commas between them. The numbers come from runs of the same task,
/// method and options that have finished (`info --effective` shows where they are kept): time and memory are fitted to the sizes of
/// their data. Each number has bounds between which it lies in nine cases of ten; they are wide where the data are much larger
/// than any that were measured. What was never measured has no number.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "scfoundry estimate [--task TASK] [--method NAME,NAME] [--probe CELLS] [OPTIONS OF THE TASK]",
    after_long_help = "\
Examples:
  scfoundry estimate --method scgpt,uce --data atlas.h5ad
  scfoundry estimate --method scgpt --data atlas.h5ad --probe 1000
  scfoundry estimate --task benchmark --embedding results/embeddings/* --batch-key donor
  scfoundry estimate --task transfer --method pca --reference a.h5ad --query b.h5ad --json

See also: `--max-hours` and `--max-gpu-memory` of each task, which refuse a run that may cost more"
)]
pub struct Args {
    /// Task to estimate
    #[arg(long, value_name = "TASK", default_value = "embed")]
    task: Task,

    /// Methods to estimate, with commas between them
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',')]
    method: Vec<String>,

    /// Really run the task on this many cells of the data, and on a third of them, before the estimate
    ///
    /// The cells are drawn by label where there is one. The two runs join the history; their files are removed.
    #[arg(long, value_name = "CELLS", value_parser = positive)]
    probe: Option<u32>,
}

/// A method that is asked about.
struct Candidate {
    plan: Plan,
    settings: Settings,
    cost_class: Option<u8>,
}

/// What is printed of one method.
struct Row {
    method: Option<String>,
    estimate: Estimate,
    cost_class: Option<u8>,
}

/// What estimates are made from.
struct Known {
    entries: Vec<Entry>,
    machine: Machine,
    cards: Vec<Card>,
}

pub fn run(args: Args, rest: Vec<OsString>, global: &Global, ui: &Ui) -> Result<()> {
    let methods = match args.method.is_empty() {
        true => vec![None],
        false => args.method.iter().map(Some).collect(),
    };
    let mut candidates = Vec::new();
    for method in methods {
        let (asked, options, arguments) = as_typed(args.task, method, &rest)?;
        candidates.push(candidate(asked, options, arguments, args.probe, global, ui)?);
    }
    // All are typed with the same options, and so read the same history: once, when all probes have added to it.
    let Some(first) = candidates.first() else { return Ok(()) };
    let known = Known::gather(&first.settings, candidates.iter().map(|candidate| &candidate.plan), ui)?;
    let row = |Candidate { plan, cost_class, .. }: &Candidate| Row {
        method: plan.method.clone(),
        estimate: known.estimate(plan),
        cost_class: *cost_class,
    };
    show(args.task, &candidates.iter().map(row).collect::<Vec<_>>(), ui)
}

/// The command line that would run the task with this method, read as that command reads it.
fn as_typed(
    task: Task,
    method: Option<&String>,
    rest: &[OsString],
) -> Result<(Asked, RunOptions, Arguments)> {
    let mut line: Vec<OsString> = vec!["scfoundry".into(), task.name().into()];
    if let Some(method) = method {
        line.extend(["--method".into(), method.into()]);
    }
    line.extend(rest.iter().cloned());
    let arguments = arguments::split(line)?;
    let cli = Cli::try_parse_from(&arguments.own).unwrap_or_else(|error| error.exit());
    let mut taken = None;
    if let Command::Task(command) = cli.command {
        command.run(|asked, options| {
            taken = Some((asked, options));
            Ok(())
        })?;
    }
    let (asked, options) =
        taken.ok_or_else(|| Error::usage(format_args!("{task} is not a task that runs")))?;
    Ok((asked, options, arguments))
}

/// The plan of a method, once it has been probed where that is asked for.
fn candidate(
    asked: Asked,
    options: RunOptions,
    arguments: Arguments,
    probed: Option<u32>,
    global: &Global,
    ui: &Ui,
) -> Result<Candidate> {
    let around = Surroundings::find(global, &options.flags())?;
    let catalogue = around.catalogue()?;
    let request = task::request(asked, &options, arguments);
    let plan = task::make(&request, &around, &catalogue)?;
    if let Some(cells) = probed {
        let stamp = task::stamp();
        probe::measure(&request, &around.context(&catalogue, &stamp), cells as usize, ui)?;
    }
    for warning in &plan.warnings {
        ui.warn(warning);
    }
    let profile = request.method.as_deref().and_then(|name| catalogue.get(name).ok());
    let cost_class = profile.filter(|_| plan.task.is_done_by_a_method()).map(|profile| profile.cost_class);
    Ok(Candidate { plan, settings: around.settings, cost_class })
}

/// The estimate of a plan from the history of the settings, for the card that the plan names.
///
/// # Errors
/// Input: the history cannot be read.
pub fn of(plan: &Plan, settings: &Settings, ui: &Ui) -> Result<Estimate> {
    Ok(Known::gather(settings, [plan], ui)?.estimate(plan))
}

impl Known {
    fn gather<'a>(settings: &Settings, plans: impl IntoIterator<Item = &'a Plan>, ui: &Ui) -> Result<Known> {
        let entries = match &settings.history {
            Some(history) => read(&history.value, ui)?,
            None => Vec::new(),
        };
        let wanted = plans.into_iter().any(Plan::uses_cards_here);
        let cards = wanted.then(gpu::survey).and_then(std::result::Result::ok).unwrap_or_default();
        Ok(Known { entries, machine: Machine::here(), cards })
    }

    /// For the card that the plan names.
    fn estimate(&self, plan: &Plan) -> Estimate {
        let named = |card: &&Card| plan.gpus.0.is_empty() || plan.gpus.0.contains(&card.index);
        let cards = self.cards.iter().filter(|_| plan.uses_cards_here());
        let bytes = cards.into_iter().find(named).and_then(|card| card.total_bytes);
        estimate(plan, &self.entries, &self.machine, bytes)
    }
}

fn read(directory: &Path, ui: &Ui) -> Result<Vec<Entry>> {
    let history = history::read(directory)?;
    if let Some(first) = history.unreadable.first() {
        let others = match history.unreadable.len() - 1 {
            0 => String::new(),
            count => format!(", and {count} others of the history"),
        };
        ui.warn(format_args!("left out as damaged or of a later version: {}{others}", first.display()));
    }
    Ok(history.entries)
}

fn show(task: Task, rows: &[Row], ui: &Ui) -> Result<()> {
    if ui.json {
        let estimates: Vec<_> = rows
            .iter()
            .map(|row| {
                let mut value = json!(row.estimate);
                value["method"] = json!(row.method);
                value["cost_class"] = json!(row.cost_class);
                value
            })
            .collect();
        return ui.document(&json!({ "schema": 1, "task": task, "estimates": estimates }));
    }
    let mut table = Table::new([
        Column::text("method"),
        Column::text("time"),
        Column::text("peak RSS"),
        Column::text("peak GPU"),
        Column::text("disk"),
        Column::text("basis"),
    ]);
    for row in rows {
        let Estimate { seconds, peak_rss_bytes, peak_gpu_bytes, disk_bytes, basis, .. } = &row.estimate;
        let disk = match disk_bytes {
            0 => String::new(),
            bytes => format!("at least {}", format_bytes(*bytes)),
        };
        table.row([
            row.method.clone().unwrap_or_else(|| task.name().to_owned()),
            bounded(*seconds, |seconds| format_duration((seconds * 1e3) as u64)),
            bounded(*peak_rss_bytes, |bytes| format_bytes(bytes as u64)),
            bounded(*peak_gpu_bytes, |bytes| format_bytes(bytes as u64)),
            disk,
            basis.as_ref().map_or("no measurement yet".to_owned(), ToString::to_string),
        ]);
    }
    ui.line(table.render(terminal_width()))?;
    for remark in remarks(rows) {
        ui.note(remark);
    }
    Ok(())
}

fn bounded(range: Option<Range>, form: impl Fn(f64) -> String) -> String {
    let Some(Range { low, middle, high }) = range else { return ABSENT.to_owned() };
    format!("{} ({} to {})", form(middle), form(low), form(high))
}

/// What the table has no room for.
fn remarks(rows: &[Row]) -> Vec<String> {
    let mut remarks = Vec::new();
    let engine = rows.iter().find(|row| row.estimate.seconds.is_some());
    if let Some(seconds) = engine.and_then(|row| row.estimate.engine_seconds) {
        remarks.push(format!("on top of each time: {seconds:.1} s for the engine to start and to end"));
    }
    for Row { method, estimate, .. } in rows {
        let name = method.as_deref().unwrap_or("this task");
        if let Some(size) = estimate.largest_batch_size {
            remarks.push(format!("{name}: the largest batch that fits the GPU has about {size} cells"));
        }
        if !estimate.unmeasured.is_empty() {
            remarks.push(format!(
                "{name}: nothing like it was measured of {}; `--probe 1000` measures it on as many cells",
                estimate.unmeasured.join(", ")
            ));
        }
    }
    remarks.extend(order(rows));
    remarks
}

/// Where a method has no number, all by the order of their cost: from the methods' descriptions, not measured.
fn order(rows: &[Row]) -> Option<String> {
    let unknown = rows.iter().any(|row| row.estimate.seconds.is_none());
    let mut classes: Vec<(u8, &str)> =
        rows.iter().filter_map(|row| Some((row.cost_class?, row.method.as_deref()?))).collect();
    if !unknown || classes.len() < 2 {
        return None;
    }
    classes.sort();
    let mut text = classes[0].1.to_owned();
    for pair in classes.windows(2) {
        text += if pair[0].0 == pair[1].0 { " and " } else { ", then " };
        text += pair[1].1;
    }
    Some(format!("order of cost, not measured: {text}"))
}
