use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Global;
use super::surroundings::Surroundings;
use crate::clean::{self, Age, Selection, Size, Target, Wanted};
use crate::error::{Error, Result};
use crate::table::{Column, Table, terminal_width};
use crate::trace::units::format_bytes;
use crate::ui::Ui;

/// Remove finished runs or their work, and tell what that frees
///
/// RUN is the name or path of a run directory. Without RUN, all runs of the workspace that have ended and fit the options
/// are removed; one of RUN, --older-than, --failed and --work must be given. Results, data and methods are never touched,
/// nor is a run that is running, or whose work a running run uses.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry clean --older-than 30d --dry-run
  scfoundry clean --failed --older-than 1w
  scfoundry clean --work
  scfoundry clean 20261202-101500_pca_colon
  scfoundry clean --older-than 0h --json | jq .freed_bytes

A run is as old as its end, or as the end of the last run that resumed it. Sizes are blocks on
disk; a file that has another name elsewhere frees nothing. A run that went well has removed its
work itself. With --work, `runs` and `cost` still know the run; what it has not brought to an end,
`--resume` does from the start. Symbolic links are never followed.
A container or a SLURM job that a killed run has left in its work is ended first.
What cannot be removed is named, the rest goes, and the exit code is 1.")]
pub struct Args {
    /// Only these runs
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,

    /// Only runs that ended at least this long ago: hours, days or weeks, as in `12h`, `30d`, `4w`
    #[arg(long, value_name = "AGE", allow_hyphen_values = true)]
    pub older_than: Option<Age>,

    /// Only runs that failed, were interrupted or got lost
    #[arg(long)]
    pub failed: bool,

    /// Only work directories and task caches; records, logs, traces and costs stay
    #[arg(long)]
    pub work: bool,

    /// Show what would go; remove nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What has gone, or would.
#[derive(Default)]
struct Gone {
    targets: Vec<(Target, Size)>,
    failures: usize,
}

impl Gone {
    fn bytes(&self) -> u64 {
        let mut all = Size::default();
        for (_, size) in &self.targets {
            all.merge(size);
        }
        all.bytes()
    }
}

pub fn run(args: Args, global: &Global, ui: &Ui) -> Result<()> {
    if args.runs.is_empty() && args.older_than.is_none() && !args.failed && !args.work {
        return Err(Error::usage("nothing says which runs to remove")
            .hint("add `--older-than 30d`, `--failed`, `--work` or names of runs; with `--dry-run` nothing is removed"));
    }
    let runs = Surroundings::existing(global)?.workspace.runs();
    let wanted =
        Wanted { names: args.runs, older_than: args.older_than, failed: args.failed, work: args.work };
    let selection = clean::select(&runs, &wanted, Timestamp::now())?;
    for odd in &selection.odd {
        ui.warn(odd);
    }
    let gone = remove(selection, args.dry_run, ui);
    if !args.dry_run {
        clean::remove_empty_folders(&runs);
    }
    if ui.json {
        ui.document(&document(&gone, args.dry_run))?;
    } else if gone.targets.is_empty() {
        ui.note(format_args!("nothing to remove in {}", runs.display()));
    } else {
        print(&gone, args.dry_run, ui)?;
    }
    match gone.failures {
        0 => Ok(()),
        1 => Err(Error::failed("1 directory was not removed")),
        several => Err(Error::failed(format_args!("{several} directories were not removed"))),
    }
}

fn remove(selection: Selection, dry_run: bool, ui: &Ui) -> Gone {
    let mut gone = Gone::default();
    for refused in &selection.refused {
        ui.warn(format_args!("{refused}; it stays"));
        gone.failures += 1;
    }
    for target in selection.targets {
        let size = target.size();
        ui.detail(format_args!("{} ({})", target.path.display(), format_bytes(size.bytes())));
        match if dry_run { Ok(true) } else { clean::remove(&target, ui) } {
            Ok(true) => gone.targets.push((target, size)),
            Ok(false) => {}
            Err(error) => {
                let hints: String = error.hints.iter().map(|hint| format!("\n  {hint}")).collect();
                ui.warn(format_args!("{error}{hints}"));
                gone.failures += 1;
            }
        }
    }
    gone
}

fn print(gone: &Gone, dry_run: bool, ui: &Ui) -> Result<()> {
    let mut table = Table::new([
        Column::text("run").trimmed(),
        Column::text("status"),
        Column::number("age"),
        Column::text(if dry_run { "would go" } else { "gone" }),
        Column::number("size"),
    ]);
    for (target, size) in &gone.targets {
        table.row([
            target.name.clone(),
            target.run.as_ref().map_or(String::new(), |(_, status)| status.name().to_owned()),
            target.age.map_or(String::new(), |age| age.to_string()),
            target.part.name().to_owned(),
            format_bytes(size.bytes()),
        ]);
    }
    ui.line(table.render(terminal_width()))?;
    let count = match gone.targets.iter().filter(|(target, _)| target.run.is_some()).count() {
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    };
    let verb = if dry_run { "would be freed" } else { "freed" };
    ui.line(format_args!("{count}, {} {verb}", format_bytes(gone.bytes())))
}

fn document(gone: &Gone, dry_run: bool) -> Value {
    let entry = |(target, size): &(Target, Size)| {
        json!({
            "name": target.name,
            "path": target.path,
            "part": target.part.name(),
            "status": target.run.as_ref().map(|(_, status)| status),
            "age_seconds": target.age.map(Age::seconds),
            "bytes": size.bytes(),
        })
    };
    json!({
        "schema": 1,
        "dry_run": dry_run,
        "removed": gone.targets.iter().map(entry).collect::<Vec<_>>(),
        "freed_bytes": gone.bytes(),
        "failures": gone.failures,
    })
}
