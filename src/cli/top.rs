use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::Global;
use super::groups::positive;
use super::surroundings::Surroundings;
use crate::error::Result;
use crate::nextflow::StopRequests;
use crate::table::{ABSENT, Column, Table, terminal_width};
use crate::trace::units::{format_bytes, format_duration};
use crate::ui::Ui;
use crate::watch::{self, Facts, Processes, Watch};

/// Show the runs that are running, how far they are and what they hold
///
/// On a terminal the table is drawn anew until Ctrl-C, which ends it and no run; elsewhere it is printed once. Cells are those of
/// the tasks that tell; the end is foretold from what is done; memory is that of the processes on this machine, GPU memory
/// the newest sample.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry top
  scfoundry top --json | jq '.runs[] | {name, forecast_end}'

See also: `scfoundry cost --follow`, `scfoundry gpus`")]
pub struct Args {
    /// Print the table once
    #[arg(long)]
    once: bool,

    /// Seconds between two drawings
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = positive)]
    interval: u32,
}

pub fn run(args: Args, global: &Global, ui: &Ui) -> Result<()> {
    let runs = Surroundings::existing(global)?.workspace.runs();
    let mut watches = Watches::default();
    let mut live = ui.live().filter(|_| !args.once && !ui.json);
    let stop = live.as_ref().map(|_| StopRequests::watch()).transpose()?;
    loop {
        let facts = watches.look(&runs);
        if ui.json {
            return ui.document(&json!({ "schema": 1, "runs": facts }));
        }
        let (Some(live), Some(stop)) = (&mut live, &stop) else {
            return match facts.is_empty() {
                true => ui.line(NOTHING),
                false => ui.line(table(&facts).render(terminal_width())),
            };
        };
        let text = if facts.is_empty() { NOTHING.to_owned() } else { table(&facts).to_string() };
        live.draw(&text)?;
        if stop.within(Duration::from_secs(args.interval.into())).is_some() {
            return Ok(());
        }
    }
}

const NOTHING: &str = "no run of this workspace is running";

/// The running runs, as long as they run.
#[derive(Default)]
struct Watches(Vec<Watch>);

impl Watches {
    fn look(&mut self, runs: &Path) -> Vec<Facts> {
        let running = watch::running(runs);
        self.0.retain(|watch| running.iter().any(|(run, _)| run.path() == watch.run().path()));
        for (run, record) in running {
            if !self.0.iter().any(|watch| watch.run().path() == run.path()) {
                self.0.push(Watch::new(run, record));
            }
        }
        let (now, processes) = (Timestamp::now(), Processes::look());
        self.0.iter_mut().for_each(|watch| drop(watch.poll()));
        self.0.iter().map(|watch| watch.facts(now, &processes)).collect()
    }
}

fn table(all: &[Facts]) -> Table {
    let mut table = Table::new([
        Column::text("run").trimmed(),
        Column::text("stage"),
        Column::number("tasks"),
        Column::number("cells"),
        Column::number("elapsed"),
        Column::text("end"),
        Column::number("RSS"),
        Column::number("GPU"),
    ]);
    for facts in all {
        let (done, expected) = facts.done();
        table.row([
            facts.name.clone(),
            facts.stage().unwrap_or_default(),
            expected.map_or(done.to_string(), |expected| format!("{done}/{expected}")),
            facts.cells().map_or(ABSENT.to_owned(), |(done, all)| format!("{done}/{all}")),
            facts.elapsed_ms.map_or(ABSENT.to_owned(), format_duration),
            facts.forecast_end.map_or(ABSENT.to_owned(), clock),
            facts.rss_bytes.map_or(ABSENT.to_owned(), format_bytes),
            facts.gpu_bytes.map_or(ABSENT.to_owned(), format_bytes),
        ]);
    }
    table
}

/// The local time, with the day where that is another.
fn clock(end: Timestamp) -> String {
    let (end, now) = (end.to_zoned(TimeZone::system()), jiff::Zoned::now());
    let form = if end.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    end.strftime(form).to_string()
}
