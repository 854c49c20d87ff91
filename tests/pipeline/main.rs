//! The whole program with the real engine: what a user types, what the engine reads, what comes out.
//!
//! All of it needs the managed Nextflow: `cargo test --test pipeline -- --ignored engine_`, or `judge_` for the comparison
//! with scanpy.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod benchmark;
#[path = "../gpu/cards.rs"]
mod cards;
mod chaos;
mod containers;
mod driver;
mod failures;
mod geometry;
mod gpus;
mod history;
mod judge;
mod lint;
mod main_job;
#[path = "../backend/methods.rs"]
mod methods;
mod place;
mod probe;
#[path = "../judge/python.rs"]
mod python;
mod rendering;
mod sampling;
mod signals;
mod sites;
mod sweeps;
mod transfer;
