//! Method profiles: the catalogue of what can be run.
//!
//! A method is data: one TOML file (`profile`), read and checked once (`parse`, `check`), kept in a `Catalogue` together
//! with the profiles that the user's workspace adds. `honours` answers which option of the command line reaches whom.

mod builtin;
mod catalogue;
mod check;
mod honours;
mod nearest;
mod parse;
mod profile;
mod runners;

pub use catalogue::{Catalogue, Origin};
pub use honours::MethodOption;
pub use nearest::nearest;
pub use parse::parse_profile;
pub use profile::*;
pub use runners::{SHARED as SHARED_RUNNER_FILES, built_in as built_in_runner};

#[cfg(test)]
mod tests;
