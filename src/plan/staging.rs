//! What a container sees of the machine: what is staged or mounted into it, by paths that are read as they are meant.

use std::path::Path;

use super::Context;
use super::containers::{self, Mount, Place};
use super::inputs::{self, Input};
use super::stages::{Stage, Work};
use crate::error::{Error, Result};
use crate::settings::Settings;

/// # Errors
/// Input: a path that Nextflow's scripts or the engine's options would misread.
pub fn check(place: &Place<'_>, stages: &[Stage], inputs: &[Input], context: &Context<'_>) -> Result<()> {
    if !stages.iter().any(|stage| matches!(stage.work, Work::Runner(_))) {
        return Ok(());
    }
    let contained = stages.iter().any(|stage| stage.container.is_some());
    let refused = |path: &Path, why: &str| {
        Err(Error::input(format_args!("{} cannot be handed to a container", path.display()))
            .cause(why)
            .hint("rename it, or use another place"))
    };
    const EXPANDED: &str = "its path holds one of $ { } [ ] * ?, which Nextflow's task scripts would misread";
    if let Some(input) = inputs.iter().find(|input| contained && !input.staged) {
        return refused(&input.path, EXPANDED);
    }
    let root = context.workspace.root();
    if contained && root.to_string_lossy().contains(['"', '\\', '`']) {
        return refused(
            root,
            "Nextflow writes the path of a task's directory between double quotes for the shell in the container",
        );
    }
    let cache = &context.settings.cache_dir.value;
    if inputs::is_misread(cache) {
        return refused(cache, EXPANDED);
    }
    let mounted = place.mounts.iter().map(|mount| mount.path.as_path());
    let staged = inputs.iter().map(|input| input.path.as_path());
    let mut paths = mounted.chain(staged).chain([root]);
    match paths.find(|path| contained && containers::is_misread(place.runtime, path)) {
        Some(path) => refused(
            path,
            "its path holds a character by which the engine's options for mounts are taken apart",
        ),
        None => Ok(()),
    }
}

/// What a model needs beside its input: its weights, which no task changes, and a place for what its libraries keep.
pub fn mounts(context: &Context<'_>) -> Vec<Mount> {
    let Settings { weights_dir, cache_dir, .. } = context.settings;
    let weights = Mount { path: weights_dir.value.clone(), writable: false };
    let cache = Mount { path: cache_dir.value.clone(), writable: true };
    // The workspace's own are made with it.
    let there = |mount: &Mount| mount.path.is_dir() || mount.path.starts_with(context.workspace.root());
    [weights, cache].into_iter().filter(there).collect()
}
