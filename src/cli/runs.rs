use serde_json::json;

use super::Global;
use super::surroundings::Surroundings;
use crate::error::Result;
use crate::method::Task;
use crate::rundir::{Record, RunDir};
use crate::table::{Column, Table, terminal_width};
use crate::ui::Ui;

/// List the runs of the workspace, newest first
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry runs --task embed --limit 5
  scfoundry runs --json | jq -r '.runs[] | select(.status == \"failed\") | .path'")]
pub struct Args {
    /// Only runs of this task
    #[arg(long, value_name = "TASK")]
    pub task: Option<Task>,

    /// How many to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
}

pub fn run(args: Args, global: &Global, ui: &Ui) -> Result<()> {
    let workspace = Surroundings::existing(global)?.workspace;
    let wanted = |record: &Record| args.task.is_none_or(|task| record.task == task.name());
    let found: Vec<(RunDir, Record)> = RunDir::list(&workspace.runs())
        .into_iter()
        .filter_map(|run| {
            let record = run.record().ok()?;
            wanted(&record).then_some((run, record))
        })
        .take(args.limit)
        .collect();
    if ui.json {
        let runs: Vec<_> = found
            .iter()
            .map(|(run, record)| {
                let mut entry = json!({ "name": run.name(), "path": run.path() });
                if let (Some(entry), Ok(serde_json::Value::Object(fields))) =
                    (entry.as_object_mut(), serde_json::to_value(record))
                {
                    entry.extend(fields);
                }
                entry
            })
            .collect();
        return ui.document(&json!({ "schema": 1, "runs": runs }));
    }
    if found.is_empty() {
        ui.note(format_args!("no runs in {}", workspace.runs().display()));
        return Ok(());
    }
    let mut table = Table::new([
        Column::text("run").trimmed(),
        Column::text("task"),
        Column::text("method"),
        Column::text("input").trimmed(),
        Column::text("status"),
        Column::number("exit"),
        Column::text("started"),
    ]);
    for (run, record) in found {
        table.row([
            run.name(),
            record.task,
            record.method.unwrap_or_default(),
            record.input.unwrap_or_default(),
            record.status.name().to_owned(),
            record.exit_code.map_or(String::new(), |code| code.to_string()),
            record.started.unwrap_or_default(),
        ]);
    }
    ui.line(table.render(terminal_width()))
}
