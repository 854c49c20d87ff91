//! Runs with what they meet at work: a real SLURM, a real Docker engine, a real Podman.
//!
//! `tests/backends/{slurm,docker,podman}.sh up` start them and print what to export; then
//! `cargo test --test backend -- --ignored backend_`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod docker;
mod doctor;
mod leftovers;
mod methods;
#[expect(dead_code, reason = "shared with the tests of the pipeline, which use all of it")]
#[path = "../pipeline/place.rs"]
mod place;
mod podman;
mod slurm;
