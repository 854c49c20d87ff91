use clap::CommandFactory;
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
    clap_complete::generate(args.shell, &mut Cli::command(), "scfoundry", &mut script);
    ui.line(String::from_utf8_lossy(&script).trim_end())
}
