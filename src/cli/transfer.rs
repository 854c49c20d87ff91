use clap::ValueEnum;

use super::groups::{Collected, Pair, RunOptions, positive};
use super::task::Asked;
use crate::error::Result;
use crate::method::Task;

/// Label a query with a classifier fitted on a reference's embedding
///
/// Embeds reference and query side by side, fits a classifier on the frozen embedding of the reference, labels the query
/// and keeps the fitted model, which `--fitted` uses again.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry transfer --method scgpt --reference atlas.h5ad --query colon.h5ad --dry-run
  scfoundry transfer --method pca --reference atlas.h5ad --query colon.h5ad --classifier knn --dry-run

See also: `scfoundry finetune`, `scfoundry list methods --task transfer`")]
pub struct Args {
    /// Method to embed with
    #[arg(short, long, value_name = "NAME")]
    pub method: String,

    #[command(flatten)]
    pub pair: Pair,

    /// Classifier on the embedding [default: logreg]
    #[arg(long, value_name = "NAME")]
    pub classifier: Option<Classifier>,

    /// obs column with the labels [default: cell_type]
    #[arg(long, value_name = "COLUMN")]
    pub label_key: Option<String>,

    /// Neighbours of the knn classifier [default: 15]
    #[arg(long, value_name = "K", value_parser = positive, allow_hyphen_values = true)]
    pub knn_k: Option<u32>,

    /// Variant of the method's model [default: the profile's first]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    /// Cells at a time; less takes less GPU memory [default: the profile's]
    #[arg(long, value_name = "N", value_parser = positive, allow_hyphen_values = true)]
    pub batch_size: Option<u32>,

    #[command(flatten)]
    pub run: RunOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Classifier {
    /// Nearest class mean by cosine
    Prototype,
    /// Nearest neighbours
    Knn,
    /// Logistic regression
    Logreg,
    /// One hidden layer
    Mlp,
}

impl Classifier {
    fn name(self) -> &'static str {
        match self {
            Classifier::Prototype => "prototype",
            Classifier::Knn => "knn",
            Classifier::Logreg => "logreg",
            Classifier::Mlp => "mlp",
        }
    }
}

pub fn run(args: Args, task: impl FnOnce(Asked, RunOptions) -> Result<()>) -> Result<()> {
    let asked = Asked {
        task: Task::Transfer,
        method: Some(args.method),
        inputs: args.pair.inputs(),
        given: Collected::default()
            .add("classifier", args.classifier.map(Classifier::name))
            .add("label_key", args.label_key)
            .add("knn_k", args.knn_k)
            .add("model", args.model)
            .add("batch_size", args.batch_size),
    };
    task(asked, args.run)
}
