mod container;
mod machine;

use serde::Serialize;

use super::Global;
use super::surroundings::Surroundings;
use crate::error::{Error, Result};
use crate::settings::Flags;
use crate::ui::Ui;
use crate::workspace::Config;

/// Check that this machine can run what the workspace asks for
///
/// Each line is a check, with the mend where it failed. Nothing is installed or changed. Exit code 4 if something that
/// every run needs is missing.
///
/// With --container, a real task is run through Nextflow in the workspace's container engine, with the flags that a model's
/// task gets, and tells what it finds: its user, whether it can write, shared memory, ps, Python, GPU. No image is pulled.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry doctor
  scfoundry doctor --container
  scfoundry doctor --container --method scgpt --gpu 0
  scfoundry doctor --container --image registry/own:1 --profile slurm
  scfoundry doctor --json | jq '.checks[] | select(.level == \"fail\")'

Without --image and --method, --container tests the first image of a method that is here.")]
pub struct Args {
    /// Prove the container engine with a real task
    #[arg(long)]
    pub container: bool,

    /// Image to test
    #[arg(long, value_name = "IMAGE", requires = "container")]
    pub image: Option<String>,

    /// Test the image of this method
    #[arg(short, long, value_name = "NAME", requires = "container", conflicts_with = "image")]
    pub method: Option<String>,

    /// GPUs that the task must see: `auto`, `0`, `0,1` or a UUID; none is reserved [env: SCFOUNDRY_GPU]
    #[arg(long, value_name = "CARDS", requires = "container", allow_hyphen_values = true)]
    pub gpu: Option<String>,

    /// Configuration profile of nextflow.config, such as `slurm`
    #[arg(long, value_name = "NAME", requires = "container")]
    pub profile: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    /// Missing, but brought by the first run or needed by some methods only.
    Note,
    Fail,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    level: Level,
    found: String,
    mend: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, level: Level::Ok, found: found.into(), mend: None }
    }

    fn note(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, level: Level::Note, found: found.into(), mend: None }
    }

    fn fail(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, level: Level::Fail, found: found.into(), mend: None }
    }

    fn mend(mut self, mend: impl Into<String>) -> Check {
        self.mend = Some(mend.into());
        self
    }
}

pub fn run(args: Args, global: &Global, ui: &Ui) -> Result<()> {
    let flags = Flags { gpu: args.gpu.clone(), ..Flags::default() };
    let around = match args.container {
        true => Surroundings::existing_with(global, &flags)?,
        false => Surroundings::find(global, &flags)?,
    };
    let config = Config::read(&around.workspace.nextflow_config(), args.profile.as_deref())?;
    let mut checks = machine::checks(&around, &config);
    if args.container {
        checks.extend(container::checks(&args, &around, &config, ui)?);
    }
    let failed: Vec<&str> =
        checks.iter().filter(|check| check.level == Level::Fail).map(|check| check.name).collect();
    if ui.json {
        ui.document(&serde_json::json!({ "schema": 1, "ok": failed.is_empty(), "checks": checks }))?;
    } else {
        for check in &checks {
            print(check, ui)?;
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        names => Err(Error::environment(format_args!("not ready: {}", names.join(", ")))),
    }
}

fn print(check: &Check, ui: &Ui) -> Result<()> {
    let level = match check.level {
        Level::Ok => "ok",
        Level::Note => "note",
        Level::Fail => "FAIL",
    };
    let indented = |text: &str| text.trim_end().replace('\n', &format!("\n{:18}", ""));
    ui.line(format_args!("{level:<5} {:<11} {}", check.name, indented(&check.found)))?;
    match &check.mend {
        Some(mend) => ui.line(format_args!("{:17} -> {mend}", "")),
        None => Ok(()),
    }
}
