use clap::ValueEnum;
use serde_json::Value;

use super::groups::{Collected, Pair, RunOptions, batch_size, positive};
use super::task::Asked;
use crate::error::Result;
use crate::kernel::classify::report::{Class, Report};
use crate::kernel::tasks::ReportDocument;
use crate::launch::Finished;
use crate::method::Task;
use crate::table::{Column, Table, terminal_width};
use crate::ui::Ui;

/// Label a query with a classifier fitted on a reference's embedding
///
/// Embeds reference and query, fits a classifier on the frozen embedding of the reference, labels the query and keeps the
/// fitted model, which `--fitted` uses again: method, classifier and label column are then the model's.
///
/// With `--method pca` the query is projected onto the genes, scaling and components of the reference. Where the query has
/// the label column itself, accuracy, macro F1 and a table of the classes are shown and kept as JSON.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry transfer --method pca --reference atlas.h5ad --query colon.h5ad
  scfoundry transfer --method pca --reference atlas.h5ad --query colon.h5ad --classifier knn --knn-k 30
  scfoundry transfer --fitted results/transfer/models/pca/logreg/atlas --query lung.h5ad

See also: `scfoundry finetune`, `scfoundry list methods --task transfer`")]
pub struct Args {
    /// Method to embed with; a fitted model knows its own
    #[arg(short, long, value_name = "NAME", required_unless_present = "fitted")]
    pub method: Option<String>,

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

    /// Cells at a time, halved where GPU memory runs out; `auto`: as many as fit the card [default: the profile's]
    ///
    /// `auto` takes the largest batch that earlier runs of the same method, model and options say will fit into nine tenths of
    /// what is free on the card, if they ran on a card with as much memory, and never more than one to which a batch was halved
    /// there. Without such runs, and on a cluster, the task finds it by trial on its first cells. `--dry-run` says which.
    #[arg(long, value_name = "N|auto", value_parser = batch_size, allow_hyphen_values = true)]
    pub batch_size: Option<Value>,

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
        method: args.method,
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

/// Classes that are named where a class was mostly taken for others.
const CONFUSED: usize = 3;

/// The report of a finished transfer or finetune; none if the run made none.
pub fn document(finished: &Finished) -> Result<Option<ReportDocument>> {
    super::report::published(finished, "_report.json")
}

/// Shows how well the query's labels were met.
pub fn print_report(finished: &Finished, ui: &Ui) -> Result<()> {
    let Some(document) = document(finished)? else { return Ok(()) };
    let scores = &document.scores;
    for line in sentences(&document) {
        ui.note(line);
    }
    if !scores.classes.is_empty() {
        ui.note(classes(scores).render(terminal_width()));
    }
    Ok(())
}

fn sentences(document: &ReportDocument) -> Vec<String> {
    let Report { cells, judged, accuracy, macro_f1, unknown, .. } = &document.scores;
    let mut lines = match (accuracy.value, macro_f1.value) {
        (Some(accuracy), Some(macro_f1)) => vec![format!(
            "{judged} of {cells} cells judged by {}: accuracy {accuracy:.3}, macro F1 {macro_f1:.3}",
            document.label_key
        )],
        _ => {
            vec![format!("accuracy NA: {}", accuracy.notes.first().map_or("no reason given", String::as_str))]
        }
    };
    if !unknown.is_empty() {
        let named: Vec<String> =
            unknown.iter().map(|count| format!("{} ({})", count.label, count.cells)).collect();
        lines.push(format!("labels that the reference lacks, not judged: {}", named.join(", ")));
    }
    lines
}

/// One row a class.
fn classes(report: &Report) -> Table {
    let share = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    let mut table = Table::new([
        Column::text("class").trimmed(),
        Column::number("cells"),
        Column::number("predicted"),
        Column::number("precision"),
        Column::number("recall"),
        Column::number("F1"),
        Column::text("taken for").trimmed(),
    ]);
    for (class, row) in report.classes.iter().zip(&report.confusion) {
        table.row([
            class.label.clone(),
            class.cells.to_string(),
            class.predicted.to_string(),
            share(class.precision),
            share(class.recall),
            share(Some(class.f1)),
            taken_for(class, row, &report.classes),
        ]);
    }
    table
}

/// The other classes that most cells of a class were taken for.
fn taken_for(class: &Class, row: &[usize], classes: &[Class]) -> String {
    let mut others: Vec<(usize, &str)> = row
        .iter()
        .zip(classes)
        .filter(|(cells, other)| **cells > 0 && other.label != class.label)
        .map(|(cells, other)| (*cells, other.label.as_str()))
        .collect();
    others.sort_by_key(|(cells, _)| std::cmp::Reverse(*cells));
    let named: Vec<String> =
        others.iter().take(CONFUSED).map(|(cells, label)| format!("{label} {cells}")).collect();
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::classify::Kind;
    use crate::kernel::classify::report::{report, without_labels};

    fn document(scores: Report) -> ReportDocument {
        ReportDocument {
            schema: 1,
            method: "pca".to_owned(),
            classifier: Some(Kind::Knn),
            label_key: "cell_type".to_owned(),
            classes: Vec::new(),
            notes: Vec::new(),
            scores,
        }
    }

    #[test]
    fn a_report_is_read_at_a_glance() {
        let truth = [Some("B"), Some("B"), Some("B"), Some("T"), Some("?"), None];
        let known = ["B", "NK", "T"].map(str::to_owned);
        let scores = report(&truth, &["B", "T", "NK", "T", "T", "B"], &known);
        let document = document(scores);
        assert_eq!(
            sentences(&document),
            [
                "4 of 6 cells judged by cell_type: accuracy 0.500, macro F1 0.389",
                "labels that the reference lacks, not judged: ? (1)"
            ]
        );
        let expected = "\
class  cells  predicted  precision  recall     F1  taken for
B          3          1      1.000   0.333  0.500  NK 1, T 1
NK         0          1      0.000       -  0.000  -
T          1          2      0.500   1.000  0.667  -";
        assert_eq!(classes(&document.scores).to_string(), expected);
    }

    #[test]
    fn no_labels_are_no_zero() {
        let document = document(without_labels(7, "the query has no obs column \"x\""));
        assert_eq!(sentences(&document), ["accuracy NA: the query has no obs column \"x\""]);
    }
}
