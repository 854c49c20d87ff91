//! The workspace: a directory with the marker `.scfoundry.json` that holds settings, weights, results and runs.

mod cluster;
mod config;

use std::path::{Path, PathBuf};

use serde_json::json;

pub use cluster::{Cluster, Limits, Partition};
pub use config::Config;

use crate::atomic;
use crate::error::{Error, Result};

const MARKER: &str = ".scfoundry.json";

/// A workspace that exists, or (from [`Workspace::at`]) one that could be made there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    root: PathBuf,
}

/// How a workspace was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is there.
    Existing(Workspace),
    /// There is none; one can be made at this place (the current directory).
    Absent(Workspace),
}

impl Workspace {
    /// Looks for the workspace: `chosen` (from `--workspace` or `$SCFOUNDRY_WORKSPACE`), else the nearest parent of
    /// `start` with the marker.
    pub fn find(chosen: Option<&Path>, start: &Path) -> Result<Found> {
        if let Some(chosen) = chosen {
            let workspace = Workspace::at(chosen)?;
            return match workspace.exists() {
                true => Ok(Found::Existing(workspace)),
                false => Err(Error::input(format_args!("{} is not a workspace", chosen.display()))
                    .cause(format_args!("it has no {MARKER}"))
                    .hint(format_args!("make it one with `scfoundry init {}`", chosen.display()))),
            };
        }
        let start = Workspace::at(start)?;
        let found = start.root.ancestors().find(|folder| folder.join(MARKER).is_file());
        Ok(match found {
            Some(root) => Found::Existing(Workspace { root: root.to_owned() }),
            None => Found::Absent(start),
        })
    }

    /// The workspace that is or would be at `root`.
    pub fn at(root: &Path) -> Result<Workspace> {
        let root = std::path::absolute(root).map_err(Error::io("resolve", root))?;
        Ok(Workspace { root })
    }

    pub fn exists(&self) -> bool {
        self.root.join(MARKER).is_file()
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The user's Nextflow settings for all runs.
    pub fn nextflow_config(&self) -> PathBuf {
        self.root.join("nextflow.config")
    }

    /// The user's scfoundry settings.
    pub fn settings_file(&self) -> PathBuf {
        self.root.join("scfoundry.toml")
    }

    /// The user's own method profiles.
    pub fn methods(&self) -> PathBuf {
        self.root.join("methods")
    }

    pub fn weights(&self) -> PathBuf {
        self.root.join("data").join("model_weights")
    }

    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    pub fn results(&self) -> PathBuf {
        self.root.join("results")
    }

    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Makes the directories and the marker; files that exist stay, but for `nextflow.config` with `force`.
    ///
    /// The marker comes last, so that an interrupted `init` leaves no workspace that only looks whole.
    pub fn create(&self, nextflow_config: &str, settings: &str, force: bool) -> Result<()> {
        let folders =
            [self.weights(), self.cache().join(".shared"), self.results(), self.runs(), self.methods()];
        for folder in folders {
            std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        }
        if force || !self.nextflow_config().exists() {
            atomic::write(&self.nextflow_config(), nextflow_config.as_bytes())?;
        }
        if !self.settings_file().exists() {
            atomic::write(&self.settings_file(), settings.as_bytes())?;
        }
        if !self.exists() {
            let marker =
                json!({ "scfoundry": env!("CARGO_PKG_VERSION"), "created": jiff::Zoned::now().timestamp() });
            atomic::write(&self.root.join(MARKER), format!("{marker:#}\n").as_bytes())?;
        }
        Ok(())
    }
}
