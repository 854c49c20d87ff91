//! Model runners through real Nextflow, on the CPU, with the real classes of their packages and tiny random weights.
//!
//! `tests/models/environment.sh DIRECTORY` makes the environment that `$SCFOUNDRY_TEST_MODELS` names; then
//! `cargo test --test models -- --ignored models_`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../gpu/cards.rs"]
mod cards;
mod embed;
mod finetune;
mod groups;
mod integration;
mod memory;
#[expect(dead_code, reason = "shared with the tests of the pipeline, which use all of it")]
#[path = "../pipeline/place.rs"]
mod place;
mod refusals;
mod seurat;
mod spatial;
mod world;
