use std::path::PathBuf;

use super::groups::{Collected, Embeddings, RunOptions, positive};
use super::task::Asked;
use crate::error::Result;
use crate::method::Task;
use crate::plan::Role;

/// Probe the geometry of embeddings against the counts they were made from
///
/// Each embedding is probed in a task of its own; then the rows are joined in one table. Cells are paired by name, and all
/// embeddings of a data set use the same cells. Neighbours are exact up to 200,000 cells.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry geometry --embedding results/embeddings/pca/colon.h5ad --data colon.h5ad
  scfoundry geometry --embedding results/embeddings/*/colon.h5ad --data colon.h5ad --batch-key donor --max-cells 50000

Metrics; NA is an empty cell, and the notes say why:
  pr, npr         participation ratio: directions in use, and their share of all
  aniso_spec      share of the leading direction; aniso_cos: mean cosine of pairs of cells, within and between cell types
  rnx_k15 … k50   neighbours kept of those in the counts (Pearson residuals), per batch of 101 cells or more: 0 chance, 1 all
  id_twonn        intrinsic dimension from two neighbours, raw and standardised
  partial_eta2    variance explained by cell types and by batches beside each other

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
