//! Removing what finished runs have left: their directories, or only their work.
//!
//! Results, data and methods lie outside of `runs/` and are never touched. What goes is first renamed to a hidden name, so that a
//! run that is half removed is no run any more; what an earlier, cut-off removal left under such a name goes with the next
//! one.

mod age;
mod remove;
mod select;
mod size;
#[cfg(test)]
mod tests;
mod work;

pub use age::Age;
pub use remove::{remove, remove_empty_folders};
pub use select::{Part, Selection, Target, Wanted, select};
pub use size::Size;
pub use work::remove_served;

/// What the name of a probe's directory begins with, beside the runs of its task. It is claimed while the probe is under way.
pub const PROBING: &str = ".probe-";

/// What the name of a directory that is being removed begins with.
const REMOVING: &str = ".removing-";
