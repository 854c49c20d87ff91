//! What the user asked for, in one value: the plan's only view of the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::again::Typed;
use crate::method::Task;

/// The part an input plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Data,
    Reference,
    Query,
    Embedding,
    /// A model fitted by an earlier run.
    Fitted,
}

impl Role {
    /// Whether it is a file of cells.
    pub fn is_data(self) -> bool {
        self != Role::Fitted
    }

    /// The option that names it.
    pub fn flag(self) -> &'static str {
        match self {
            Role::Data => "--data",
            Role::Reference => "--reference",
            Role::Query => "--query",
            Role::Embedding => "--embedding",
            Role::Fitted => "--fitted",
        }
    }
}

/// How a parameter was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// By an option of the command (`--batch-size 8`).
    Option,
    /// By an option that the command does not have (`--max_len 2000`).
    Passed,
}

/// A pipeline parameter that the user gave a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// The pipeline's name for it, with underscores.
    pub name: String,
    pub value: serde_json::Value,
    pub source: Source,
}

impl Given {
    /// The option as typed.
    pub fn flag(&self) -> String {
        match self.source {
            Source::Option => format!("--{}", self.name.replace('_', "-")),
            Source::Passed => format!("--{}", self.name),
        }
    }
}

/// Which run to go on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// The newest with the same task, method and inputs.
    Latest,
    /// A run directory, by name or path.
    Named(String),
}

/// A task to plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub task: Task,
    pub method: Option<String>,
    /// Paths, directories or patterns, in the order typed.
    pub inputs: Vec<(Role, PathBuf)>,
    pub given: Vec<Given>,
    /// Turn warnings about unused options into errors.
    pub strict: bool,
    pub run_name: Option<String>,
    pub resume: Option<Resume>,
    /// Further configuration files for Nextflow (`--config`).
    pub configs: Vec<PathBuf>,
    pub profile: Option<String>,
    /// All after `--`, for `nextflow run`, untouched.
    pub nextflow_args: Vec<OsString>,
    /// The whole command line, for the one that goes on from its run.
    pub typed: Typed,
}
