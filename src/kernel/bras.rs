//! Batch-removal adapted silhouette: do batches mix within labels, by the angle between cells?

use rayon::prelude::*;

use super::omission::omission;
use super::points::{Classes, Points};
use super::score::Score;

/// Mean cosine distances below this are rounding: all those cells point the same way.
const ROUNDING: f64 = 1e-28;

/// Batch-removal adapted silhouette (BRAS).
///
/// Within each label, for every cell with cosine distances: `a` is the mean distance to the other cells of its batch,
/// `b` to all the label's cells of other batches, and the cell's value `1 - |b - a| / max(a, b)`; a cell alone in its
/// batch, or whose `a` and `b` are both 0, has 1. The mean over labels of the labels' means. Range 0 (batches apart) to
/// 1 (mixed); higher is better. Labels in one batch, or with as many batches as cells, are left out and named in a note;
/// cells whose coordinates are all 0 have no angle and are left out before anything else, with their number in a note.
/// NA where no label is left.
///
/// Distances are never taken pair by pair: the mean squared difference to a group of unit vectors is the squared
/// difference to their mean plus their mean squared deviation from it, so time is cells x dims.
///
/// Reference: `scib_metrics.bras` 0.5.10 (cosine, `mean_other`).
pub fn bras(points: &Points, labels: &Classes, batches: &Classes) -> Score {
    let norms: Vec<f64> = (0..points.len()).into_par_iter().map(|cell| norm(points.row(cell))).collect();
    let mut members = labels.members();
    members.iter_mut().for_each(|cells| cells.retain(|&cell| norms[cell] > 0.0));
    let values: Vec<Option<f64>> = members
        .par_iter()
        .map(|cells| {
            let own = batches.select(cells);
            (own.len() > 1 && own.len() < cells.len())
                .then(|| Label { points, norms: &norms, cells, batches: &own }.mean())
        })
        .collect();
    let scored: Vec<f64> = values.iter().flatten().copied().collect();
    let left_out: Vec<&String> =
        labels.names.iter().zip(&values).filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
    let notes = [
        omission(&left_out, "only one batch, or as many batches as cells"),
        match norms.iter().filter(|&&norm| norm <= 0.0).count() {
            0 => None,
            1 => Some("1 cell left out: all its coordinates are 0".to_owned()),
            zero => Some(format!("{zero} cells left out: all their coordinates are 0")),
        },
    ];
    let score = match scored.len() {
        0 => Score::missing("no label has two batches, one of them with two cells"),
        count => Score::number(scored.iter().sum::<f64>() / count as f64),
    };
    notes.into_iter().flatten().fold(score, Score::note)
}

fn norm(row: &[f32]) -> f64 {
    row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt()
}

/// The cells of one label.
struct Label<'a> {
    points: &'a Points,
    norms: &'a [f64],
    cells: &'a [usize],
    batches: &'a Classes,
}

/// Unit vectors seen as one: how many, their mean, and their mean squared deviation from it.
#[derive(Clone)]
struct Group {
    size: f64,
    mean: Vec<f64>,
    deviation: f64,
}

impl Label<'_> {
    /// The mean of the cells' values.
    fn mean(&self) -> f64 {
        let own = self.groups();
        let others: Vec<Group> = (0..own.len()).map(|batch| all_but(&own, batch)).collect();
        let values = (0..self.cells.len()).map(|index| {
            let batch = self.batches.codes[index] as usize;
            let (own, others) = (&own[batch], &others[batch]);
            if own.size < 2.0 {
                return 1.0;
            }
            let (a, b) =
                (self.distance(index, own) * own.size / (own.size - 1.0), self.distance(index, others));
            match a.max(b) {
                ..ROUNDING => 1.0,
                largest => 1.0 - (b - a).abs() / largest,
            }
        });
        values.sum::<f64>() / self.cells.len() as f64
    }

    /// The mean cosine distance of a cell to all cells of a group, itself included if it is one.
    fn distance(&self, index: usize, group: &Group) -> f64 {
        0.5 * (self.squared(index, &group.mean) + group.deviation)
    }

    /// The unit vector of a cell.
    fn unit(&self, index: usize) -> impl Iterator<Item = f64> {
        let norm = self.norms[self.cells[index]];
        self.points.row(self.cells[index]).iter().map(move |&value| f64::from(value) / norm)
    }

    /// The squared difference of a cell's unit vector and a vector.
    fn squared(&self, index: usize, vector: &[f64]) -> f64 {
        self.unit(index).zip(vector).map(|(a, b)| (a - b).powi(2)).sum()
    }

    /// The batches.
    fn groups(&self) -> Vec<Group> {
        let empty = Group { size: 0.0, mean: vec![0.0; self.points.dims()], deviation: 0.0 };
        let mut groups = vec![empty; self.batches.len()];
        for index in 0..self.cells.len() {
            let group = &mut groups[self.batches.codes[index] as usize];
            group.size += 1.0;
            group.mean.iter_mut().zip(self.unit(index)).for_each(|(sum, value)| *sum += value);
        }
        for group in &mut groups {
            group.mean.iter_mut().for_each(|sum| *sum /= group.size);
        }
        for index in 0..self.cells.len() {
            let group = &mut groups[self.batches.codes[index] as usize];
            group.deviation += self.squared(index, &group.mean) / group.size;
        }
        groups
    }
}

