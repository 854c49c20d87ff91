use serde::Deserialize;

use super::groups::{Collected, Pair, RunOptions, positive};
use super::task::Asked;
use crate::error::Result;
use crate::kernel::tasks::ReportDocument;
use crate::launch::Finished;
use crate::method::Task;
use crate::ui::Ui;

/// Train a method's model on labelled cells, and label others with it
///
/// The published model gets a head for the classes of the reference and is trained by the method's recipe. Of each class
/// a part is held out (--finetune_eval_size, 0.2); the epoch with the best macro F1 on these cells is kept. Cells without a
/// label, or without a gene that the model knows, are left out, and a line says how many.
///
/// The trained model is a directory that needs no other files: weights, genes, learning curve (CSV and SVG) and a report of the
/// cells held out. `--fitted` predicts with it and trains nothing; method, model and label column are then its own. Without
/// `--query` the model is trained and nothing else. Where the query has the label column itself, accuracy, macro F1 and a table
/// of the classes are shown and kept as JSON; labels that were not trained are named and not judged.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry finetune --method geneformer --reference atlas.h5ad --query colon.h5ad --epochs 5
  scfoundry finetune --method geneformer --reference atlas.h5ad --learning-rate 1e-4 --finetune_eval_size 0.1
  scfoundry finetune --fitted results/finetune/finetuned_models/geneformer/atlas --query lung.h5ad

See also: `scfoundry transfer`, `scfoundry list methods --task finetune`")]
pub struct Args {
    /// Method to train; a trained model knows its own
    #[arg(short, long, value_name = "NAME", required_unless_present = "fitted")]
    pub method: Option<String>,

    #[command(flatten)]
    pub pair: Pair,

    /// obs column with the labels [default: cell_type]
    #[arg(long, value_name = "COLUMN")]
    pub label_key: Option<String>,

    /// Passes over the reference [default: the profile's]
    #[arg(long, value_name = "N", value_parser = positive, allow_hyphen_values = true)]
    pub epochs: Option<u32>,

    /// Cells of a step of training [default: the profile's]
    ///
    /// Where GPU memory runs out, a step is done by halves that add up to the same step. Prediction takes as many cells at a time
    /// as `--predict_batch_size` says.
    #[arg(long, value_name = "N", value_parser = positive, allow_hyphen_values = true)]
    pub batch_size: Option<u32>,

    /// Learning rate, at its highest [default: that of the method's recipe]
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    pub learning_rate: Option<f64>,

    /// Seed of the cells held out, of their order and of the first weights: the same gives the same model
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub seed: Option<u32>,

    /// Variant of the method's model [default: the profile's first]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    #[command(flatten)]
    pub run: RunOptions,
}

pub fn run(args: Args, task: impl FnOnce(Asked, RunOptions) -> Result<()>) -> Result<()> {
    let asked = Asked {
        task: Task::Finetune,
        method: args.method,
        inputs: args.pair.inputs(),
        given: Collected::default()
            .add("label_key", args.label_key)
            .add("epochs", args.epochs)
            .add("batch_size", args.batch_size)
            .add("learning_rate", args.learning_rate)
            .add("seed", args.seed)
            .add("model", args.model),
    };
    task(asked, args.run)
}

/// A positive number, for clap.
fn rate(text: &str) -> std::result::Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "not a positive number, such as 1e-4".to_owned())
}

/// The report on the cells that were held out of training.
#[derive(Deserialize)]
struct Validation {
    epoch: u32,
    #[serde(flatten)]
    document: ReportDocument,
}

/// Says how well the model that was kept labels the cells held out; nothing where nothing was trained.
pub fn print_validation(finished: &Finished, ui: &Ui) -> Result<()> {
    let Some(Validation { epoch, document }) =
        super::report::within::<Validation>(finished, "validation_report.json")?
    else {
        return Ok(());
    };
    let scores = &document.scores;
    if let (Some(accuracy), Some(macro_f1)) = (scores.accuracy.value, scores.macro_f1.value) {
        ui.note(format_args!(
            "kept epoch {epoch}: {} cells held out, accuracy {accuracy:.3}, macro F1 {macro_f1:.3}",
            scores.judged
        ));
    }
    Ok(())
}
