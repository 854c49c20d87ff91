//! Which part a task is at, on stderr.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::ui::Ui;

/// The least time between two lines on the progress of one part.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tells which part of the work on one embedding is done, and of a long one how far it is.
pub struct Progress<'a> {
    ui: &'a Ui,
    what: String,
    last: Mutex<(String, Instant)>,
}

impl<'a> Progress<'a> {
    pub fn new(ui: &'a Ui, method: &str, sample: &str) -> Self {
        Progress {
            ui,
            what: format!("{method}, {sample}"),
            last: Mutex::new((String::new(), Instant::now())),
        }
    }

    /// `done` of `part`, from 0 to 1. May be called as often as liked, from any thread.
    pub fn say(&self, part: &str, done: f64) {
        // A thread that panicked while it held the lock has not said its line: nothing is broken by that.
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let same = last.0 == part;
        if same && last.1.elapsed() < PATIENCE {
            return;
        }
        match same {
            true => self.ui.note(format_args!("{}: {part}, {:.0} %", self.what, 100.0 * done)),
            false => self.ui.note(format_args!("{}: {part}", self.what)),
        }
        *last = (part.to_owned(), Instant::now());
    }
}
