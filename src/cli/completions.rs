use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use crate::error::Result;
use crate::ui::Ui;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry completions bash > ~/.local/share/bash-completion/completions/scfoundry
  scfoundry completions zsh > ~/.zfunc/_scfoundry")]
pub struct Args {
    /// Shell to complete in
    pub shell: Shell,
}

pub fn run(args: Args, ui: &Ui) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(&Cli::command()), "scfoundry", &mut script);
    ui.line(String::from_utf8_lossy(&script).trim_end())
}

/// The program without the commands that help leaves out; the scripts would offer them.
fn shown(program: &Command) -> Command {
    Command::new("scfoundry")
        .version(env!("CARGO_PKG_VERSION"))
        .args(program.get_arguments())
        .subcommands(program.get_subcommands().filter(|command| !command.is_hide_set()))
}
