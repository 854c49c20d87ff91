//! The one error type and the table of exit codes.
//!
//! An error says what is wrong with the name of the thing (`message`), why (`causes`, outermost first) and what to do
//! (`hints`). `ui` renders it; `main` turns its kind into the exit code. Nothing else in the program ends the process.

use std::fmt::{self, Display};
use std::path::Path;

/// What an error means to the caller of the program: each kind is one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The run ended, but a task or the engine failed (exit 1).
    Failed,
    /// The command line is wrong (exit 2).
    Usage,
    /// A file, a value or a workspace was rejected (exit 3).
    Input,
    /// Something outside is missing: Java, Nextflow, a container engine, a runner, a GPU (exit 4).
    Environment,
    /// Stopped by a signal (exit 128 + its number; Ctrl-C gives 130).
    Signal(u8),
    /// Nextflow ended with a code of its own other than 0 and 1 (passed through).
    Engine(u8),
    /// The reader of our stdout has gone: no failure, nothing to say (exit 0).
    BrokenPipe,
}

impl Kind {
    /// Of a signal by its number.
    pub fn of_signal(signal: i32) -> Kind {
        Kind::Signal(u8::try_from(signal).unwrap_or(2))
    }

    /// The process exit code of this kind.
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::Input => 3,
            Kind::Environment => 4,
            Kind::Signal(number) => 128 + number,
            Kind::Engine(code) => code,
            Kind::BrokenPipe => 0,
        }
    }
}

/// An error as the user sees it.
#[derive(Debug, Clone)]
pub struct Error {
    pub kind: Kind,
    pub message: String,
    pub causes: Vec<String>,
    pub hints: Vec<String>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(kind: Kind, message: impl Display) -> Self {
        Error { kind, message: message.to_string(), causes: Vec::new(), hints: Vec::new() }
    }

    pub fn failed(message: impl Display) -> Self {
        Self::new(Kind::Failed, message)
    }

    pub fn usage(message: impl Display) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub fn input(message: impl Display) -> Self {
        Self::new(Kind::Input, message)
    }

    pub fn environment(message: impl Display) -> Self {
        Self::new(Kind::Environment, message)
    }

    /// An IO error with the path it happened at: `io("read", path)` gives "cannot read PATH" with the cause.
    ///
    /// A full disk is the environment's fault, everything else the input's.
    pub fn io<'a>(verb: &'a str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Error + 'a {
        move |error| {
            let full =
                matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
            let kind = if full { Kind::Environment } else { Kind::Input };
            let mut result = Error::new(kind, format_args!("cannot {verb} {}", path.display())).cause(&error);
            if full {
                result = result.hint("free some space on that disk, or choose another place");
            }
            result
        }
    }

    /// Adds why this happened.
    pub fn cause(mut self, cause: impl Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    /// Adds what the user can do.
    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Puts a wider sentence in front: the present message becomes the first cause.
    pub fn within(mut self, message: impl Display) -> Self {
        let inner = std::mem::replace(&mut self.message, message.to_string());
        self.causes.insert(0, inner);
        self
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for cause in &self.causes {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
