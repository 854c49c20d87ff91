//! What is shown while the engine runs: a moving line on a terminal, a line an event elsewhere.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::error::Error;
use crate::trace::{Follower, Status};
use crate::ui::Ui;

/// Follows one run.
pub struct Progress<'a> {
    ui: &'a Ui,
    follower: Follower,
    bar: Option<ProgressBar>,
    total: usize,
    done: usize,
    running: Vec<String>,
}

impl<'a> Progress<'a> {
    /// `total` is how many tasks the plan expects.
    pub fn new(ui: &'a Ui, trace: &Path, total: usize) -> Progress<'a> {
        let bar = ui.interactive().then(|| {
            let bar = ProgressBar::new_spinner();
            let style = ProgressStyle::with_template("{spinner} {elapsed:>4} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.set_message("starting Nextflow");
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Progress { ui, follower: Follower::new(trace), bar, total, done: 0, running: Vec::new() }
    }

    /// A line that the engine printed.
    pub fn line(&mut self, line: &str) {
        if let Some((what, name)) = submitted(line) {
            if what == "Submitted" {
                self.running.push(name.to_owned());
                self.say(&format!("{name} started"));
            }
            self.show();
        } else if self.ui.verbose {
            self.print(|ui| ui.detail(line));
        }
    }

    /// Reads what the trace has new.
    pub fn tick(&mut self) {
        for task in self.follower.poll() {
            if task.status.is_unfinished() {
                continue;
            }
            self.running.retain(|name| *name != task.name);
            self.done += usize::from(matches!(task.status, Status::Completed | Status::Cached));
            self.say(&task.told_end());
            self.show();
        }
    }

    /// The user asked to stop.
    pub fn signal(&mut self, count: u32) {
        match count {
            1 => self.say("stopping: waiting for Nextflow to end its tasks; once more to kill them"),
            _ => self.say("killing all tasks"),
        }
    }

    /// Something that the run goes on in spite of.
    pub fn warn(&self, error: &Error) {
        self.print(|ui| ui.warn(error));
    }

    /// The engine has ended: the last rows of the trace, then quiet.
    pub fn finish(&mut self) {
        self.tick();
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn say(&self, text: &str) {
        self.print(|ui| ui.note(text));
    }

    fn print(&self, write: impl FnOnce(&Ui)) {
        match &self.bar {
            Some(bar) => bar.suspend(|| write(self.ui)),
            None => write(self.ui),
        }
    }

    fn show(&self) {
        let Some(bar) = &self.bar else { return };
        let running = match self.running.as_slice() {
            [] => String::new(),
            [one] => format!(", running {one}"),
            [first, rest @ ..] => format!(", running {first} and {} more", rest.len()),
        };
        bar.set_message(format!("{} of {} tasks done{running}", self.done, self.total.max(self.done)));
    }
}

/// The task of a line such as `[3f/a1b2c3] Submitted process > EMBED (pbmc)`.
fn submitted(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix('[')?.split_once("] ")?.1;
    let (what, name) = rest.split_once(" process > ")?;
    Some((what, name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_engines_lines() {
        let line = "[3f/a1b2c3] Submitted process > EMBED (pbmc_700)";
        assert_eq!(submitted(line), Some(("Submitted", "EMBED (pbmc_700)")));
        assert_eq!(submitted("Launching `main.nf` [sad_hopper] DSL2"), None);
    }
}
