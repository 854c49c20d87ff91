//! The engine as a child, and the managed engine.
//!
//! `stand_in` uses shell scripts in place of Nextflow and needs nothing; `managed` brings and runs the real one, and is
//! run by `cargo test --test engine -- --ignored engine`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod driver;
mod managed;
mod stand_in;
mod start;
