//! The only writer: data to stdout, everything else to stderr.
//!
//! Colour is decided by `anstream` (`NO_COLOR`, `CLICOLOR_FORCE`, not a terminal); text is the same without it.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

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
        !self.quiet && can_move(&io::stderr())
    }

    /// A place on stdout for what is drawn again and again; `None` where stdout is no terminal that can do that, or where
    /// data are printed.
    pub fn live(&self) -> Option<Live> {
        (!self.json && can_move(&io::stdout())).then_some(Live { lines: 0 })
    }

    /// One line of data on stdout. A closed pipe ends the program quietly.
    pub fn line(&self, text: impl Display) -> Result<()> {
        write_stdout(format_args!("{text}\n"))
    }

    /// One JSON document on stdout.
    pub fn document<T: Serialize>(&self, value: &T) -> Result<()> {
        // JSON holds no escape sequences, so nothing has to look for them.
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let written = serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from);
        told(written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()))
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

/// Whether what was drawn there can be drawn over, and may be.
fn can_move(stream: &impl IsTerminal) -> bool {
    stream.is_terminal()
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        && std::env::var_os("SCFOUNDRY_NO_PROGRESS").is_none()
}

/// The last lines on the terminal, which the next drawing replaces.
#[derive(Debug)]
pub struct Live {
    /// How many lines the last drawing took.
    lines: usize,
}

impl Live {
    /// Draws text in place of what was drawn last. What the terminal is too small for is left out.
    pub fn draw(&mut self, text: &str) -> Result<()> {
        let (columns, rows) = match rustix::termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => (80, 24),
        };
        let all: Vec<&str> = text.lines().collect();
        let mut shown: Vec<String> = all.iter().map(|line| line.chars().take(columns).collect()).collect();
        // The cursor stands on a line of its own below.
        if all.len() >= rows {
            shown.truncate(rows.saturating_sub(2));
            shown.push(format!("… {} more lines", all.len() - shown.len()));
        }
        self.clear()?;
        self.lines = shown.len();
        write_stdout(format_args!("{}\n", shown.join("\n")))
    }

    /// Removes what was drawn last.
    pub fn clear(&mut self) -> Result<()> {
        match std::mem::take(&mut self.lines) {
            0 => Ok(()),
            lines => write_stdout(format_args!("\r\u{1b}[{lines}A\u{1b}[J")),
        }
    }
}

fn write_stdout(text: std::fmt::Arguments<'_>) -> Result<()> {
    told(anstream::stdout().lock().write_fmt(text))
}

/// What became of writing to stdout.
fn told(written: io::Result<()>) -> Result<()> {
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Error::new(Kind::BrokenPipe, "")),
        Err(error) => Err(Error::failed("cannot write to stdout").cause(error)),
    }
}

fn write_stderr(text: std::fmt::Arguments<'_>) {
    // A closed stderr leaves nowhere to report to.
    let _ = anstream::stderr().lock().write_fmt(text);
}
