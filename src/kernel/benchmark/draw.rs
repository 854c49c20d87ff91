//! Cells for the batch metrics: a draw that keeps the shares of labels and batches.

use crate::kernel::points::Classes;
use crate::kernel::sample;

/// Seed of the draw, the known Python command's.
pub const SEED: u64 = 17;

/// At most `most` cells (0: all), drawn within every combination of label and batch in proportion to its size, ascending.
///
/// Every combination keeps a cell while there is room; with more combinations than cells the largest keep one. Cells left
/// over by rounding go to the combinations with the largest remainders.
pub fn stratified(labels: &Classes, batches: &Classes, most: usize, seed: u64) -> Vec<usize> {
    let cells = labels.codes.len();
    if most == 0 || cells <= most {
        return (0..cells).collect();
    }
    let strata = strata(labels, batches);
    let sizes: Vec<usize> = strata.iter().map(Vec::len).collect();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut drawn: Vec<usize> = strata
        .into_iter()
        .zip(quotas(&sizes, most))
        .flat_map(|(mut members, quota)| {
            sample::keep(&mut members, quota, &mut random);
            members
        })
        .collect();
    drawn.sort_unstable();
    drawn
}

/// The cells of every combination of label and batch that occurs, in the order of codes.
fn strata(labels: &Classes, batches: &Classes) -> Vec<Vec<usize>> {
    let mut strata = vec![Vec::new(); labels.len() * batches.len()];
    for (cell, (&label, &batch)) in labels.codes.iter().zip(&batches.codes).enumerate() {
        strata[label as usize * batches.len() + batch as usize].push(cell);
    }
    strata.retain(|members| !members.is_empty());
    strata
}

/// How many to draw of each stratum; they add up to `most`, which is less than the sum of `sizes`.
fn quotas(sizes: &[usize], most: usize) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    // Exact fractions: products stay below 2^128.
    let share = |size: usize| {
        let product = size as u128 * most as u128;
        ((product / total as u128) as usize, product % total as u128)
    };
    let mut quotas: Vec<usize> = sizes.iter().map(|&size| share(size).0.max(1)).collect();
    let mut by_size: Vec<usize> = (0..sizes.len()).collect();
    by_size.sort_by_key(|&stratum| std::cmp::Reverse(sizes[stratum]));
    if sizes.len() > most {
        quotas.fill(0);
        for &stratum in &by_size[..most] {
            quotas[stratum] = 1;
        }
        return quotas;
    }
    let mut drawn: usize = quotas.iter().sum();
    // Strata that were lifted to one cell took more than their share: the largest give it back.
    for &stratum in by_size.iter().cycle() {
        if drawn <= most {
            break;
        }
        if quotas[stratum] > 1 {
            quotas[stratum] -= 1;
            drawn -= 1;
        }
    }
    let mut by_remainder: Vec<usize> = (0..sizes.len()).collect();
    by_remainder.sort_by_key(|&stratum| std::cmp::Reverse(share(sizes[stratum]).1));
    for &stratum in by_remainder.iter().cycle() {
        if drawn >= most {
            break;
        }
        if quotas[stratum] < sizes[stratum] {
            quotas[stratum] += 1;
            drawn += 1;
        }
    }
    quotas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_keeps_its_share() {
        assert_eq!(quotas(&[600, 300, 100], 100), [60, 30, 10]);
        assert_eq!(quotas(&[997, 1, 1, 1], 10), [7, 1, 1, 1]);
        assert_eq!(quotas(&[5, 4, 3], 2), [1, 1, 0]);
        for most in 1..30 {
            assert_eq!(quotas(&[10, 7, 7, 5, 1], most).iter().sum::<usize>(), most);
        }
    }

    #[test]
    fn the_draw_is_without_repetition_and_the_same_every_time() {
        let labels = Classes::of(&(0..100).map(|cell| (cell % 3).to_string()).collect::<Vec<_>>());
        let batches = Classes::of(&(0..100).map(|cell| (cell % 2).to_string()).collect::<Vec<_>>());
        let mut drawn = stratified(&labels, &batches, 30, SEED);
        assert_eq!(drawn, stratified(&labels, &batches, 30, SEED));
        assert_ne!(drawn, stratified(&labels, &batches, 30, SEED + 1));
        drawn.dedup();
        assert_eq!(drawn.len(), 30);
        assert_eq!(stratified(&labels, &batches, 0, SEED).len(), 100);
    }
}
