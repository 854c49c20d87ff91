//! Method profiles: the catalogue of what can be run.

mod profile;

pub use profile::*;
