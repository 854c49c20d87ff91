//! The resolution at which Leiden finds as many clusters as there are labels.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::agreement::Agreement;
use super::graph::Graph;
use super::leiden::leiden;
use super::neighbours::Tick;
use super::points::Classes;

/// Iterations of each run, as scanpy's igraph flavour makes.
const ITERATIONS: usize = 2;
/// Resolutions in a row that have to be past the match before the sweep stops.
const PAST: usize = 5;

/// The clustering that was chosen among those of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub resolution: f64,
    /// Number of clusters.
    pub clusters: usize,
    /// The cluster of each cell, as [`leiden`] numbers them.
    pub labels: Vec<u32>,
    pub agreement: Agreement,
    /// Resolutions that the choice was made from.
    pub tried: usize,
}

/// Clusters a graph at resolutions 0.1, 0.2 … 3.0, on to 6.0 by 0.5 until one gives as many clusters as `truth` has
/// classes if none has, and keeps the clustering whose number of clusters is nearest to that of classes; of equal ones
/// the one of higher NMI, then of lower resolution.
///
/// Stops early when the last 5 resolutions all gave more clusters than there are classes and all were worse matches
/// than the best so far. The choice is that of all resolutions unless, further up, the number of clusters falls
/// back by as much as it had grown past the best match; it can do so by a cluster or two, as runs are random.
///
/// `truth` has a class for each node of the graph; a graph without nodes (no cell has a neighbour) counts as one without
/// edges. Every run has the same seed. The result is the same for any number of threads; each thread
/// needs the memory of one [`leiden`] run.
pub fn match_labels(graph: &Graph, truth: &Classes, seed: u64, tick: Tick<'_>) -> Match {
    let lone;
    let graph = if graph.is_empty() {
        lone = Graph::without_edges(truth.codes.len());
        &lone
    } else {
        graph
    };
    choose(&|resolution| leiden(graph, resolution, ITERATIONS, seed), truth, PAST, tick)
}

/// 0.1 to 3.0; then 3.5 to 6.0.
const FINE: usize = 30;
const COARSE: usize = 6;

fn resolution(step: usize) -> f64 {
    match step.checked_sub(FINE) {
        None => (step + 1) as f64 / 10.0,
        Some(beyond) => 3.5 + beyond as f64 / 2.0,
    }
}

fn choose(run: &(dyn Fn(f64) -> Vec<u32> + Sync), truth: &Classes, past: usize, tick: Tick<'_>) -> Match {
    let finished = AtomicUsize::new(0);
    let attempt = |step: usize| {
        let attempt = Match::of(resolution(step), run(resolution(step)), truth);
        tick((finished.fetch_add(1, Ordering::Relaxed) + 1).min(FINE) as f64 / (FINE + 1) as f64);
        attempt
    };
    // Two for each thread before it is seen whether to go on: they take unequal times.
    let side_by_side = 2 * rayon::current_num_threads();
    let group_from = |step: usize| -> Vec<Match> {
        let end = (step + side_by_side).min(if step < FINE { FINE } else { FINE + COARSE });
        (step..end).into_par_iter().map(attempt).collect()
    };
    let (first, mut group) = rayon::join(|| attempt(0), || group_from(1));
    let mut sweep = Sweep { classes: truth.len(), most: first.clusters, best: first, past: 0 };
    let mut step = 1;
    'sweep: loop {
        for next in group {
            sweep.take(next);
            step += 1;
            let reached = step >= FINE && sweep.most >= truth.len();
            if sweep.past >= past || reached || step == FINE + COARSE {
                break 'sweep;
            }
        }
        group = group_from(step);
    }
    tick(1.0);
    Match { tried: step, ..sweep.best }
}

/// What is known after some of the resolutions.
struct Sweep {
    classes: usize,
    best: Match,
    /// Resolutions in a row with too many clusters and a worse match than the best.
    past: usize,
    /// The largest number of clusters.
    most: usize,
}

impl Sweep {
    fn take(&mut self, next: Match) {
        self.most = self.most.max(next.clusters);
        let (best, distance) =
            (self.best.clusters.abs_diff(self.classes), next.clusters.abs_diff(self.classes));
        let is_past = next.clusters > self.classes && distance > best;
        self.past = if is_past { self.past + 1 } else { 0 };
        if distance < best || (distance == best && next.agreement.nmi > self.best.agreement.nmi) {
            self.best = next;
        }
    }
}

