use super::groups::{Collected, Pair, RunOptions, positive};
use super::task::Asked;
use crate::error::Result;
use crate::method::Task;

/// Train a method's model on labelled cells, and label others with it
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry finetune --method scgpt --reference atlas.h5ad --query colon.h5ad --epochs 5 --dry-run
  scfoundry finetune --method scgpt --fitted results/finetune/finetuned_models/scgpt/atlas --query colon.h5ad --dry-run

See also: `scfoundry transfer`, `scfoundry list methods --task finetune`")]
pub struct Args {
    /// Method to train
    #[arg(short, long, value_name = "NAME")]
    pub method: String,

    #[command(flatten)]
    pub pair: Pair,

    /// obs column with the labels [default: cell_type]
    #[arg(long, value_name = "COLUMN")]
    pub label_key: Option<String>,

    /// Passes over the reference [default: the profile's]
    #[arg(long, value_name = "N", value_parser = positive, allow_hyphen_values = true)]
    pub epochs: Option<u32>,

    /// Cells at a time in training; less takes less GPU memory [default: the profile's]
    #[arg(long, value_name = "N", value_parser = positive, allow_hyphen_values = true)]
    pub batch_size: Option<u32>,

    /// Variant of the method's model [default: the profile's first]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    #[command(flatten)]
    pub run: RunOptions,
}

pub fn run(args: Args, task: impl FnOnce(Asked, RunOptions) -> Result<()>) -> Result<()> {
    let asked = Asked {
        task: Task::Finetune,
        method: Some(args.method),
        inputs: args.pair.inputs(),
        given: Collected::default()
            .add("label_key", args.label_key)
            .add("epochs", args.epochs)
            .add("batch_size", args.batch_size)
            .add("model", args.model),
    };
    task(asked, args.run)
}
