//! Local inverse Simpson index: how many classes there are around a cell.

use rayon::prelude::*;

use super::neighbours::{Neighbours, Tick, nearest};
use super::omission::omission;
use super::parts;
use super::points::{Classes, Points};
use super::score::Score;

/// How near the entropy of the weights comes to the logarithm of the perplexity.
const TOLERANCE: f64 = 1e-10;

/// Steps of the search for it; about six are needed.
const STEPS: usize = 300;

/// Cells that a label has at least to enter [`cilisi`].
const LABEL_CELLS: usize = 10;

/// Fewer neighbours make the perplexity 1, with which a cell sees one neighbour and every index is 1.
const FEWEST: usize = 6;

/// Neighbours to ask for, the cell itself not among them, for all of `perplexity` to be used.
pub fn neighbours_for(perplexity: f64) -> usize {
    (3.0 * perplexity).ceil() as usize - 1
}

/// The local inverse Simpson index (LISI) of every cell.
///
/// Neighbours weigh `exp(-beta * distance)`, with `beta` such that the entropy of the weights is the logarithm of
/// `perplexity`; the index is one over the sum of squared shares of the classes in that weight. Range: 1 (one class
/// around the cell) to the number of classes (equal shares). It does not depend on the unit of the distances. Where no
/// `beta` gives the entropy (fewer neighbours than `perplexity`, or more of them equally near), the limit is taken:
/// equal weights. A cell without neighbours has 1.
///
/// Reference: `scib_metrics.lisi_knn` 0.5.10, whose lists of 90 hold the cell itself (of weight 0) and whose entropy
/// is off by up to 1e-5; here by 1e-10.
pub fn lisi(neighbours: &Neighbours, classes: &Classes, perplexity: f64) -> Vec<f64> {
    let target = perplexity.max(1.0).ln();
    let of_cell = |(weights, shares): &mut (Vec<f64>, Vec<f64>), cell: usize| {
        let (indices, distances) = match neighbours.k {
            0 => return 1.0,
            _ => neighbours.row(cell),
        };
        weigh(distances, target, weights);
        shares.clear();
        shares.resize(classes.len(), 0.0);
        for (neighbour, weight) in indices.iter().zip(weights.iter()) {
            shares[classes.codes[*neighbour as usize] as usize] += weight;
        }
        let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), s| (sum + s, squares + s * s));
        sum * sum / squares
    };
    (0..classes.codes.len())
        .into_par_iter()
        .map_init(|| (Vec::with_capacity(neighbours.k), Vec::with_capacity(classes.len())), of_cell)
        .collect()
}

/// Weights of neighbours (their sum is not 1) whose entropy is `target`.
fn weigh(distances: &[f32], target: f64, weights: &mut Vec<f64>) {
    // Distances that float32 cannot hold are all the same to us.
    let distance = |&distance: &f32| f64::from(distance.min(f32::MAX));
    let nearest = distances.iter().map(distance).fold(f64::INFINITY, f64::min);
    let mean = distances.iter().map(|d| distance(d) - nearest).sum::<f64>() / distances.len() as f64;
    let ties = distances.iter().filter(|d| distance(d) <= nearest).count();
    weights.clear();
    if mean <= 0.0 || (distances.len() as f64).ln() <= target {
        weights.resize(distances.len(), 1.0);
        return;
    }
    if (ties as f64).ln() >= target {
        weights.extend(distances.iter().map(|d| f64::from(u8::from(distance(d) <= nearest))));
        return;
    }
    let offsets: Vec<f64> = distances.iter().map(|d| (distance(d) - nearest) / mean).collect();
    let beta = solve(&offsets, target);
    weights.extend(offsets.iter().map(|offset| (-beta * offset).exp()));
}

