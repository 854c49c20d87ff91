//! scfoundry: run, cost and compare single-cell foundation models.
//!
//! The program is two straight lines, and the modules below stand in their order:
//!
//! ```text
//! command line -> settings -> plan -> run directory -> Nextflow -> trace -> cost summary
//! .h5ad -> kernel -> .h5ad
//! ```

mod ask;
pub mod atomic;
pub mod error;
pub mod growing;
pub mod shell;
pub mod table;
pub mod ui;

pub mod cli;
pub mod method;
pub mod settings;
pub mod workspace;

pub mod gpu;
pub mod plan;
pub mod render;
pub mod rundir;

pub mod clean;
pub mod completion;
pub mod launch;
pub mod nextflow;

pub mod cost;
pub mod estimate;
pub mod history;
pub mod probe;
pub mod samples;
pub mod trace;
pub mod usage;
pub mod watch;

pub mod h5ad;
pub mod kernel;
pub mod matrix;
pub mod pickle;
