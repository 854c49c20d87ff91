//! `--batch-size auto`: how many cells are taken at a time, where nobody has typed a number.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Plan, Work};

/// The word for a batch size that is to fill the card.
pub(super) const AUTOMATIC: &str = "auto";

/// The parameter of `params.json` with what was decided in place of what was typed.
pub const DECIDED: &str = "decided";

/// Where an automatic batch size is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BatchSource {
    /// Runs like it, on a card with as much memory.
    History,
    /// The run that this one goes on from: with another size its tasks would not be the same.
    Resumed,
    /// No card is used, so there is none to fill.
    Usual,
    /// The task tries on its first cells.
    Trial,
}

/// An automatic batch size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Batch {
    /// The parameter that was typed as `auto`.
    pub parameter: String,
    /// Cells at a time; absent where the task finds it.
    pub size: Option<u64>,
    pub source: BatchSource,
    /// Runs that it is from.
    pub runs: usize,
    /// Above it memory ran out in one of them.
    pub halved: bool,
}

impl Batch {
    /// What holds before anything is known of the card.
    fn open(parameter: &str, source: BatchSource) -> Batch {
        Batch { parameter: parameter.to_owned(), size: None, source, runs: 0, halved: false }
    }
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(size) = self.size {
            write!(f, "{size}, ")?;
        }
        match self.source {
            BatchSource::History => {
                let runs = if self.runs == 1 { "run" } else { "runs" };
                let halved = if self.halved { ", in which larger ones ran out of memory" } else { "" };
                write!(f, "from {} {runs} like it{halved}", self.runs)
            }
            BatchSource::Resumed => f.write_str("that of the run it goes on from"),
            BatchSource::Usual => f.write_str("the method's usual one, since no GPU is used"),
            BatchSource::Trial => f.write_str("found by trial on the first cells"),
        }
    }
}

impl Plan {
    /// The batch size of the plan where it is automatic, before the card and the history were asked.
    pub(super) fn open_batch(&self) -> Option<Batch> {
        let by_model = self.stages.iter().any(|stage| matches!(stage.work, Work::Runner(_)));
        let names = ["batch_size", "integration_batch_size"].into_iter();
        let is_automatic = |name: &&str| self.parameters.get(*name) == Some(&json!(AUTOMATIC));
        let name = names.into_iter().find(is_automatic).filter(|_| by_model)?;
        let without_card =
            self.executor == "local" && (self.gpus.is_empty() || !self.stages.iter().any(|stage| stage.gpu));
        if !without_card {
            return Some(Batch::open(name, BatchSource::Trial));
        }
        let size = self.parameters.get("default_batch_size").and_then(Value::as_u64);
        Some(Batch { size, ..Batch::open(name, BatchSource::Usual) })
    }

    /// The same run with this batch size: the tasks read it in place of `auto`.
    pub fn with_batch(&self, batch: Batch) -> Plan {
        let mut plan = self.clone();
        let decided = batch.size.filter(|_| batch.source != BatchSource::Usual);
        if let Some(size) = decided {
            plan.parameters.insert(DECIDED.to_owned(), json!({ batch.parameter.as_str(): size }));
        }
        plan.batch = Some(batch);
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_where_it_is_from() {
        let batch =
            |size, source, runs, halved| Batch { size, runs, halved, ..Batch::open("batch_size", source) };
        let shown = [
            batch(Some(57), BatchSource::History, 5, false),
            batch(Some(32), BatchSource::History, 1, true),
            batch(None, BatchSource::Trial, 0, false),
            batch(Some(64), BatchSource::Usual, 0, false),
        ];
        assert_eq!(
            shown.map(|batch| batch.to_string()),
            [
                "57, from 5 runs like it",
                "32, from 1 run like it, in which larger ones ran out of memory",
                "found by trial on the first cells",
                "64, the method's usual one, since no GPU is used",
            ]
        );
    }
}
