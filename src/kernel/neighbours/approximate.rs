//! Search in the nearest lists of an inverted file.
//!
//! All cells of a list are compared with all cells of the lists nearest to it, exactly. How many lists are needed depends
//! on the data: it is read off the true neighbours of sampled cells, and the recall of the outcome is measured on others.

use std::ops::Range;

use rayon::prelude::*;

use super::super::points::Points;
use super::super::sample::distinct;
use super::super::tiles::{Frame, Layout};
use super::lists::{Lists, Members};
use super::search::{Rows, Task, strips};
use super::{Neighbours, Search, Tick};

/// Share of the true neighbours that has to be found.
const RECALL: f64 = 0.99;

/// Share that the number of lists is chosen for.
const AIM: f64 = 0.993;

/// Cells whose true neighbours are found to choose the number of lists, and as many others to measure the recall.
const SAMPLED: usize = 1000;

const SEED: u64 = 0x7265_6361;

/// The `k` nearest other cells, or `None` if comparing all cells takes no longer.
pub(super) fn among(points: &Points, frame: &Frame<f32>, k: usize, tick: Tick<'_>) -> Option<Neighbours> {
    let lists = Lists::learn(points, frame);
    let labels = lists.labels(points, frame);
    let members = lists.members(&labels);
    tick(0.1);
    let columns = Layout::new(points, frame, members.order.clone()).gathered();
    let own = |position: usize| Some(position as u32);
    let task = Task { columns: &columns, queries: &columns, own: &own, k };
    Inverted { lists: &lists, members: &members, labels: &labels, asked: &labels, groups: &members, task }
        .search(tick)
}

/// The `k` nearest of `points` for other cells, or `None` if comparing all takes no longer.
pub(super) fn between(
    points: &Points,
    queries: &Points,
    frame: &Frame<f32>,
    k: usize,
    tick: Tick<'_>,
) -> Option<Neighbours> {
    let lists = Lists::learn(points, frame);
    let (labels, asked) = (lists.labels(points, frame), lists.labels(queries, frame));
    let (members, groups) = (lists.members(&labels), lists.members(&asked));
    tick(0.1);
    let columns = Layout::new(points, frame, members.order.clone()).gathered();
    let queries = Layout::new(queries, frame, groups.order.clone());
    let task = Task { columns: &columns, queries: &queries, own: &|_| None, k };
    Inverted { lists: &lists, members: &members, labels: &labels, asked: &asked, groups: &groups, task }
        .search(tick)
}

/// An inverted file and what is searched in it.
struct Inverted<'a> {
    lists: &'a Lists,
    members: &'a Members,
    /// The list of each cell.
    labels: &'a [u32],
    /// The list nearest to each query.
    asked: &'a [u32],
    /// The queries by list.
    groups: &'a Members,
    task: Task<'a>,
}

/// Sampled queries (by position) and their true neighbours.
struct Truth {
    positions: Vec<u32>,
    rows: Rows,
}

impl Inverted<'_> {
    fn search(&self, tick: Tick<'_>) -> Option<Neighbours> {
        let truth = self.truth();
        tick(0.2);
        let (choose, measure): (Vec<usize>, Vec<usize>) =
            (0..truth.positions.len()).partition(|sampled| sampled % 2 == 0);
        let mut probed = self.lists_needed(&truth, &choose);
        // Half of the lists or more: comparing all cells is as fast.
        while 2 * probed < self.lists.len() {
            let mut rows = self.probe(probed, &|share| tick(0.2 + 0.8 * share));
            let recall = truth.recall(&rows, &measure);
            if recall >= RECALL {
                rows.settle(&self.task.queries.order);
                let search = Search::Approximate { recall, sampled: measure.len() };
                let Rows { k, indices, distances } = rows;
                return Some(Neighbours { k, indices, distances, search });
            }
            probed *= 2;
        }
        None
    }

    /// True neighbours of sampled queries.
    fn truth(&self) -> Truth {
        let Task { columns, queries, own, k } = self.task;
        let positions = distinct(queries.len(), 2 * SAMPLED, SEED);
        let cells = positions.iter().map(|&position| queries.order[position as usize]).collect();
        let sampled = Layout::new(queries.points, queries.frame, cells);
        let own = |row: usize| own(positions[row] as usize);
        let rows = Task { columns, queries: &sampled, own: &own, k }.exhaustive(&|_| ());
        Truth { positions, rows }
    }

    /// The number of lists that hold enough of the true neighbours of some sampled queries.
    fn lists_needed(&self, truth: &Truth, sampled: &[usize]) -> usize {
        let k = truth.rows.k;
        let ranks = sampled.par_iter().map(|&row| {
            let query = self.task.queries.order[truth.positions[row] as usize];
            let ranking = self.lists.ranking(self.asked[query as usize] as usize);
            let mut rank_of = vec![0u32; ranking.len()];
            ranking.iter().zip(0..).for_each(|(&list, rank)| rank_of[list as usize] = rank);
            let neighbours = &truth.rows.indices[row * k..][..k];
            neighbours.iter().map(|&cell| rank_of[self.labels[cell as usize] as usize]).collect()
        });
        let ranks: Vec<Vec<u32>> = ranks.collect();
        let mut ranks = ranks.concat();
        ranks.sort_unstable();
        let needed = (AIM * ranks.len() as f64).ceil() as usize;
        ranks.get(needed.saturating_sub(1)).map_or(self.lists.len(), |&rank| rank as usize + 1)
    }

    /// Compares every query with the cells of the `probed` lists nearest to its own.
    fn probe(&self, probed: usize, tick: Tick<'_>) -> Rows {
        let mut pieces: Vec<Range<usize>> = Vec::new();
        let mut list_of = Vec::new();
        for list in 0..self.lists.len() {
            pieces.extend(strips(self.groups.range(list)));
            list_of.resize(pieces.len(), list);
        }
        // The query itself may be among them.
        let cells = self.task.k + 1;
        let reach = |strip: usize| {
            let ranking = self.lists.ranking(list_of[strip]);
            self.members.reach(&ranking, probed, cells).into_iter()
        };
        self.task.run(&pieces, reach, tick)
    }
}

impl Truth {
    /// The share of the true neighbours of some sampled queries that was found; among equally distant ones any will do.
    fn recall(&self, found: &Rows, sampled: &[usize]) -> f64 {
        let k = found.k;
        let mut right = 0;
        for &row in sampled {
            let farthest = self.rows.distances[row * k + k - 1];
            let distances = &found.distances[self.positions[row] as usize * k..][..k];
            right += distances.iter().filter(|&&distance| distance <= farthest).count();
        }
        right as f64 / (sampled.len() * k) as f64
    }
}