/// The `beta` for which weights `exp(-beta * offset)` have the entropy `target`, offsets being of the order of 1.
///
/// Newton's method in the logarithm of `beta`, kept within bounds that halve where it would leave them.
fn solve(offsets: &[f64], target: f64) -> f64 {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut logarithm = 0f64;
    for _ in 0..STEPS {
        let beta = logarithm.exp();
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for offset in offsets {
            let weight = (-beta * offset).exp();
            sum += weight;
            first += weight * offset;
            second += weight * offset * offset;
        }
        let mean = first / sum;
        let excess = sum.ln() + beta * mean - target;
        if excess.abs() < TOLERANCE {
            break;
        }
        if excess > 0.0 {
            low = logarithm;
        } else {
            high = logarithm;
        }
        // The entropy falls by beta^2 times the variance of the offsets.
        let slope = beta * beta * (second / sum - mean * mean);
        let newton = logarithm + excess / slope;
        let within = newton > low.max(logarithm - 3.0) && newton < high.min(logarithm + 3.0);
        logarithm = match (within, low.is_finite() && high.is_finite()) {
            (true, _) => newton,
            (false, true) => 0.5 * (low + high),
            (false, false) => logarithm + 2.0 * excess.signum(),
        };
    }
    logarithm.exp()
}

/// The perplexity that `neighbours` neighbours allow: as asked for, or a third of them.
fn allowed(perplexity: f64, neighbours: usize) -> f64 {
    match neighbours >= neighbours_for(perplexity) {
        true => perplexity,
        false => (neighbours / 3) as f64,
    }
}

/// Cell-type LISI: are the cells around a cell of one label?
///
/// `(labels - median of LISI over cells) / (labels - 1)` with [`lisi`] of the labels. Range 0 (labels mixed evenly) to
/// 1 (each cell among its own); higher is better. The lists should hold [`neighbours_for`] neighbours; with fewer the
/// perplexity is a third of them, and a note says so. NA with fewer than two labels, or fewer than 6 neighbours.
///
/// Reference: `scib_metrics.clisi_knn` 0.5.10.
pub fn clisi(neighbours: &Neighbours, labels: &Classes, perplexity: f64) -> Score {
    let all = labels.len() as f64;
    scaled(neighbours, labels, perplexity, "label", |median| (all - median) / (all - 1.0))
}

/// Integration LISI: are the cells around a cell of all batches?
///
/// `(median of LISI over cells - 1) / (batches - 1)` with [`lisi`] of the batches. Range 0 (each batch by itself) to 1
/// (batches mixed evenly); higher is better. The lists should hold [`neighbours_for`] neighbours; with fewer the
/// perplexity is a third of them, and a note says so. NA with fewer than two batches, or fewer than 6 neighbours.
///
/// Reference: `scib_metrics.ilisi_knn` 0.5.10.
pub fn ilisi(neighbours: &Neighbours, batches: &Classes, perplexity: f64) -> Score {
    let all = batches.len() as f64;
    scaled(neighbours, batches, perplexity, "batch", |median| (median - 1.0) / (all - 1.0))
}

fn scaled(
    neighbours: &Neighbours,
    classes: &Classes,
    perplexity: f64,
    kind: &str,
    scale: impl Fn(f64) -> f64,
) -> Score {
    if classes.len() < 2 {
        return Score::missing(format!("all cells are of one {kind}"));
    }
    if neighbours.k < FEWEST {
        return Score::missing(format!(
            "{} cells are too few: LISI needs {FEWEST} neighbours",
            neighbours.k + 1
        ));
    }
    let used = allowed(perplexity, neighbours.k);
    let mut indices = lisi(neighbours, classes, used);
    let score = Score::number(scale(median(&mut indices)).clamp(0.0, 1.0));
    match used < perplexity {
        true => score.note(format!("perplexity {used} for {} neighbours", neighbours.k)),
        false => score,
    }
}

/// The middle value, or the mean of the middle two.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    match odd {
        true => upper,
        false => 0.5 * (below.iter().copied().fold(f64::NEG_INFINITY, f64::max) + upper),
    }
}

