//! How well labels were predicted, where the query has some.

use serde::{Deserialize, Serialize};

use crate::kernel::points::Classes;
use crate::kernel::score::Score;

/// Predicted against true labels of the cells that can be judged: those with a label that the reference knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Cells of the query.
    pub cells: usize,
    /// Cells that the scores are of.
    pub judged: usize,
    /// Cells without a label.
    pub unlabelled: usize,
    /// Labels that the reference lacks, with their cells: no classifier could predict them.
    pub unknown: Vec<Count>,
    /// Share of judged cells whose label was predicted: 0 to 1, higher is better. scikit-learn 1.9.1 `accuracy_score`.
    /// NA without a judged cell.
    pub accuracy: Score,
    /// Mean F1 over the classes that are true or predicted of a judged cell: 0 to 1, higher is better.
    /// scikit-learn 1.9.1 `f1_score(average="macro")`. NA without a judged cell.
    pub macro_f1: Score,
    /// The classes that are true or predicted of a judged cell, sorted.
    pub classes: Vec<Class>,
    /// Judged cells by true class (row) and predicted class (column), in the order of `classes`. scikit-learn 1.9.1
    /// `confusion_matrix`.
    pub confusion: Vec<Vec<usize>>,
}

/// A label and its cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    pub label: String,
    pub cells: usize,
}

/// How well one class was predicted; all from 0 to 1, higher is better.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Class {
    pub label: String,
    /// Judged cells of the class.
    pub cells: usize,
    /// Judged cells that it was predicted of.
    pub predicted: usize,
    /// Right share of the cells that it was predicted of; null if of none.
    pub precision: Option<f64>,
    /// Right share of its cells; null if it has none.
    pub recall: Option<f64>,
    /// Harmonic mean of the two: `2 right / (cells + predicted)`.
    pub f1: f64,
}

/// Compares predicted labels with the query's own, of which some may be missing. `known` are the reference's classes.
pub fn report(truth: &[Option<&str>], predicted: &[&str], known: &[String]) -> Report {
    let is_known = |label: &str| known.binary_search_by(|name| name.as_str().cmp(label)).is_ok();
    let pairs: Vec<(&str, &str)> = truth
        .iter()
        .zip(predicted)
        .filter_map(|(truth, &predicted)| {
            truth.filter(|label| is_known(label)).map(|truth| (truth, predicted))
        })
        .collect();
    let unknown: Vec<&str> = truth.iter().flatten().copied().filter(|label| !is_known(label)).collect();
    let both: Vec<&str> = pairs.iter().flat_map(|&(truth, predicted)| [truth, predicted]).collect();
    let seen = Classes::of(&both);
    let mut confusion = vec![vec![0; seen.len()]; seen.len()];
    for codes in seen.codes.chunks_exact(2) {
        confusion[codes[0] as usize][codes[1] as usize] += 1;
    }
    let classes: Vec<Class> =
        seen.names.iter().enumerate().map(|(class, label)| Class::of(label, class, &confusion)).collect();
    let right: usize = (0..seen.len()).map(|class| confusion[class][class]).sum();
    let unlabelled = truth.iter().filter(|label| label.is_none()).count();
    let score = |value: f64| match pairs.is_empty() {
        false => Score::number(value),
        true if truth.len() == unlabelled => Score::missing("no cell of the query has a label"),
        true => Score::missing("no cell of the query has a label that the reference knows"),
    };
    let unknown = Classes::of(&unknown);
    let sizes = unknown.sizes();
    Report {
        cells: truth.len(),
        judged: pairs.len(),
        unlabelled,
        unknown: unknown.names.into_iter().zip(sizes).map(|(label, cells)| Count { label, cells }).collect(),
        accuracy: score(right as f64 / pairs.len() as f64),
        macro_f1: score(classes.iter().map(|class| class.f1).sum::<f64>() / classes.len() as f64),
        classes,
        confusion,
    }
}

/// The report of a query that has no labels at all.
pub fn without_labels(cells: usize, reason: &str) -> Report {
    Report {
        cells,
        judged: 0,
        unlabelled: cells,
        unknown: Vec::new(),
        accuracy: Score::missing(reason),
        macro_f1: Score::missing(reason),
        classes: Vec::new(),
        confusion: Vec::new(),
    }
}

impl Class {
    fn of(label: &str, class: usize, confusion: &[Vec<usize>]) -> Class {
        let cells: usize = confusion[class].iter().sum();
        let predicted: usize = confusion.iter().map(|row| row[class]).sum();
        let right = confusion[class][class] as f64;
        let share = |of: usize| (of > 0).then(|| right / of as f64);
        Class {
            label: label.to_owned(),
            cells,
            predicted,
            precision: share(predicted),
            recall: share(cells),
            f1: 2.0 * right / (cells + predicted) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn values_are_those_of_scikit_learn() {
        // accuracy_score, f1_score(average="macro"), confusion_matrix of the six pairs that can be judged.
        let truth = [Some("a"), Some("a"), Some("b"), Some("b"), Some("b"), Some("c"), None, Some("z")];
        let predicted = ["a", "b", "b", "b", "d", "a", "a", "a"];
        let report = report(&truth, &predicted, &names(&["a", "b", "c", "d", "e"]));
        assert_eq!((report.cells, report.judged, report.unlabelled), (8, 6, 1));
        assert_eq!(report.unknown, [Count { label: "z".into(), cells: 1 }]);
        assert_eq!(report.accuracy.value, Some(0.5));
        assert!((report.macro_f1.value.unwrap() - 0.291_666_666_666_666_7).abs() < 1e-15);
        assert_eq!(
            report.confusion,
            [vec![1, 1, 0, 0], vec![0, 2, 0, 1], vec![1, 0, 0, 0], vec![0, 0, 0, 0]]
        );
        assert_eq!((report.classes[2].precision, report.classes[2].recall), (None, Some(0.0)));
        assert_eq!((report.classes[3].precision, report.classes[3].recall), (Some(0.0), None));
    }

    #[test]
    fn nothing_to_judge_is_not_zero() {
        let known = names(&["a"]);
        let strangers = report(&[Some("x"), Some("y"), Some("x"), None], &["a"; 4], &known);
        assert_eq!(strangers.accuracy.value, None);
        assert_eq!(strangers.accuracy.notes, ["no cell of the query has a label that the reference knows"]);
        assert_eq!(strangers.unknown[0], Count { label: "x".into(), cells: 2 });
        assert_eq!(report(&[None], &["a"], &known).macro_f1.notes, ["no cell of the query has a label"]);
        assert_eq!(report(&[], &[], &known).accuracy.value, None);
        assert_eq!(without_labels(3, "no column").accuracy.notes, ["no column"]);
    }
}
