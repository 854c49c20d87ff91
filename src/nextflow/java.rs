//! Finding a Java that Nextflow accepts.

use std::path::PathBuf;

use serde::Serialize;

/// A Java run-time and the version it says it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Java {
    /// The `java` program.
    pub path: PathBuf,
    /// As the run-time writes it, such as `17.0.15`.
    pub version: String,
    pub major: u32,
}
