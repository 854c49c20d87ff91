//! The batch that fills a card, by what runs like it took of one with as much memory.

use super::fit::Point;
use super::{USABLE, largest_batch};
use crate::history::{Entry, Step};
use crate::plan::{Plan, Stage, Work};

/// Drivers tell the memory of one kind of card a little differently.
const SAME_MEMORY: f64 = 0.05;

/// The memory of a card, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub total: u64,
    pub free: u64,
}

/// A batch size that runs have shown to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// Cells at a time.
    pub size: u64,
    /// Runs that it is from.
    pub runs: usize,
    /// Above it memory ran out in one of them.
    pub halved: bool,
}

/// The largest batch of the plan that fits into nine tenths of what is free, and is not above one to which memory that ran
/// out has brought a run. `None`: no run tells.
pub fn batch(plan: &Plan, entries: &[Entry], room: Room) -> Option<Fit> {
    let mut told = Told::default();
    for entry in entries.iter().filter(|entry| entry.has_batches_like(plan)) {
        let steps = entry.steps.iter().filter(|step| {
            is_of_model(&plan.stages, step) && step.card_bytes.is_some_and(|bytes| is_same(bytes, room.total))
        });
        let before = told.count();
        steps.for_each(|step| told.add(entry, step));
        told.runs += usize::from(told.count() > before);
    }
    told.fit(room)
}

fn is_of_model(stages: &[Stage], step: &Step) -> bool {
    stages.iter().any(|stage| stage.process == step.process && matches!(stage.work, Work::Runner(_)))
}

fn is_same(one: u64, other: u64) -> bool {
    (one as f64 - other as f64).abs() <= SAME_MEMORY * other as f64
}

/// What runs tell of batches.
#[derive(Debug, Default)]
struct Told {
    /// Batches that held from the start, with the memory they took.
    held: Vec<Point>,
    /// Sizes to which batches were halved.
    halved: Vec<u64>,
    runs: usize,
}

impl Told {
    fn count(&self) -> usize {
        self.held.len() + self.halved.len()
    }

    fn add(&mut self, entry: &Entry, step: &Step) {
        let Some(size) = step.batch_size_used else { return };
        if step.halvings > Some(0) {
            // Its peak is that of the batch that failed.
            self.halved.push(size);
            return;
        }
        // Of fewer cells than that, no batch was full.
        let filled =
            step.input.and_then(|input| entry.inputs.get(input)).is_some_and(|data| data.cells >= size);
        if let Some(bytes) = step.peak_gpu_bytes.filter(|bytes| *bytes > 0 && filled) {
            self.held.push(Point { size: size as f64, value: bytes as f64 });
        }
    }

    fn fit(&self, room: Room) -> Option<Fit> {
        let most = self.halved.iter().copied().min();
        let by_memory = largest_batch(&self.held, room.free).or_else(|| in_proportion(&self.held, room.free));
        // What has held on such a card holds again where as much of it is free.
        let again = || most.filter(|_| self.held.is_empty() && is_free(room));
        let size = by_memory.or_else(again)?;
        let halved = most.is_some_and(|most| most <= size);
        Some(Fit { size: most.map_or(size, |most| size.min(most)), runs: self.runs, halved })
    }
}

fn is_free(room: Room) -> bool {
    room.free as f64 >= USABLE * room.total as f64
}

/// Of batches of one size: a larger one takes at most so many times as much. Of a smaller one that says nothing.
fn in_proportion(held: &[Point], free: u64) -> Option<u64> {
    let order = |one: &&Point, other: &&Point| {
        one.size.total_cmp(&other.size).then(one.value.total_cmp(&other.value))
    };
    let largest = held.iter().max_by(order)?;
    let times = USABLE * free as f64 / largest.value;
    (times >= 1.0).then_some((largest.size * times) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Data, Entry};
    use crate::plan::Role;

    const GIB: u64 = 1 << 30;

    fn told(steps: &[(u64, u64, u32)], cells: u64) -> Told {
        let json = r#"{"schema": 1, "task": "embed"}"#;
        let entry = Entry {
            inputs: vec![Data { role: Role::Data, cells, genes: 10, stored: None, bytes: 0 }],
            ..serde_json::from_str(json).unwrap()
        };
        let mut told = Told { runs: steps.len(), ..Told::default() };
        for &(size, bytes, halvings) in steps {
            let step = Step {
                input: Some(0),
                batch_size_used: Some(size),
                peak_gpu_bytes: Some(bytes),
                halvings: Some(halvings),
                ..Step::default()
            };
            told.add(&entry, &step);
        }
        told
    }

    fn size(steps: &[(u64, u64, u32)], free: u64) -> Option<(u64, bool)> {
        let fit = told(steps, 1000).fit(Room { total: 16 * GIB, free })?;
        Some((fit.size, fit.halved))
    }

    #[test]
    fn two_sizes_make_a_line_and_one_a_bound() {
        // 1 GiB, and 1/8 GiB for each cell.
        let two = [(16, 3 * GIB, 0), (32, 5 * GIB, 0)];
        assert_eq!(size(&two, 16 * GIB), Some((107, false)));
        assert_eq!(size(&two, 4 * GIB), Some((20, false)), "what others hold is not free");
        assert_eq!(size(&two[..1], 16 * GIB), Some((76, false)));
        assert_eq!(size(&two[..1], 2 * GIB), None, "a smaller batch was never measured");
        assert_eq!(size(&[], 16 * GIB), None);
    }

    #[test]
    fn it_is_never_above_a_size_that_was_halved_to() {
        let steps = [(16, 3 * GIB, 0), (32, 5 * GIB, 0), (64, 15 * GIB, 1), (50, 15 * GIB, 2)];
        assert_eq!(size(&steps, 16 * GIB), Some((50, true)));
        assert_eq!(size(&steps, 4 * GIB), Some((20, false)));
        assert_eq!(size(&steps[2..], 16 * GIB), Some((50, true)), "it has held");
        assert_eq!(size(&steps[2..], 8 * GIB), None, "on an empty card it has");
    }

    #[test]
    fn a_batch_that_was_never_full_says_nothing() {
        let few = told(&[(64, GIB, 0)], 10);
        assert!(few.fit(Room { total: 16 * GIB, free: 16 * GIB }).is_none());
    }

    #[test]
    fn a_card_of_one_kind_is_known_again() {
        assert!(is_same(15_360 << 20, 15_109 << 20) && !is_same(24 * GIB, 16 * GIB));
    }
}
