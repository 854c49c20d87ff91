//! What finished runs cost, one small JSON file a run, in a directory that several people and machines may share.
//!
//! A file says what an estimate needs and no more: sizes, options, seconds and bytes. Names and paths of data and of
//! columns are not in it.

mod entry;
mod store;

pub use entry::{Data, Entry, Machine, SCHEMA, Step, options};
pub use store::{History, keep, read};
