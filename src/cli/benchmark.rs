use clap::ValueEnum;

use super::groups::{Collected, Embeddings, RunOptions};
use super::task::Asked;
use crate::error::Result;
use crate::method::Task;

/// Score embeddings against labels and batches
///
/// Each embedding is scored in a task of its own; then tables, totals and a ranking are made of all. Neighbours are exact up
/// to 200,000 cells; above, their recall is measured and stands in the notes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry benchmark --embedding results/embeddings/pca/colon.h5ad
  scfoundry benchmark --embedding results/embeddings/* --batch-key donor --plot

Several methods are ranked together: a directory of embeddings names its method.

Metrics, all from 0 to 1 (ASW from -1) and better when higher; NA is an empty cell, and its note says why:
  bio     NMI HOM COM FMI ARI (clusters against labels), ASW (silhouette), cLISI, Acc@kNN (5-fold), GC (graph connectivity)
  batch   kBET, BRAS (silhouette of batches), iLISI, CiLISI (within labels)
  totals  bio: mean of NMI, ARI, (ASW + 1) / 2, cLISI, Acc@kNN, GC; batch: mean of its four; overall: 0.6 bio + 0.4 batch

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
