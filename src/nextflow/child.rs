//! Nextflow as a child: started, listened to, signalled, waited for.

use std::ffi::OsString;
use std::path::Path;

use super::Engine;
use crate::error::Result;

/// How to start the engine.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    pub engine: &'a Engine,
    /// The arguments of Nextflow itself, from `run` on.
    pub args: &'a [OsString],
    /// The directory it runs in.
    pub cwd: &'a Path,
    /// Added to the environment, after those of the engine.
    pub env: &'a [(OsString, OsString)],
    /// A file that everything the engine prints is appended to.
    pub output: Option<&'a Path>,
    /// The engine prints straight to our stdout and stderr: there are no `Line` events and nothing goes to `output`.
    pub raw: bool,
}

/// What happens while the engine runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A line from the engine's stdout or stderr, without its line end; bytes that are not UTF-8 are replaced.
    Line(String),
    /// Time has passed; about five a second.
    Tick,
    /// The user asked us to stop: `number` is the signal we got. With the first request the engine is asked to
    /// stop, with the second (`count` 2) it and its tasks are killed.
    Signal { number: i32, count: u32 },
}

/// How the engine ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The first signal that asked us to stop while it ran.
    pub interrupted: Option<i32>,
    /// It was killed with all its tasks, after a second request.
    pub killed: bool,
}

impl Outcome {
    /// It ended by itself, with code 0.
    pub fn success(&self) -> bool {
        self.code == Some(0) && self.interrupted.is_none()
    }
}

/// Starts the engine and waits for its end, telling `observer` what happens meanwhile.
///
/// # Errors
/// Of kind `Environment` when it cannot be started; its own failure is an [`Outcome`], not an error.
pub fn run(launch: Launch<'_>, observer: &mut dyn FnMut(Event)) -> Result<Outcome> {
    let _ = (launch, observer);
    todo!()
}
