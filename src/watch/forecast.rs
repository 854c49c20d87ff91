//! When a run may be done, from how far it has come.

use crate::samples::mean;

/// A task that runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Running {
    pub elapsed_ms: u64,
    /// From 0 to 1, where the task tells.
    pub done: Option<f64>,
}

/// A process of the run.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Tasks that neither have ended nor run.
    pub waiting: usize,
    /// What completed tasks of it took, each.
    pub took_ms: Vec<u64>,
    pub running: Vec<Running>,
}

/// The milliseconds that the work still takes if it goes on as it went; `None` where nothing can be said: a process with
/// work left of which no task has completed nor tells how far it is, or a task that takes longer than those before it.
pub(super) fn remaining_ms(processes: &[Work]) -> Option<u64> {
    let (mut total, mut longest, mut side_by_side) = (0.0, 0.0_f64, 0);
    for work in processes.iter().filter(|work| work.waiting + work.running.len() > 0) {
        let typical = typical_ms(work);
        for task in &work.running {
            let left = left_ms(*task, typical)?;
            total += left;
            longest = longest.max(left);
            side_by_side += 1;
        }
        if work.waiting > 0 {
            total += typical? * work.waiting as f64;
        }
    }
    let left = longest.max(total / f64::from(side_by_side.max(1)));
    (left > 0.0).then_some(left.round() as u64)
}

/// What a task of the process takes: the mean of those that completed, else of what those that run will have taken.
fn typical_ms(work: &Work) -> Option<f64> {
    let took = work.took_ms.iter().map(|&took| took as f64);
    let will_take = work.running.iter().filter_map(|task| Some(task.elapsed_ms as f64 / started(task.done)?));
    mean(took).or_else(|| mean(will_take))
}

fn left_ms(task: Running, typical: Option<f64>) -> Option<f64> {
    let elapsed = task.elapsed_ms as f64;
    match started(task.done) {
        Some(done) => Some(elapsed * (1.0 - done) / done),
        None => typical.map(|typical| typical - elapsed).filter(|left| *left > 0.0),
    }
}

/// A share from which something can be concluded.
fn started(done: Option<f64>) -> Option<f64> {
    done.filter(|done| *done > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(elapsed_ms: u64, done: impl Into<Option<f64>>) -> Running {
        Running { elapsed_ms, done: done.into() }
    }

    #[test]
    fn a_task_that_tells_goes_on_as_it_went() {
        let one = Work { running: vec![running(3000, 0.25)], ..Work::default() };
        assert_eq!(remaining_ms(&[one]), Some(9000));
        // Two more of 12 s each wait for the one that runs.
        let queue = Work { waiting: 2, running: vec![running(3000, 0.25)], ..Work::default() };
        assert_eq!(remaining_ms(&[queue]), Some(9000 + 2 * 12_000));
    }

    #[test]
    fn tasks_before_tell_of_those_to_come() {
        let silent = vec![running(4000, None), running(1000, None)];
        let work = Work { waiting: 2, took_ms: vec![8000, 12_000], running: silent };
        assert_eq!(remaining_ms(&[work]), Some((6000 + 9000 + 2 * 10_000) / 2));
        let last = Work { took_ms: vec![10_000], running: vec![running(1000, None)], ..Work::default() };
        assert_eq!(remaining_ms(&[last]), Some(9000));
    }

    #[test]
    fn nothing_is_said_of_the_unknown() {
        let silent = || Work { running: vec![running(5000, None)], ..Work::default() };
        assert_eq!(remaining_ms(&[silent()]), None);
        assert_eq!(remaining_ms(&[Work { running: vec![running(5000, 0.0)], ..Work::default() }]), None);
        assert_eq!(remaining_ms(&[Work { took_ms: vec![4000], ..silent() }]), None);
        let told = Work { running: vec![running(3000, 0.25)], ..Work::default() };
        assert_eq!(remaining_ms(&[told, Work { waiting: 1, ..Work::default() }]), None);
        assert_eq!(remaining_ms(&[]), None);
    }
}