impl Match {
    fn of(resolution: f64, labels: Vec<u32>, truth: &Classes) -> Match {
        let clusters = labels.iter().max().map_or(0, |&last| last as usize + 1);
        let agreement = Agreement::of(&truth.codes, &labels);
        Match { resolution, clusters, labels, agreement, tried: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cases;
    use crate::kernel::leiden::tests::{blobs, graph_of};
    use crate::kernel::points::Points;

    /// Labels of so many equal clusters.
    fn clusters(cells: usize, count: usize) -> Vec<u32> {
        (0..cells).map(|cell| (cell * count / cells) as u32).collect()
    }

    fn truth(cells: usize, count: usize) -> Classes {
        let labels: Vec<String> = clusters(cells, count).iter().map(|label| format!("{label:03}")).collect();
        Classes::of(&labels)
    }

    #[test]
    fn the_nearest_number_of_clusters_wins_at_the_lowest_resolution() {
        let run = |resolution: f64| clusters(600, (resolution * 4.0).ceil() as usize);
        let found = choose(&run, &truth(600, 5), PAST, &|_| ());
        // 1.1 and 1.2 give 5 clusters, 1.3 to 1.7 are the 5 past it.
        assert_eq!((found.resolution, found.clusters, found.tried), (1.1, 5, 17));
        assert_eq!(found.agreement.nmi, 1.0);
        let full = choose(&run, &truth(600, 5), usize::MAX, &|_| ());
        assert_eq!((full.resolution, full.tried), (1.1, 30));
    }

    #[test]
    fn equal_numbers_go_by_agreement() {
        let run = |resolution: f64| {
            let mut labels = clusters(100, if resolution < 2.05 { 2 } else { 9 });
            if resolution < 1.35 {
                labels.rotate_left(20);
            }
            labels
        };
        assert_eq!(choose(&run, &truth(100, 2), PAST, &|_| ()).resolution, 1.4);
    }

    #[test]
    fn goes_on_until_there_are_as_many_clusters() {
        let run = |resolution: f64| clusters(100, (resolution * 2.0) as usize + 1);
        let found = choose(&run, &truth(100, 10), PAST, &|_| ());
        assert_eq!((found.resolution, found.clusters, found.tried), (4.5, 10, 33));
        let found = choose(&run, &truth(100, 90), PAST, &|_| ());
        assert_eq!((found.resolution, found.clusters, found.tried), (6.0, 13, 36));
        let found = choose(&run, &truth(100, 7), PAST, &|_| ());
        assert_eq!((found.resolution, found.clusters, found.tried), (3.0, 7, 30));
    }

    #[test]
    fn stopping_early_changes_nothing_on_overlapping_clusters() {
        for seed in 0..4 {
            let (points, labels) = blobs(900, 6, 8, 2.0, seed);
            let (graph, truth) = (graph_of(&points), Classes::of(&labels));
            let run = |resolution| leiden(&graph, resolution, ITERATIONS, 1);
            let full = choose(&run, &truth, usize::MAX, &|_| ());
            let early = match_labels(&graph, &truth, 1, &|_| ());
            assert!(early.tried < full.tried, "{seed}: {}", early.tried);
            assert_eq!(early, Match { tried: early.tried, ..full }, "{seed}");
        }
    }

    #[test]
    fn progress_ends_at_one() {
        let seen = std::sync::Mutex::new(Vec::new());
        let tick = |share: f64| seen.lock().expect("not poisoned").push(share);
        match_labels(&Graph::without_edges(3), &Classes::of(&["a", "b", "c"]), 0, &tick);
        let seen = seen.into_inner().expect("not poisoned");
        assert!(seen.iter().all(|share| (0.0..=1.0).contains(share)) && seen.last() == Some(&1.0));
    }

    /// The embedding and labels of a case file, sorted by cell name.
    fn case(name: &str) -> (Points, Classes) {
        let file = cases::open(name);
        let mut order: Vec<usize> = (0..file.n_obs()).collect();
        order.sort_by_key(|&cell| &file.obs().index()[cell]);
        (cases::points(name).select(&order), cases::classes(name, "cell_type").select(&order))
    }

    #[test]
    fn case_b09_four_blobs_in_any_order_on_any_threads() {
        let (points, truth) = case("b09_four_blobs.h5ad");
        let found = match_labels(&graph_of(&points), &truth, 0, &|_| ());
        assert_eq!((found.clusters, truth.sizes()), (4, vec![50; 4]));
        assert_eq!((found.agreement.nmi, found.agreement.adjusted_rand), (1.0, 1.0));
        let shuffled = case("b09_four_blobs_shuffled.h5ad");
        assert_eq!(shuffled, (points, truth));
        for threads in [1, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let again = pool.install(|| match_labels(&graph_of(&shuffled.0), &shuffled.1, 0, &|_| ()));
            assert_eq!(again, found);
        }
    }

    #[test]
    fn few_cells() {
        let none = match_labels(&Graph::without_edges(0), &Classes::of::<&str>(&[]), 0, &|_| ());
        assert_eq!((none.clusters, none.labels.len()), (0, 0));
        let one = match_labels(&Graph::without_edges(0), &Classes::of(&["a"]), 0, &|_| ());
        assert_eq!((one.clusters, one.labels, one.agreement.nmi), (1, vec![0], 1.0));
        let pair = Graph::of_edges(2, &[(0, 1, 1.0)]);
        let two = match_labels(&pair, &Classes::of(&["a", "a"]), 0, &|_| ());
        assert_eq!((two.clusters, two.agreement.adjusted_rand), (1, 1.0));
    }
}
