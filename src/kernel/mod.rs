//! Native kernels: the CPU work of the tasks. Pure numerics below, files only in `tasks`.

pub mod check;
pub mod pca;

pub mod points;
pub mod score;

pub mod agreement;
pub mod graph;
pub mod leiden;
pub mod neighbours;
pub mod sweep;

pub mod tasks;

/// The kernels of this build, as the pipeline calls them.
pub const NAMES: [&str; 2] = ["pca", "check"];
