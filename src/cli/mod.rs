//! The command line: one file a command, each with its arguments and one function.

mod arguments;
mod benchmark;
mod check;
mod clean;
mod completions;
mod cost;
mod doctor;
mod download;
mod dry_run;
mod embed;
mod estimate;
mod finetune;
mod follow;
mod geometry;
mod gpus;
mod groups;
mod info;
mod init;
mod kernel;
mod list;
mod report;
mod resume;
mod runs;
mod scores;
mod surroundings;
mod task;
mod top;
mod transfer;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::{Kind, Result};
use crate::ui::Ui;

/// Run, cost and compare single-cell foundation models
///
/// A task (embed, transfer, finetune, benchmark, geometry, check) is planned, written into a run directory and run by
/// Nextflow, on this machine or on a cluster; then its cost is shown. Options that a command does not have go to the
/// pipeline as parameters, and all after `--` goes to `nextflow run`.
#[derive(Debug, Parser)]
#[command(name = "scfoundry", version, max_term_width = 100, after_long_help = AFTER_HELP)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,

    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Workspace to use [default: nearest parent with .scfoundry.json] [env: SCFOUNDRY_WORKSPACE]
    #[arg(long, global = true, value_name = "DIR")]
    pub workspace: Option<PathBuf>,

    /// Print data as one JSON document
    #[arg(long, global = true)]
    pub json: bool,

    /// Say nothing but warnings and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,

    /// Say more, and show what the engine prints
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
}

/// The commands, in the order of a first day's work.
#[derive(Debug, Subcommand)]
pub enum Command {
    Init(init::Args),
    Doctor(doctor::Args),
    Info(info::Args),
    Gpus(gpus::Args),
    List(list::Args),
    Download(download::Args),
    #[command(flatten)]
    Task(Box<TaskCommand>),
    Estimate(estimate::Args),
    Runs(runs::Args),
    Top(top::Args),
    Cost(cost::Args),
    Clean(clean::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Kernel(kernel::Args),
}

/// The commands that run a task through Nextflow.
#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    Check(check::Args),
    Embed(embed::Args),
    Transfer(transfer::Args),
    Finetune(finetune::Args),
    Benchmark(benchmark::Args),
    Geometry(geometry::Args),
}

impl TaskCommand {
    /// Reads the arguments and hands what they ask for to `task`.
    fn run(self, task: impl FnOnce(task::Asked, groups::RunOptions) -> Result<()>) -> Result<()> {
        match self {
            TaskCommand::Check(args) => check::run(args, task),
            TaskCommand::Embed(args) => embed::run(args, task),
            TaskCommand::Transfer(args) => transfer::run(args, task),
            TaskCommand::Finetune(args) => finetune::run(args, task),
            TaskCommand::Benchmark(args) => benchmark::run(args, task),
            TaskCommand::Geometry(args) => geometry::run(args, task),
        }
    }
}

const AFTER_HELP: &str = "\
Examples:
  scfoundry embed --method pca --data colon.h5ad
  scfoundry check --data colon.h5ad --method scgpt
  scfoundry estimate --method pca,scgpt --data colon.h5ad
  scfoundry embed --method scgpt --data colon.h5ad --dry-run
  scfoundry embed --method pca --data colon.h5ad -- -with-report report.html
  scfoundry cost

Exit codes:
  0  done
  1  the run ended, but a task or the engine failed
  2  the command line is wrong
  3  a file, a value or a workspace was rejected
  4  something outside is missing: Java, Nextflow, a container engine, a runner, a GPU
  130, 143  stopped by Ctrl-C, by a TERM signal
  Any other code is Nextflow's own.";

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments = match arguments::split(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => return fail(&Ui::default(), &error),
    };
    let cli = match Cli::try_parse_from(&arguments.own) {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to stdout, which may be a closed pipe.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let ui = Ui { quiet: cli.global.quiet, verbose: cli.global.verbose, json: cli.global.json };
    match dispatch(cli, arguments, &ui) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&ui, &error),
    }
}

fn fail(ui: &Ui, error: &crate::error::Error) -> ExitCode {
    if error.kind != Kind::BrokenPipe {
        ui.error(error);
    }
    ExitCode::from(error.kind.exit_code())
}

fn dispatch(cli: Cli, arguments: arguments::Arguments, ui: &Ui) -> Result<()> {
    let global = &cli.global;
    let rest = arguments.rest.clone();
    match cli.command {
        Command::Init(args) => init::run(args, ui),
        Command::Doctor(args) => doctor::run(args, global, ui),
        Command::Info(args) => info::run(args, global, ui),
        Command::Gpus(args) => gpus::run(args, ui),
        Command::List(args) => list::run(args, global, ui),
        Command::Download(args) => download::run(args, global, ui),
        Command::Task(command) => {
            command.run(|asked, options| task::run(asked, options, arguments, global, ui))
        }
        Command::Estimate(args) => estimate::run(args, rest, global, ui),
        Command::Runs(args) => runs::run(args, global, ui),
        Command::Top(args) => top::run(args, global, ui),
        Command::Cost(args) => cost::run(args, global, ui),
        Command::Clean(args) => clean::run(args, global, ui),
        Command::Completions(args) => completions::run(args, ui),
        Command::Kernel(args) => kernel::run(args, ui),
    }
}
