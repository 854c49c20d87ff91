//! The runners that the binary carries: Python or R that does a method's work, and what all of them share.

use super::Task;

/// The script of a built-in method.
pub struct BuiltIn {
    /// File name, as `runner.entry` of the profile has it.
    pub entry: &'static str,
    pub script: &'static str,
    /// What it can do so far.
    pub tasks: &'static [Task],
}

macro_rules! runner {
    ($entry:literal, $tasks:expr) => {
        BuiltIn {
            entry: $entry,
            script: include_str!(concat!("../../templates/runners/", $entry)),
            tasks: $tasks,
        }
    };
}

const BUILT_IN: &[BuiltIn] = &[
    runner!("c2s.py", &[Task::Embed, Task::Transfer]),
    runner!("cellama.py", &[Task::Embed, Task::Transfer]),
    runner!("cellfm.py", &[Task::Embed, Task::Transfer]),
    runner!("cellplm.py", &[Task::Embed, Task::Transfer]),
    runner!("geneformer.py", &[Task::Embed, Task::Transfer, Task::Finetune]),
    runner!("langcell.py", &[Task::Embed, Task::Transfer]),
    runner!("novae_zero_shot.py", &[Task::Embed, Task::Transfer]),
    runner!("scbert.py", &[Task::Embed, Task::Transfer]),
    runner!("sccello.py", &[Task::Embed, Task::Transfer]),
    runner!("scfoundation.py", &[Task::Embed, Task::Transfer]),
    runner!("scgpt.py", &[Task::Embed, Task::Transfer]),
    runner!("scimilarity.py", &[Task::Embed, Task::Transfer]),
    runner!("scvi_denovo.py", &[Task::Embed, Task::Transfer]),
    runner!("scvi_reference.py", &[Task::Embed, Task::Transfer]),
    runner!("seurat_cca.R", &[Task::Embed]),
    runner!("seurat_rpca.R", &[Task::Embed]),
];

macro_rules! shared {
    ($($name:literal),* $(,)?) => {
        &[$((
            concat!("foundry/", $name),
            include_str!(concat!("../../templates/runners/foundry/", $name)),
        )),*]
    };
}

/// Path and text of each file that lies beside every script.
pub const SHARED: &[(&str, &str)] = shared![
    "__init__.py",
    "aligned.py",
    "batches.py",
    "cells.R",
    "cells.py",
    "checkpoints.py",
    "curves.py",
    "devices.py",
    "encoders.py",
    "files.py",
    "finetuning.py",
    "groups.py",
    "labels.py",
    "layers.py",
    "learners.py",
    "mindspore.py",
    "pickles.py",
    "predictions.py",
    "rank_learners.py",
    "ranks.py",
    "scores.py",
    "sequences.py",
    "seurat.R",
    "symbols.py",
    "task.R",
    "task.py",
    "trained.py",
    "training.py",
    "variable.py",
    "variational.py",
];

/// The built-in runner of this entry.
pub fn built_in(entry: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|runner| runner.entry == entry)
}
