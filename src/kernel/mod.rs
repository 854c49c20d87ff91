//! Native kernels: the CPU work of the tasks. Pure numerics below, files only in `tasks`.

pub mod check;
pub mod classify;
pub mod pca;

pub mod measure;
pub mod points;
pub mod score;

pub mod graph;
pub mod kmeans;
pub mod neighbours;
mod sample;
pub mod silhouette;
mod tiles;

pub mod benchmark;
pub mod geometry;

pub mod accuracy;
pub mod bras;
pub mod kbet;
pub mod lisi;
#[cfg(test)]
mod mixing_case;
mod omission;

pub mod tasks;

/// The kernels of this build, as the pipeline calls them.
pub const NAMES: [&str; 6] = ["pca", "pca-project", "check", "classify", "geometry", "tabulate"];
