//! Can the label of a cell be told from the labels around it?

use rayon::prelude::*;

use super::neighbours::Neighbours;
use super::points::{Classes, Points};
use super::score::Score;
use super::tiles::squared_distance;

/// Folds of the cross-validation.
pub const FOLDS: usize = 5;

/// Cells that vote.
const VOTERS: usize = 5;

/// Cells that have to be left.
const FEWEST: usize = 10;

/// The fold of each cell, below [`FOLDS`]; `None` for cells of classes with fewer than [`FOLDS`] cells.
///
/// Stratified: the cells of each class are shuffled (drawn from `seed`, class by class) and dealt out in turn, one class
/// going on where the one before ended. So every fold has its share of each class, and as many cells as any other, to
/// within one.
pub fn folds(labels: &Classes, seed: u64) -> Vec<Option<u8>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut folds = vec![None; labels.codes.len()];
    let mut dealt = 0;
    for mut members in labels.members() {
        if members.len() < FOLDS {
            continue;
        }
        random.shuffle(&mut members);
        for cell in members {
            folds[cell] = Some((dealt % FOLDS) as u8);
            dealt += 1;
        }
    }
    folds
}

/// Accuracy of labels told by the 5 nearest cells, cross-validated in 5 stratified [`folds`].
///
/// The label of each cell is the most frequent among the 5 nearest cells (Euclidean) outside its fold; of equally
/// frequent ones the first by name. The mean over folds of the share of right labels. Range 0 to 1, higher is better.
/// Classes with fewer than 5 cells are left out, with a note. NA when fewer than 10 cells or two classes are left.
///
/// `neighbours` are lists of any length among all cells of `points`: where one holds fewer than 5 cells outside the
/// fold, that cell is compared with all of them.
///
/// Reference: scikit-learn 1.9 `KNeighborsClassifier(5)` over the same folds.
pub fn knn_accuracy(points: &Points, neighbours: &Neighbours, labels: &Classes, seed: u64) -> Score {
    let small: Vec<usize> = labels.sizes().into_iter().filter(|&size| size < FOLDS).collect();
    let cells = labels.codes.len() - small.iter().sum::<usize>();
    let score = match (cells, labels.len() - small.len()) {
        (..FEWEST, _) => Score::missing(format!(
            "{cells} cells in classes of at least {FOLDS}: cross-validation needs {FEWEST}"
        )),
        (_, 0 | 1) => Score::missing(format!("no two classes have {FOLDS} cells")),
        _ => Score::number(mean_accuracy(points, neighbours, labels, &folds(labels, seed))),
    };
    match small.len() {
        0 => score,
        count => {
            let (classes, cells) =
                (if count == 1 { "class" } else { "classes" }, small.iter().sum::<usize>());
            score.note(format!(
                "{count} {classes} of fewer than {FOLDS} cells left out ({cells} cell{})",
                if cells == 1 { "" } else { "s" }
            ))
        }
    }
}

/// The mean over folds of the share of right labels.
fn mean_accuracy(points: &Points, neighbours: &Neighbours, labels: &Classes, folds: &[Option<u8>]) -> f64 {
    let right: Vec<bool> = (0..folds.len())
        .into_par_iter()
        .map(|cell| {
            let Some(fold) = folds[cell] else { return false };
            let voter = |&other: &usize| folds[other].is_some_and(|its| its != fold);
            let mut voters: Vec<usize> = neighbours
                .row(cell)
                .0
                .iter()
                .map(|&other| other as usize)
                .filter(voter)
                .take(VOTERS)
                .collect();
            if voters.len() < VOTERS {
                voters = nearest_among(points, cell, (0..folds.len()).filter(voter));
            }
            elected(&voters, labels) == labels.codes[cell]
        })
        .collect();
    let accuracy = |fold: usize| {
        let (mut cells, mut hits) = (0u32, 0u32);
        for (own, right) in folds.iter().zip(&right) {
            let here = own.is_some_and(|own| usize::from(own) == fold);
            cells += u32::from(here);
            hits += u32::from(here && *right);
        }
        f64::from(hits) / f64::from(cells)
    };
    (0..FOLDS).map(accuracy).sum::<f64>() / FOLDS as f64
}

