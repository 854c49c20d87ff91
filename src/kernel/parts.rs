//! Parts of the cells that are worked on by themselves: labels, batches.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::neighbours::Tick;

/// Most cells of a part that is done side by side with others; larger ones keep all threads busy by themselves.
const SMALL: usize = 20_000;

/// Does `work` for each part, given its number and its cells; the results are in the order of `parts`.
///
/// Large parts are done one after another, since they need the more memory; then small ones side by side. `work` ticks from 0 to
/// 1 for its own part.
pub fn each<C: Sync, T: Send>(
    parts: &[Vec<C>],
    tick: Tick<'_>,
    work: impl Fn(usize, &[C], Tick<'_>) -> T + Sync,
) -> Vec<T> {
    let all = parts.iter().map(Vec::len).sum::<usize>().max(1) as f64;
    let done = AtomicUsize::new(0);
    let run = |part: usize| {
        let cells = &parts[part];
        let before = done.load(Ordering::Relaxed) as f64;
        let result = work(part, cells, &|share| tick((before + share * cells.len() as f64) / all));
        tick((done.fetch_add(cells.len(), Ordering::Relaxed) + cells.len()) as f64 / all);
        (part, result)
    };
    let (large, small): (Vec<usize>, Vec<usize>) =
        (0..parts.len()).partition(|&part| parts[part].len() > SMALL);
    let mut results: Vec<(usize, T)> = large.into_iter().map(run).collect();
    results.par_extend(small.into_par_iter().with_max_len(1).map(run));
    results.sort_unstable_by_key(|&(part, _)| part);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_parts_and_progress_ends_at_one() {
        let parts: Vec<Vec<usize>> = vec![vec![7; 3], vec![1; SMALL + 1], Vec::new(), vec![5; 2]];
        let last = std::sync::Mutex::new(0f64);
        let tick = |share: f64| {
            let mut last = last.lock().expect("not poisoned");
            *last = last.max(share);
        };
        let found = each(&parts, &tick, |part, cells, tick| {
            tick(0.5);
            (part, cells.len())
        });
        assert_eq!(found, [(0, 3), (1, SMALL + 1), (2, 0), (3, 2)]);
        assert_eq!(*last.lock().expect("not poisoned"), 1.0);
    }
}
