use std::path::{Path, PathBuf};

use crate::atomic;
use crate::error::{Error, Result};
use crate::kernel;
use crate::rundir::Record;
use crate::ui::Ui;

/// Do the work of one task: what the pipeline calls
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the kernel, or `publish`
    pub name: String,

    /// File with the task's specification
    #[arg(long, value_name = "FILE")]
    pub spec: PathBuf,
}

pub fn run(args: Args, ui: &Ui) -> Result<()> {
    let text = std::fs::read_to_string(&args.spec).map_err(Error::io("read", &args.spec))?;
    let damaged = |error| Error::input(format_args!("{} is not valid", args.spec.display())).cause(error);
    match args.name.as_str() {
        "publish" => publish(&args.spec, &serde_json::from_str(&text).map_err(damaged)?),
        "pca" => kernel::tasks::pca(&serde_json::from_str(&text).map_err(damaged)?, ui),
        "pca-project" => kernel::tasks::project(&serde_json::from_str(&text).map_err(damaged)?, ui),
        "harmony" => kernel::tasks::harmony(&serde_json::from_str(&text).map_err(damaged)?, ui),
        "genept" => kernel::tasks::genept(&serde_json::from_str(&text).map_err(damaged)?, ui),
        "classify" => kernel::tasks::classify(&serde_json::from_str(&text).map_err(damaged)?, ui),
        "check" => kernel::tasks::check(&serde_json::from_str(&text).map_err(damaged)?),
        "geometry" => kernel::tasks::geometry(&serde_json::from_str(&text).map_err(damaged)?, ui),
        "tabulate" => kernel::tasks::tabulate(&serde_json::from_str(&text).map_err(damaged)?),
        "benchmark" => kernel::tasks::benchmark(&serde_json::from_str(&text).map_err(damaged)?, ui),
        "rank" => kernel::tasks::rank(&serde_json::from_str(&text).map_err(damaged)?),
        other => Err(Error::usage(format_args!("there is no kernel {other:?}"))
            .hint(format_args!("kernels: {}", kernel::NAMES.join(", ")))),
    }
}

/// Puts the outputs of a run that was started by hand in place.
fn publish(spec: &Path, record: &Record) -> Result<()> {
    let staging = spec.parent().unwrap_or(Path::new("")).join("outputs");
    for output in &record.outputs {
        let staged = staging.join(&output.staged);
        if staged.exists() {
            atomic::publish(&staged, &output.path)?;
        }
    }
    Ok(())
}
