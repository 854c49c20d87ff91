//! The program from outside: what it prints, refuses, renders, starts and leaves behind.
//!
//! Each test runs the built binary in a directory of its own, with an environment of its own. Where an engine has to be
//! started, a shell script that writes down its arguments stands in for Nextflow.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batch_size;
mod batch_size_auto;
#[path = "../gpu/cards.rs"]
mod cards;
mod clean;
mod cleanup;
mod containers;
mod cost;
mod doctor;
mod engines;
mod estimate;
mod finetune;
mod gpus;
mod help;
mod history;
mod json;
mod methods;
mod output;
mod parameters;
mod passthrough;
mod refusals;
mod resume;
mod runs;
mod settings;
mod signals;
mod slurm;
mod transfer;
mod works;
mod workspaces;
mod world;
