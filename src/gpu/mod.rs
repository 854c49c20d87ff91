//! The machine's cards: what `nvidia-smi` says of them, which of them a run wants, and which run holds which.
//!
//! On a cluster the scheduler decides, and none of this is used.

mod choice;
mod lease;
mod people;
mod select;
mod smi;
mod visible;

pub use choice::{Choice, Name, Wish};
pub use lease::{Held, Holder, Lease, Leases, key, key_of_number};
pub use select::{IDLE_BYTES, Standing, candidates, foreign_use, named};
pub use smi::{Card, Process, Unseen, survey};
pub use visible::Visible;

/// What a workspace says where nobody has chosen: a free card where there are several, else the first.
pub fn usual_choice() -> Choice {
    match survey() {
        Ok(cards) if cards.len() > 1 => Choice::Auto,
        _ => Choice::Named(vec![Name::Index(0)]),
    }
}
