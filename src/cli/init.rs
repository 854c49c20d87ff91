use std::path::PathBuf;

use serde_json::json;

use super::groups::positive;
use crate::error::{Error, Result};
use crate::gpu::{self, Choice};
use crate::plan::Runtime;
use crate::render;
use crate::settings;
use crate::ui::Ui;
use crate::workspace::{Cluster, Limits, Partition, Workspace};

/// Make a workspace
///
/// A workspace holds settings (nextflow.config, scfoundry.toml), weights, results and runs. Files that exist are kept;
/// `--force` writes nextflow.config anew.
///
/// With `--profile slurm` all runs of the workspace go to the cluster, unless they name another profile. The limits of the
/// queue are taken from `sinfo`, where it answers; what methods ask for is cut to them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry init
  scfoundry init /data/project --runtime apptainer --gpu-id 1
  scfoundry init --profile slurm --queue gpu --account lab --gres gpu:a100:1
  scfoundry embed --method pca --data colon.h5ad --profile local    # on this machine all the same")]
pub struct Args {
    /// Directory of the workspace
    #[arg(value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,

    /// What runs the containers [default: what works here]
    #[arg(long, value_name = "ENGINE")]
    pub runtime: Option<Runtime>,

    /// GPU for inference, as --gpu takes it [default: auto where there are several, else 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub gpu_id: Option<String>,

    /// Write nextflow.config anew, even if it exists
    #[arg(long)]
    pub force: bool,

    /// Nextflow for this workspace, written into scfoundry.toml
    #[arg(long, value_name = "PATH")]
    pub nextflow: Option<PathBuf>,

    /// Where runs go that name no profile
    #[arg(long, value_name = "NAME")]
    pub profile: Option<Place>,

    #[command(flatten)]
    pub slurm: Slurm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Place {
    /// Jobs of a SLURM cluster
    Slurm,
    /// This machine
    Local,
}

/// What the `slurm` profile of the new nextflow.config says.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "SLURM options")]
pub struct Slurm {
    /// Partition of the jobs [default: the cluster's own]
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,

    /// Account that the jobs are booked on
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,

    /// Longest time the queue takes, such as `8h` or `2d` [default: as sinfo says]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub time: Option<String>,

    /// Most memory of one machine, such as `256GB` [default: as sinfo says]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<String>,

    /// What a task that needs a GPU asks for [default: gpu:1]
    #[arg(long, value_name = "GRES")]
    pub gres: Option<String>,

    /// Submit the tasks of a step as job arrays of this size
    #[arg(long, value_name = "N", value_parser = positive)]
    pub array_size: Option<u32>,

    /// How often to ask the cluster for news, such as `30s` [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub poll_interval: Option<String>,
}

impl Slurm {
    fn is_empty(&self) -> bool {
        let Slurm { queue, account, time, memory, gres, array_size, poll_interval } = self;
        let texts = [queue, account, time, memory, gres, poll_interval];
        texts.into_iter().all(Option::is_none) && array_size.is_none()
    }

    /// What was typed, on top of what the cluster says of the queue.
    fn cluster(self, partitions: &[Partition]) -> Result<Cluster> {
        let chosen = Partition::choose(partitions, self.queue.as_deref());
        if let (Some(queue), None, false) = (&self.queue, chosen, partitions.is_empty()) {
            let names: Vec<&str> = partitions.iter().map(|partition| partition.name.as_str()).collect();
            return Err(Error::input(format_args!("the cluster has no partition {queue:?}"))
                .hint(format_args!("`sinfo` shows: {}", names.join(", "))));
        }
        let limits = chosen.map(Partition::limits).unwrap_or_default();
        Ok(Cluster {
            queue: self.queue,
            account: self.account,
            limits: Limits {
                time: self.time.or(limits.time),
                memory: self.memory.or(limits.memory),
                cpus: limits.cpus,
            },
            gres: self.gres,
            array_size: self.array_size,
            poll_interval: self.poll_interval,
        })
    }
}

pub fn run(args: Args, ui: &Ui) -> Result<()> {
    let gpus = match &args.gpu_id {
        Some(text) => Choice::parse(text, "--gpu-id")?,
        None => gpu::usual_choice(),
    };
    let workspace = Workspace::at(&args.directory)?;
    let existed = workspace.exists();
    let written = args.force || !workspace.nextflow_config().exists();
    if !args.slurm.is_empty() && !written {
        return Err(Error::usage("options for SLURM go into nextflow.config, which is there already").hint(
            format_args!("edit {}, or write it anew with `--force`", workspace.nextflow_config().display()),
        ));
    }
    let runtime = args.runtime.unwrap_or_else(Runtime::detect);
    let cluster = args.slurm.cluster(&Partition::all())?;
    let config = render::workspace_config(runtime, &gpus, &cluster);
    let kept = workspace.settings_file().exists();
    workspace.create(&config, &settings_text(args.nextflow, args.profile)?, args.force)?;
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
    if let (Some(place), true) = (args.profile, kept) {
        ui.note(format_args!(
            "scfoundry.toml was kept: for runs that name no profile write `profile = \"{}\"` into it",
            place.name()
        ));
    }
    Ok(())
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Slurm => "slurm",
            Place::Local => "local",
        }
    }
}

/// The starting `scfoundry.toml`, with the Nextflow and the profile to use if they were named.
fn settings_text(nextflow: Option<PathBuf>, profile: Option<Place>) -> Result<String> {
    let mut lines = Vec::new();
    if let Some(nextflow) = nextflow {
        let absolute = std::path::absolute(&nextflow).map_err(Error::io("resolve", &nextflow))?;
        lines.push(format!("nextflow = {}\n", toml::Value::String(absolute.to_string_lossy().into_owned())));
    }
    lines.extend(profile.map(|place| format!("profile = \"{}\"\n", place.name())));
    let gap = if lines.is_empty() { "" } else { "\n" };
    Ok(format!("{}{gap}{}", lines.concat(), settings::TEMPLATE))
}

/// An amount of time as Nextflow reads it.
fn time(text: &str) -> std::result::Result<String, String> {
    amount(text, &["s", "m", "h", "d"]).ok_or_else(|| "not a time such as 90m, 8h or 2d".to_owned())
}

/// An amount of memory as Nextflow reads it.
fn memory(text: &str) -> std::result::Result<String, String> {
    amount(text, &["MB", "GB", "TB"]).ok_or_else(|| "not a size such as 64GB".to_owned())
}

/// A number of at least 1 and one of the units.
fn amount(text: &str, units: &[&str]) -> Option<String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let number = number.parse::<u32>().ok().filter(|number| *number > 0)?;
    let unit = units.iter().find(|known| known.eq_ignore_ascii_case(unit.trim()))?;
    Some(format!("{number} {unit}"))
}
