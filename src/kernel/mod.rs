//! Native kernels: the CPU work of the tasks. Pure numerics below, files only in `tasks`.

pub mod check;
pub mod classify;
pub mod genept;
pub mod harmony;
pub mod pca;

#[cfg(test)]
mod cases;
pub mod measure;
pub mod points;
pub mod score;

pub mod kmeans;
pub mod neighbours;
mod parts;
pub(crate) mod sample;
mod tiles;

pub mod agreement;
pub mod graph;
pub mod leiden;
pub mod sweep;

pub mod accuracy;
pub mod bras;
pub mod kbet;
pub mod lisi;
mod omission;
pub mod silhouette;

pub mod benchmark;
pub mod geometry;

pub mod tasks;

/// The kernels of this build, as the pipeline calls them.
pub const NAMES: [&str; 10] = [
    "pca",
    "pca-project",
    "harmony",
    "genept",
    "check",
    "classify",
    "benchmark",
    "rank",
    "geometry",
    "tabulate",
];
