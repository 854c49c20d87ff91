use std::path::PathBuf;

use serde_json::json;

use crate::error::Result;
use crate::plan::{Gpus, Runtime};
use crate::render;
use crate::settings;
use crate::ui::Ui;
use crate::workspace::Workspace;

/// Make a workspace
///
/// A workspace holds settings (nextflow.config, scfoundry.toml), weights, results and runs. Files that exist are kept;
/// `--force` writes nextflow.config anew.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry init
  scfoundry init /data/project --runtime apptainer --gpu-id 1")]
pub struct Args {
    /// Directory of the workspace
    #[arg(value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,

    /// What runs the containers [default: what works here]
    #[arg(long, value_name = "ENGINE")]
    pub runtime: Option<Runtime>,

    /// GPU for inference, as nvidia-smi numbers it: `0`, or `0,1`
    #[arg(long, value_name = "N", default_value = "0", allow_hyphen_values = true)]
    pub gpu_id: String,

    /// Write nextflow.config anew, even if it exists
    #[arg(long)]
    pub force: bool,

    /// Nextflow for this workspace, written into scfoundry.toml
    #[arg(long, value_name = "PATH")]
    pub nextflow: Option<PathBuf>,
}

pub fn run(args: Args, ui: &Ui) -> Result<()> {
    let gpus = Gpus::parse(&args.gpu_id, "--gpu-id")?;
    let workspace = Workspace::at(&args.directory)?;
    let existed = workspace.exists();
    let runtime = args.runtime.unwrap_or_else(Runtime::detect);
    let config = render::workspace_config(runtime, &gpus);
    workspace.create(&config, &settings_text(args.nextflow)?, args.force)?;
    if ui.json {
        return ui.document(&json!({
            "schema": 1,
            "workspace": workspace.root(),
            "created": !existed,
            "runtime": Runtime::of(&crate::workspace::Config::read(&workspace.nextflow_config(), None)?),
        }));
    }
    let what = match (existed, args.force) {
        (false, _) => "made workspace",
        (true, true) => "wrote nextflow.config anew in workspace",
        (true, false) => "kept all files of workspace",
    };
    ui.note(format_args!("{what} {}", workspace.root().display()));
    if !existed && runtime == Runtime::None {
        ui.note("no container engine was found: native methods run, models need one (see nextflow.config)");
    }
    Ok(())
}

/// The starting `scfoundry.toml`, with the Nextflow to use if one was named.
fn settings_text(nextflow: Option<PathBuf>) -> Result<String> {
    let Some(nextflow) = nextflow else { return Ok(settings::TEMPLATE.to_owned()) };
    let absolute = std::path::absolute(&nextflow).map_err(crate::error::Error::io("resolve", &nextflow))?;
    let value = toml::Value::String(absolute.to_string_lossy().into_owned());
    Ok(format!("nextflow = {value}\n\n{}", settings::TEMPLATE))
}
