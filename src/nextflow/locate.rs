//! Which Nextflow and which Java a run will use.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Serialize;

use super::{Java, Request};
use crate::error::{Error, Result};
use crate::ui::Ui;

/// Where the engine was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// `--nextflow`.
    Option,
    /// `$SCFOUNDRY_NEXTFLOW`.
    Environment,
    /// `nextflow` on PATH.
    Path,
    /// The engine that scfoundry keeps in its cache.
    Managed,
}

/// An engine that can be started: `program prefix… run …` with `env` added to the environment.
#[derive(Debug, Clone)]
pub struct Engine {
    pub program: OsString,
    /// Everything that comes before the arguments of Nextflow itself.
    pub prefix: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub origin: Origin,
    /// Known without starting it for the managed engine and for the official launcher only.
    pub version: Option<String>,
    pub java: Option<Java>,
}

/// What [`locate`] would use, or why it would fail, found without changing anything.
#[derive(Debug, Clone)]
pub struct Inspection {
    pub origin: Origin,
    /// The `nextflow` program of the user, or the directory of the managed engine.
    pub path: Option<PathBuf>,
    pub version: Option<String>,
    pub java: Option<Java>,
    /// What the first run would bring, in words for the user; empty when everything is there.
    pub missing: Vec<String>,
    /// The error that `locate` would end with, as far as it can be told beforehand.
    pub problem: Option<Error>,
}

/// Finds the engine to use: `--nextflow`, `$SCFOUNDRY_NEXTFLOW`, `nextflow` on PATH, else the managed one, which is
/// brought first if it is not there yet.
///
/// # Errors
/// Of kind `Environment` when there is no engine and none can be brought, the engine is too old, or no Java suits it.
pub fn locate(request: &Request, ui: &Ui) -> Result<Engine> {
    let _ = (request, ui);
    todo!()
}

/// Says what [`locate`] would use. Never provisions, never fails.
pub fn inspect(request: &Request) -> Inspection {
    let _ = request;
    todo!()
}
