//! Nextflow as a child process: find it (or bring a managed one), start it, pass signals on, wait.
//!
//! [`locate`] gives an [`Engine`]; [`run`] starts it with arguments and reports what happens as [`Event`]s. [`inspect`]
//! says what `locate` would do without doing it.

mod archive;
mod child;
mod group;
mod install;
mod jars;
mod java;
mod launcher;
mod locate;
mod managed;
mod orphans;
mod request;
mod runtime;
mod signals;
mod store;

pub use child::{Event, Launch, Outcome, run};
pub use java::{Java, JavaFound};
pub use locate::{Engine, Inspection, Origin, inspect, locate, outdated};
pub use orphans::end_orphans;
pub use request::Request;
pub use signals::StopRequests;
