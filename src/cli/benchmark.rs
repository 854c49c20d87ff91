use clap::ValueEnum;

use super::groups::{Collected, Embeddings, RunOptions};
use super::task::Asked;
use crate::error::Result;
use crate::method::Task;

/// Score embeddings against labels and batches
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry benchmark --embedding results/embeddings/pca/colon.h5ad --label-key cell_type --dry-run
  scfoundry benchmark --embedding results/embeddings/pca --batch-key donor --metrics all --dry-run

See also: `scfoundry geometry`, `scfoundry embed`")]
pub struct Args {
    #[command(flatten)]
    pub embeddings: Embeddings,

    /// obs column with the labels [default: cell_type]
    #[arg(long, value_name = "COLUMN")]
    pub label_key: Option<String>,

    /// obs column with the batches; turns the batch metrics on
    #[arg(long, value_name = "COLUMN")]
    pub batch_key: Option<String>,

    /// Metrics to compute [default: all with a batch key, else bio]
    #[arg(long, value_name = "GROUP")]
    pub metrics: Option<Metrics>,

    /// Clustering that is compared with the labels [default: leiden]
    #[arg(long, value_name = "NAME")]
    pub clustering: Option<Clustering>,

    /// Cells for the batch metrics, drawn by batch and label; 0 takes all [default: 0]
    #[arg(long, value_name = "N")]
    pub batch_max_cells: Option<u32>,

    /// Draw the score table as a picture (SVG)
    #[arg(long)]
    pub plot: bool,

    #[command(flatten)]
    pub run: RunOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Metrics {
    Bio,
    Batch,
    All,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Clustering {
    Leiden,
    Kmeans,
}

pub fn run(args: Args, task: impl FnOnce(Asked, RunOptions) -> Result<()>) -> Result<()> {
    let metrics = args.metrics.map(|metrics| match metrics {
        Metrics::Bio => "bio",
        Metrics::Batch => "batch",
        Metrics::All => "all",
    });
    let clustering = args.clustering.map(|clustering| match clustering {
        Clustering::Leiden => "leiden",
        Clustering::Kmeans => "kmeans",
    });
    let asked = Asked {
        task: Task::Benchmark,
        method: args.embeddings.method.clone(),
        inputs: args.embeddings.inputs().collect(),
        given: Collected::default()
            .add("label_key", args.label_key)
            .add("batch_key", args.batch_key)
            .add("metrics", metrics)
            .add("clustering", clustering)
            .add("batch_max_cells", args.batch_max_cells)
            .add("plot", args.plot.then_some(true)),
    };
    task(asked, args.run)
}
