//! The main job with what it meets at work: a real SLURM, a real Docker engine.
//!
//! `tests/backends/slurm.sh up` and `tests/backends/docker.sh up` start them and print what to export; then
//! `cargo test --test backend -- --ignored backend_`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod docker;
mod doctor;
mod leftovers;
#[expect(dead_code, reason = "shared with the tests of the pipeline, which use all of it")]
#[path = "../pipeline/place.rs"]
mod place;
mod slurm;
