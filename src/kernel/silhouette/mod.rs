//! Euclidean silhouettes: how much nearer a cell is to its own class than to the next one.

mod distances;

use super::neighbours::Tick;
use super::points::{Classes, Points};
use super::sample::distinct;
use super::score::Score;
use distances::silhouettes;

/// Most cells whose silhouettes are all computed; of more, a sample is.
pub const EXACT_UP_TO: usize = 200_000;

/// Cells of that sample.
const SAMPLED: usize = 50_000;

/// Floating point operations up to which products are of float64.
const DOUBLE_UP_TO: f64 = 1e12;

const SEED: u64 = 0x7369_6c68;

/// The silhouette of every cell: (b - a) / max(a, b), where a is its mean Euclidean distance to the other cells of its
/// class and b the least mean distance to the cells of another class.
///
/// -1 to 1, higher = nearer to its own class; 0 for the only cell of a class and where a = b = 0. As
/// `sklearn.metrics.silhouette_samples` (1.9.1). Empty where that has no definition: fewer than 2 classes, or as many as
/// cells.
pub fn samples(points: &Points, classes: &Classes) -> Vec<f64> {
    match undefined(points, classes) {
        Some(_) => Vec::new(),
        None => of_cells(points, classes, &(0..points.len() as u32).collect::<Vec<_>>(), &|_| ()),
    }
}

/// Average silhouette width: the mean of [`samples`].
///
/// -1 to 1, higher = classes further apart. As `sklearn.metrics.silhouette_score` (1.9.1, metric "euclidean"). NA with
/// fewer than 2 classes, or as many as cells. Among more than [`EXACT_UP_TO`] cells, the silhouettes of 50,000 sampled
/// ones, drawn from each class by its size, are computed against all cells; a note says so, and the standard error.
/// Memory beyond the points: about 40 bytes a cell and 3 MB a thread; with a sample, the points once more.
pub fn asw(points: &Points, classes: &Classes, tick: Tick<'_>) -> Score {
    asw_with(points, classes, EXACT_UP_TO, SAMPLED, tick)
}

fn asw_with(points: &Points, classes: &Classes, exact_up_to: usize, sampled: usize, tick: Tick<'_>) -> Score {
    if let Some(reason) = undefined(points, classes) {
        tick(1.0);
        return Score::missing(reason);
    }
    let cells = points.len();
    if cells > exact_up_to {
        return estimate(points, classes, sampled, tick);
    }
    let widths = of_cells(points, classes, &(0..cells as u32).collect::<Vec<_>>(), tick);
    Score::number(widths.iter().sum::<f64>() / cells as f64)
}

fn undefined(points: &Points, classes: &Classes) -> Option<String> {
    match (classes.len(), points.len()) {
        (_, 0) => Some("there are no cells".to_owned()),
        (0 | 1, _) => Some("all cells are of one class; a silhouette compares at least two".to_owned()),
        (classes, cells) if classes >= cells => {
            Some("every cell is a class of its own; a silhouette needs classes of several cells".to_owned())
        }
        _ => None,
    }
}

fn of_cells(points: &Points, classes: &Classes, cells: &[u32], tick: Tick<'_>) -> Vec<f64> {
    let operations = 2.0 * cells.len() as f64 * points.len() as f64 * points.dims() as f64;
    match operations <= DOUBLE_UP_TO {
        true => silhouettes::<f64>(points, classes, cells, tick),
        false => silhouettes::<f32>(points, classes, cells, tick),
    }
}

/// The mean over classes, weighed by their sizes, of the mean silhouette of cells sampled from each.
fn estimate(points: &Points, classes: &Classes, sampled: usize, tick: Tick<'_>) -> Score {
    let all = points.len() as f64;
    let mut cells = Vec::new();
    let mut counts = Vec::new();
    for (members, seed) in classes.members().iter().zip(SEED..) {
        let share = (members.len() as f64 * sampled as f64 / all).round() as usize;
        let drawn = distinct(members.len(), share.max(2), seed);
        counts.push((members.len() as f64, drawn.len()));
        cells.extend(drawn.iter().map(|&drawn| members[drawn as usize] as u32));
    }
    let widths = of_cells(points, classes, &cells, tick);
    let (mut mean, mut variance, mut rest) = (0.0, 0.0, &widths[..]);
    for (size, count) in counts {
        let (own, others) = rest.split_at(count);
        rest = others;
        let (share, drawn) = (size / all, count as f64);
        let own_mean = own.iter().sum::<f64>() / drawn;
        mean += share * own_mean;
        if count > 1 {
            let spread = own.iter().map(|width| (width - own_mean).powi(2)).sum::<f64>() / (drawn - 1.0);
            variance += share * share * spread / drawn * (1.0 - drawn / size);
        }
    }
    Score::number(mean).note(format!(
        "silhouette of {} sampled cells, each against all {}; standard error {:.1e}",
        cells.len(),
        points.len(),
        variance.sqrt()
    ))
}

#[cfg(test)]
mod tests;
