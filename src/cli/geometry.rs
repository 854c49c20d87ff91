use std::path::PathBuf;

use super::groups::{Collected, Embeddings, RunOptions, positive};
use super::task::Asked;
use crate::error::Result;
use crate::method::Task;
use crate::plan::Role;

/// Probe the geometry of embeddings against the counts they were made from
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry geometry --embedding results/embeddings/pca/colon.h5ad --data colon.h5ad --dry-run

See also: `scfoundry benchmark`, `scfoundry embed`")]
pub struct Args {
    #[command(flatten)]
    pub embeddings: Embeddings,

    /// Data sets with raw counts, paired with the embeddings by file name
    #[arg(short, long, value_name = "PATH", num_args = 1.., required = true)]
    pub data: Vec<PathBuf>,

    /// obs column with the labels [default: cell_type]
    #[arg(long, value_name = "COLUMN")]
    pub label_key: Option<String>,

    /// obs column with the batches [default: batch_id]
    #[arg(long, value_name = "COLUMN")]
    pub batch_key: Option<String>,

    /// Cells to use, drawn at random [default: 20000]
    #[arg(long, value_name = "N", value_parser = positive, allow_hyphen_values = true)]
    pub max_cells: Option<u32>,

    /// Seed of the draw [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u32>,

    #[command(flatten)]
    pub run: RunOptions,
}

pub fn run(args: Args, task: impl FnOnce(Asked, RunOptions) -> Result<()>) -> Result<()> {
    let asked = Asked {
        task: Task::Geometry,
        method: args.embeddings.method.clone(),
        inputs: args
            .embeddings
            .inputs()
            .chain(args.data.into_iter().map(|path| (Role::Data, path)))
            .collect(),
        given: Collected::default()
            .add("label_key", args.label_key)
            .add("batch_key", args.batch_key)
            .add("max_cells", args.max_cells)
            .add("seed", args.seed),
    };
    task(asked, args.run)
}
