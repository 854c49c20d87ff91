//! What every command finds around it: the workspace and the settings in force.

use std::path::Path;

use super::Global;
use crate::error::{Error, Result};
use crate::method::Catalogue;
use crate::plan::Context;
use crate::settings::{self, Flags, Settings};
use crate::workspace::{Found, Workspace};

/// The workspace, which may not exist yet, and its settings.
pub struct Surroundings {
    pub workspace: Workspace,
    pub settings: Settings,
}

impl Surroundings {
    /// The workspace named or around the current directory; else the one that could be made here.
    pub fn find(global: &Global, flags: &Flags) -> Result<Surroundings> {
        let workspace = match find(global)? {
            Found::Existing(workspace) | Found::Absent(workspace) => workspace,
        };
        let settings = Settings::gather(flags, &workspace)?;
        Ok(Surroundings { workspace, settings })
    }

    /// As [`Surroundings::find`], but there must be a workspace.
    pub fn existing(global: &Global) -> Result<Surroundings> {
        Surroundings::existing_with(global, &Flags::default())
    }

    /// As [`Surroundings::existing`], with what was given on the command line.
    pub fn existing_with(global: &Global, flags: &Flags) -> Result<Surroundings> {
        match find(global)? {
            Found::Existing(workspace) => {
                let settings = Settings::gather(flags, &workspace)?;
                Ok(Surroundings { workspace, settings })
            }
            Found::Absent(place) => Err(Error::input(format_args!(
                "there is no workspace in {} or above",
                place.root().display()
            ))
            .hint("name one with `--workspace DIR`, or make one with `scfoundry init`")),
        }
    }

    /// What plans are made from here; `stamp` is the local time that names a run.
    pub fn context<'a>(&'a self, catalogue: &'a Catalogue, stamp: &'a str) -> Context<'a> {
        Context {
            workspace: &self.workspace,
            settings: &self.settings,
            catalogue,
            stamp,
            variable: &variable,
        }
    }

    /// The built-in methods and those of the workspace.
    pub fn catalogue(&self) -> Result<Catalogue> {
        let methods = self.workspace.methods();
        Catalogue::load(Some(&methods).filter(|methods| methods.is_dir()).map(|path| path.as_path()))
    }
}

/// A variable of the environment that is set and not empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn find(global: &Global) -> Result<Found> {
    let current = std::env::current_dir().map_err(Error::io("read", Path::new(".")))?;
    let chosen = global.workspace.clone().or_else(settings::workspace_from_environment);
    Workspace::find(chosen.as_deref(), &current)
}
