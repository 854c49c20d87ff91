//! Progress of a task, on stderr.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::ui::Ui;

/// The least time between two lines on the progress of one part.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tells which part is worked on, and of a long one how far it is.
pub struct Progress<'a> {
    ui: &'a Ui,
    what: String,
    last: Mutex<(String, Instant)>,
}

impl<'a> Progress<'a> {
    pub fn new(ui: &'a Ui, what: String) -> Self {
        Progress { ui, what, last: Mutex::new((String::new(), Instant::now())) }
    }

    /// `done` is from 0 to 1.
    pub fn say(&self, part: &str, done: f64) {
        // A thread that panicked while it held the lock has not said its line: nothing is broken by that.
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.0 == part && last.1.elapsed() < PATIENCE {
            return;
        }
        match last.0 == part {
            true => self.ui.note(format_args!("{}: {part}, {:.0} %", self.what, 100.0 * done)),
            false => self.ui.note(format_args!("{}: {part}", self.what)),
        }
        *last = (part.to_owned(), Instant::now());
    }
}