/// Cell-type aware integration LISI: within each label, are the cells around a cell of all batches?
///
/// For every label of at least 10 cells in at least two batches: [`lisi`] of the batches among the label's own cells
/// with [`neighbours_for`] neighbours (at most the label's other cells, and then a third of them as perplexity), as
/// `(LISI - 1) / (batches of the label - 1)`; the mean over all those cells. Range 0 (batches apart within every label)
/// to 1 (mixed evenly); higher is better. Labels left out are named in a note. NA where no label is left.
///
/// Reference: CiLISI of scIntegrationMetrics (Andreatta et al. 2024).
pub fn cilisi(
    points: &Points,
    labels: &Classes,
    batches: &Classes,
    perplexity: f64,
    tick: Tick<'_>,
) -> Score {
    let found = parts::each(&labels.members(), tick, |_, members, tick| {
        let own = batches.select(members);
        if members.len() < LABEL_CELLS || own.len() < 2 {
            return None;
        }
        let neighbours = nearest(&points.select(members), neighbours_for(perplexity), tick);
        let used = allowed(perplexity, neighbours.k);
        let scale = |index: f64| ((index - 1.0) / (own.len() - 1) as f64).clamp(0.0, 1.0);
        let sum: f64 = lisi(&neighbours, &own, used).into_iter().map(scale).sum();
        Some((sum, members.len(), used < perplexity))
    });
    let (mut sum, mut cells, mut cut) = (0.0, 0, 0);
    let mut left_out = Vec::new();
    for (name, found) in labels.names.iter().zip(found) {
        match found {
            Some((own, size, is_cut)) => {
                sum += own;
                cells += size;
                cut += usize::from(is_cut);
            }
            None => left_out.push(name.as_str()),
        }
    }
    let why = format!("fewer than {LABEL_CELLS} cells, or only one batch");
    if cells == 0 {
        return Score::missing(format!("no label has {LABEL_CELLS} cells and two batches"));
    }
    let mut score = Score::number(sum / cells as f64);
    if let Some(note) = omission(&left_out, &why) {
        score = score.note(note);
    }
    match cut {
        0 => score,
        _ => score.note(format!(
            "perplexity below {perplexity} (a third of the neighbours) in {cut} of {} labels with fewer than {} cells",
            labels.len() - left_out.len(),
            neighbours_for(perplexity) + 1
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cases;

    fn both(name: &str) -> (Score, Score) {
        let (points, labels, batches) = cases::labels_and_batches(name);
        let neighbours = nearest(&points, neighbours_for(30.0), &|_| ());
        (clisi(&neighbours, &labels, 30.0), ilisi(&neighbours, &batches, 30.0))
    }

    #[test]
    fn b11_does_not_depend_on_the_unit() {
        let (label, batch) = both("b11_lisi_unit.h5ad");
        let (label, batch) = (label.value.unwrap(), batch.value.unwrap());
        assert!((label - 0.654734).abs() < 1e-3, "{label}");
        assert!((batch - 0.881107).abs() < 1e-3, "{batch}");
        for name in ["b11_lisi_x1e6.h5ad", "b11_lisi_x1em6.h5ad"] {
            let (other_label, other_batch) = both(name);
            assert!((other_label.value.unwrap() - label).abs() < 1e-6, "{name}");
            assert!((other_batch.value.unwrap() - batch).abs() < 1e-6, "{name}");
        }
    }

    #[test]
    fn b05_cuts_the_perplexity_with_the_neighbours() {
        let (label, batch) = both("b05_tiny_24_cells.h5ad");
        assert!((label.value.unwrap() - 0.99).abs() < 0.01, "{label:?}");
        assert!((0.84..=0.89).contains(&batch.value.unwrap()), "{batch:?}");
        assert_eq!(label.notes, ["perplexity 7 for 23 neighbours"]);
    }

    fn list(k: usize, distances: &[f32]) -> Neighbours {
        let indices = (0..distances.len()).map(|entry| (entry % k) as u32).collect();
        Neighbours {
            k,
            indices,
            distances: distances.to_vec(),
            search: super::super::neighbours::Search::Exact,
        }
    }

    #[test]
    fn where_no_weights_have_the_entropy_they_are_equal() {
        let classes = Classes::of(&["a", "b", "a", "b"]);
        // All equally near; four neighbours for a perplexity of nine; ties of two when one neighbour is to be seen.
        for (row, perplexity, expected) in [
            ([0.0f32; 4], 2.0, 2.0),
            ([5.0; 4], 2.0, 2.0),
            ([1.0, 2.0, 3.0, 4.0], 9.0, 2.0),
            ([1.0, 1.0, 3.0, 4.0], 1.0, 2.0),
            ([1.0, 2.0, 3.0, 4.0], 1.0, 1.0),
            ([f32::INFINITY; 4], 2.0, 2.0),
        ] {
            let found = lisi(&list(4, &row.repeat(4)), &classes, perplexity);
            assert!(found.iter().all(|index| (index - expected).abs() < 1e-9), "{row:?} {found:?}");
        }
    }

    #[test]
    fn the_weights_have_the_entropy_of_the_perplexity() {
        let mut random = fastrand::Rng::with_seed(3);
        for scale in [1e-30f32, 1e-3, 1.0, 1e30] {
            for spread in [0.0f32, 1.0, 12.0] {
                let row: Vec<f32> = (0..89).map(|_| scale * (spread * random.f32()).exp()).collect();
                let mut weights = Vec::new();
                weigh(&row, 30f64.ln(), &mut weights);
                let sum: f64 = weights.iter().sum();
                let entropy: f64 =
                    weights.iter().filter(|w| **w > 0.0).map(|w| -(w / sum) * (w / sum).ln()).sum();
                let expected = if spread == 0.0 { 89f64.ln() } else { 30f64.ln() };
                assert!((entropy - expected).abs() < 1e-9, "{scale} {spread}: {entropy}");
            }
        }
    }

    #[test]
    fn too_little_to_tell_is_na() {
        let points = Points::new((0..20).map(|value| value as f32).collect(), 1);
        let one = Classes::of(&["a"; 20]);
        let two = Classes::of(&["a", "b"].repeat(10));
        let neighbours = nearest(&points, 89, &|_| ());
        assert_eq!(clisi(&neighbours, &one, 30.0).value, None);
        assert_eq!(ilisi(&neighbours, &one, 30.0).notes, ["all cells are of one batch"]);
        assert!(clisi(&neighbours, &two, 30.0).value.is_some());
        for cells in [0, 1, 2, 6] {
            let some: Vec<usize> = (0..cells).collect();
            let points = points.select(&some);
            let two = two.select(&some);
            let neighbours = nearest(&points, 89, &|_| ());
            assert_eq!(clisi(&neighbours, &two, 30.0).value, None);
            assert_eq!(cilisi(&points, &two, &two, 30.0, &|_| ()).value, None);
            assert_eq!(lisi(&neighbours, &two, 30.0).len(), cells);
        }
    }

    #[test]
    fn cilisi_looks_within_labels() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut values, mut labels, mut batches) = (Vec::new(), Vec::new(), Vec::new());
        for cell in 0..320 {
            // "mixed" has its batches together, "apart" far from each other, "small" and "single" cannot be scored.
            let (label, batch) = match cell {
                0..150 => ("mixed", cell % 2),
                150..300 => ("apart", cell % 2),
                300..308 => ("small", cell % 2),
                _ => ("single", 0),
            };
            let shift = if label == "apart" { 1000.0 * batch as f32 } else { 0.0 };
            values.extend([random.f32() + shift, random.f32()]);
            labels.push(label);
            batches.push(if batch == 0 { "x" } else { "y" });
        }
        let points = Points::new(values, 2);
        let (labels, batches) = (Classes::of(&labels), Classes::of(&batches));
        let score = cilisi(&points, &labels, &batches, 20.0, &|_| ());
        assert_eq!(
            score.notes,
            ["2 labels left out (fewer than 10 cells, or only one batch): single, small"]
        );
        let of = |label: &str| {
            let cells: Vec<usize> =
                (0..300).filter(|&cell| labels.names[labels.codes[cell] as usize] == label).collect();
            let own = batches.select(&cells);
            let score = cilisi(&points.select(&cells), &labels.select(&cells), &own, 20.0, &|_| ());
            score.value.unwrap()
        };
        assert!(of("apart") < 0.01 && of("mixed") > 0.8, "{} {}", of("apart"), of("mixed"));
        assert!((score.value.unwrap() - 0.5 * (of("apart") + of("mixed"))).abs() < 1e-12);
    }
}
