use std::path::PathBuf;

use serde_json::Value;

use super::groups::{Collected, RunOptions, batch_size};
use super::task::Asked;
use crate::error::Result;
use crate::method::Task;
use crate::plan::Role;

/// Embed cells with a method
///
/// Writes one embedding a file, <outdir>/embeddings/<method>/<input>.h5ad: X holds the embedding (cells x dimensions),
/// obs and obsm are those of the input. X of the input must hold raw counts.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry embed --method pca --data colon.h5ad
  scfoundry embed --method pca --data atlas/*.h5ad --pca_n_comps 30
  scfoundry embed --method harmony --data atlas.h5ad --batch-key donor
  scfoundry embed --method scgpt --data colon.h5ad --batch-size 32 --gpu 1 --dry-run
  scfoundry embed --method scgpt --data atlas/*.h5ad --batch-size auto
  scfoundry embed --method pca --data colon.h5ad --resume -- -with-report report.html

See also: `scfoundry list methods --task embed`, `scfoundry check`, `scfoundry cost`")]
pub struct Args {
    /// Method to embed with
    #[arg(short, long, value_name = "NAME")]
    pub method: String,

    /// Data sets (.h5ad with raw counts in X): files, a directory or a pattern
    #[arg(short, long, value_name = "FILE", num_args = 1.., required = true)]
    pub data: Vec<PathBuf>,

    /// Variant of the method's model [default: the profile's first]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    /// Cells at a time, halved where GPU memory runs out; `auto`: as many as fit the card [default: the profile's]
    ///
    /// `auto` takes the largest batch that earlier runs of the same method, model and options say will fit into nine tenths of
    /// what is free on the card, if they ran on a card with as much memory, and never more than one to which a batch was halved
    /// there. Without such runs, and on a cluster, the task finds it by trial on its first cells. `--dry-run` says which.
    #[arg(long, value_name = "N|auto", value_parser = batch_size, allow_hyphen_values = true)]
    pub batch_size: Option<Value>,

    /// obs column with the batches, for integration methods [default: batch_id]
    #[arg(long, value_name = "COLUMN")]
    pub batch_key: Option<String>,

    #[command(flatten)]
    pub run: RunOptions,
}

pub fn run(args: Args, task: impl FnOnce(Asked, RunOptions) -> Result<()>) -> Result<()> {
    let asked = Asked {
        task: Task::Embed,
        method: Some(args.method),
        inputs: args.data.into_iter().map(|path| (Role::Data, path)).collect(),
        given: Collected::default()
            .add("model", args.model)
            .add("batch_size", args.batch_size)
            .add("batch_key", args.batch_key),
    };
    task(asked, args.run)
}
