//! The only writer: data to stdout, everything else to stderr.
//!
//! Colour is decided by `anstream` (`NO_COLOR`, `CLICOLOR_FORCE`, not a terminal); text is the same without it.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::error::{Error, Kind, Result};

/// How much the program says, and in what form.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ui {
    pub quiet: bool,
    pub verbose: bool,
    /// Data are printed as one JSON document.
    pub json: bool,
}

const fn bold(color: AnsiColor) -> Style {
    Style::new().bold().fg_color(Some(anstyle::Color::Ansi(color)))
}

const ERROR: Style = bold(AnsiColor::Red);
const WARNING: Style = bold(AnsiColor::Yellow);
const HINT: Style = bold(AnsiColor::Cyan);
const DIM: Style = Style::new().dimmed();

impl Ui {
    /// Whether moving progress may be drawn on stderr.
    pub fn interactive(&self) -> bool {
        !self.quiet
            && io::stderr().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
            && std::env::var_os("SCFOUNDRY_NO_PROGRESS").is_none()
    }

    /// One line of data on stdout. A closed pipe ends the program quietly.
    pub fn line(&self, text: impl Display) -> Result<()> {
        write_stdout(format_args!("{text}\n"))
    }

    /// One JSON document on stdout.
    pub fn document<T: Serialize>(&self, value: &T) -> Result<()> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Error::failed("cannot write the result as JSON").cause(error))?;
        self.line(text)
    }

    /// What is happening, for a person.
    pub fn note(&self, text: impl Display) {
        if !self.quiet {
            write_stderr(format_args!("{text}\n"));
        }
    }

    /// What only `--verbose` wants to know.
    pub fn detail(&self, text: impl Display) {
        if self.verbose {
            write_stderr(format_args!("{DIM}{text}{DIM:#}\n"));
        }
    }

    /// Something that works, but perhaps not as meant. Shown with `--quiet` too.
    pub fn warn(&self, text: impl Display) {
        write_stderr(format_args!("{WARNING}warning:{WARNING:#} {text}\n"));
    }

    /// The last words of a failed command.
    pub fn error(&self, error: &Error) {
        let mut text = format!("{ERROR}error:{ERROR:#} {}\n", error.message);
        for cause in &error.causes {
            let indented = cause.trim_end().replace('\n', "\n    ");
            text.push_str(&format!("  Caused by: {indented}\n"));
        }
        if !error.hints.is_empty() {
            text.push('\n');
        }
        for hint in &error.hints {
            text.push_str(&format!("{HINT}hint:{HINT:#} {hint}\n"));
        }
        write_stderr(format_args!("{text}"));
    }
}

fn write_stdout(text: std::fmt::Arguments<'_>) -> Result<()> {
    match anstream::stdout().lock().write_fmt(text) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Error::new(Kind::BrokenPipe, "")),
        Err(error) => Err(Error::failed("cannot write to stdout").cause(error)),
    }
}

fn write_stderr(text: std::fmt::Arguments<'_>) {
    // A closed stderr leaves nowhere to report to.
    let _ = anstream::stderr().lock().write_fmt(text);
}
