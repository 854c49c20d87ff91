//! The outcome of a metric: a number, or why there is none.

use serde::{Deserialize, Serialize};

/// A metric's value with what has to be said of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// `None` is NA, never zero: `notes` begins with the reason then.
    pub value: Option<f64>,
    /// What a reader has to know, in order: neighbours cut, cells left out, what was sampled.
    pub notes: Vec<String>,
}

impl Score {
    /// A value; one that is not finite is NA.
    pub fn number(value: f64) -> Score {
        match value.is_finite() {
            true => Score { value: Some(value), notes: Vec::new() },
            false => Score::missing(format!("the definition gives {value}")),
        }
    }

    /// NA, and why.
    pub fn missing(reason: impl Into<String>) -> Score {
        Score { value: None, notes: vec![reason.into()] }
    }

    /// Adds a note.
    pub fn note(mut self, note: impl Into<String>) -> Score {
        self.notes.push(note.into());
        self
    }
}