/// The [`VOTERS`] of `others` that are nearest to a cell; of equally near ones the first.
fn nearest_among(points: &Points, cell: usize, others: impl Iterator<Item = usize>) -> Vec<usize> {
    let own = points.row(cell);
    let mut best: Vec<(f64, usize)> = Vec::with_capacity(VOTERS + 1);
    for other in others {
        let distance = squared_distance(own, points.row(other));
        if best.len() == VOTERS && distance >= best[VOTERS - 1].0 {
            continue;
        }
        let place = best.partition_point(|(nearer, _)| *nearer <= distance);
        best.insert(place, (distance, other));
        best.truncate(VOTERS);
    }
    best.into_iter().map(|(_, other)| other).collect()
}

/// The most frequent class of a few cells, of equally frequent ones the first.
fn elected(voters: &[usize], labels: &Classes) -> u32 {
    let votes = |class: u32| voters.iter().filter(|&&voter| labels.codes[voter] == class).count();
    let classes = voters.iter().map(|&voter| labels.codes[voter]);
    classes.max_by_key(|&class| (votes(class), std::cmp::Reverse(class))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::neighbours::nearest;

    fn two_blobs(first: usize, second: usize, apart: f32) -> (Points, Classes) {
        let mut random = fastrand::Rng::with_seed(8);
        let mut values = Vec::new();
        let mut labels = Vec::new();
        for cell in 0..first + second {
            let shift = if cell < first { 0.0 } else { apart };
            values.extend([random.f32() + shift, random.f32()]);
            labels.push(if cell < first { "a" } else { "b" });
        }
        (Points::new(values, 2), Classes::of(&labels))
    }

    fn score(points: &Points, labels: &Classes, k: usize) -> Score {
        knn_accuracy(points, &nearest(points, k, &|_| ()), labels, 1)
    }

    #[test]
    fn folds_share_out_every_class() {
        let names: Vec<String> = (0..123).map(|cell| format!("{}", cell % 7 * (cell % 2))).collect();
        let labels = Classes::of(&names);
        let folds = folds(&labels, 3);
        let sizes = |within: &dyn Fn(usize) -> bool| {
            let of = |fold| (0..123).filter(|&c| within(c) && folds[c] == Some(fold)).count();
            (0..FOLDS as u8).map(of).collect::<Vec<usize>>()
        };
        let spread = |sizes: Vec<usize>| sizes.iter().max().unwrap() - sizes.iter().min().unwrap();
        assert!(spread(sizes(&|_| true)) <= 1);
        for class in 0..labels.len() as u32 {
            assert!(spread(sizes(&|cell| labels.codes[cell] == class)) <= 1);
        }
        assert_ne!(folds, super::folds(&labels, 4));
    }

    #[test]
    fn blobs_apart_are_told_and_short_lists_change_nothing() {
        let (points, labels) = two_blobs(30, 40, 100.0);
        assert_eq!(score(&points, &labels, 30).value, Some(1.0));
        let (points, labels) = two_blobs(30, 40, 0.4);
        let whole = score(&points, &labels, 69);
        assert!(whole.value.unwrap() > 0.5 && whole.value.unwrap() < 1.0);
        for k in [0, 1, 4, 6, 20] {
            assert_eq!(score(&points, &labels, k), whole);
        }
    }

    #[test]
    fn votes_that_tie_go_to_the_class_that_sorts_first() {
        let labels = Classes::of(&["b", "a", "c", "b", "a"]);
        assert_eq!(elected(&[0, 1, 2, 3, 4], &labels), 0);
        assert_eq!(elected(&[0, 2, 3], &labels), 1);
        assert_eq!(elected(&[2, 0], &labels), 1);
    }

    #[test]
    fn small_classes_are_left_out_and_too_little_is_na() {
        let (points, labels) = two_blobs(30, 4, 100.0);
        let alone = score(&points, &labels, 20);
        assert_eq!(alone.value, None);
        assert_eq!(
            alone.notes,
            ["no two classes have 5 cells", "1 class of fewer than 5 cells left out (4 cells)"]
        );
        for cells in [0, 1, 2, 9] {
            let some: Vec<usize> = (0..cells).collect();
            assert_eq!(score(&points.select(&some), &labels.select(&some), 20).value, None);
        }
        let same = Points::new(vec![2.0; 40], 2);
        assert!(score(&same, &Classes::of(&["a", "b"].repeat(10)), 10).value.is_some());
    }
}