/// All groups but one, as one.
fn all_but(groups: &[Group], left_out: usize) -> Group {
    let others = || groups.iter().enumerate().filter(|&(index, _)| index != left_out).map(|(_, group)| group);
    let size: f64 = others().map(|group| group.size).sum();
    let mut mean = vec![0.0; groups[left_out].mean.len()];
    for group in others() {
        mean.iter_mut().zip(&group.mean).for_each(|(sum, value)| *sum += value * group.size / size);
    }
    let between = |group: &Group| group.mean.iter().zip(&mean).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let deviation = others().map(|group| group.size / size * (group.deviation + between(group))).sum();
    Group { size, mean, deviation }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cases;

    #[test]
    fn b02_names_the_labels_it_leaves_out() {
        let (points, labels, batches) = cases::labels_and_batches("b02_two_cell_group.h5ad");
        let score = bras(&points, &labels, &batches);
        assert!((score.value.unwrap() - 0.697987).abs() < 1e-6, "{score:?}");
        assert_eq!(score.notes, ["2 labels left out (only one batch, or as many batches as cells): C, D"]);
    }

    /// The definition, pair by pair.
    fn plain(points: &Points, labels: &Classes, batches: &Classes) -> f64 {
        let unit = |cell: usize| {
            let norm = norm(points.row(cell));
            points.row(cell).iter().map(|v| f64::from(*v) / norm).collect::<Vec<f64>>()
        };
        let mut means = Vec::new();
        for cells in labels.members() {
            let value = |&cell: &usize| {
                let mean = |same: bool| {
                    let all: Vec<f64> = cells
                        .iter()
                        .filter(|&&other| {
                            other != cell && (batches.codes[other] == batches.codes[cell]) == same
                        })
                        .map(|&other| {
                            1.0 - unit(cell).iter().zip(unit(other)).map(|(a, b)| a * b).sum::<f64>()
                        })
                        .collect();
                    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
                };
                let b = mean(false).unwrap();
                mean(true).map_or(1.0, |a| 1.0 - (b - a).abs() / a.max(b))
            };
            means.push(cells.iter().map(value).sum::<f64>() / cells.len() as f64);
        }
        means.iter().sum::<f64>() / means.len() as f64
    }

    fn random(scale: f32) -> (Points, Classes, Classes) {
        let mut random = fastrand::Rng::with_seed(4);
        let values = (0..90 * 5).map(|_| scale * (random.f32() - 0.3)).collect();
        let name = |count: usize| (0..90).map(|cell| format!("{}", cell * cell % count)).collect::<Vec<_>>();
        let mut batches = name(7);
        batches[40] = "alone".into();
        (Points::new(values, 5), Classes::of(&name(3)), Classes::of(&batches))
    }

    #[test]
    fn sums_of_groups_equal_pairs_at_any_scale() {
        for scale in [1e-30, 1.0, 1e30] {
            let (points, labels, batches) = random(scale);
            let score = bras(&points, &labels, &batches).value.unwrap();
            let expected = plain(&points, &labels, &batches);
            assert!((score - expected).abs() < 1e-9, "{scale}: {score} {expected}");
        }
    }

    #[test]
    fn cells_without_an_angle_are_left_out() {
        let (points, labels, batches) = random(1.0);
        let mut values = points.values().to_vec();
        values[5..15].fill(0.0);
        let score = bras(&Points::new(values, 5), &labels, &batches);
        let kept: Vec<usize> = (0..90).filter(|cell| ![1, 2].contains(cell)).collect();
        let expected = bras(&points.select(&kept), &labels.select(&kept), &batches.select(&kept));
        assert_eq!(score.value, expected.value);
        assert_eq!(score.notes, ["2 cells left out: all their coordinates are 0"]);
    }

    #[test]
    fn cells_that_point_the_same_way_are_mixed() {
        let values = (0..30).flat_map(|cell| [1.0f32, 3.0, 7.0].map(|v| v * (cell + 1) as f32)).collect();
        let labels = Classes::of(&["a"; 30]);
        let batches = Classes::of(&["x", "y", "z"].repeat(10));
        assert_eq!(bras(&Points::new(values, 3), &labels, &batches).value, Some(1.0));
    }

    #[test]
    fn too_little_to_tell_is_na() {
        for cells in [0, 1, 2] {
            let points = Points::new(vec![1.0; cells * 2], 2);
            let labels = Classes::of(&vec!["a"; cells]);
            let batches = Classes::of(&["x", "y"][..cells]);
            assert_eq!(bras(&points, &labels, &batches).value, None);
        }
        let zero = Points::new(vec![0.0; 20], 2);
        let batches = Classes::of(&["x", "y"].repeat(5));
        let score = bras(&zero, &Classes::of(&["a"; 10]), &batches);
        assert_eq!(score.value, None);
        assert_eq!(score.notes.len(), 3);
    }
}
