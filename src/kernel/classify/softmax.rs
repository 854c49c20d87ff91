//! Exponentials of rows of scores.

use std::f64::consts::LOG2_E;

/// Below this an exponential is as good as zero: it is the smallest that is computed.
const LEAST: f64 = -708.0;

/// Adding it to a number of moderate size leaves the nearest integer in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// ln 2 in two parts: products of the first with small integers are exact.
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 1 / n! from 13 down to 2: the series that is left of the exponential on ±ln 2 / 2, to the last bit but one.
const SERIES: [f64; 12] = [
    1.605_904_383_682_161_3e-10,
    2.087_675_698_786_81e-9,
    2.505_210_838_544_172e-8,
    2.755_731_922_398_589_3e-7,
    2.755_731_922_398_589_3e-6,
    2.480_158_730_158_73e-5,
    1.984_126_984_126_984e-4,
    1.388_888_888_888_889e-3,
    8.333_333_333_333_333e-3,
    4.166_666_666_666_666_4e-2,
    1.666_666_666_666_666_6e-1,
    0.5,
];

/// The exponential of a number that is not above 0 by more than some hundreds; branches on nothing, so that loops of it
/// become vector instructions.
#[inline(always)]
fn exponential(value: f64) -> f64 {
    let value = if value > LEAST { value } else { LEAST };
    let shifted = value * LOG2_E + ROUND;
    let power = shifted - ROUND;
    let rest = (value - power * LN_2_HIGH) - power * LN_2_LOW;
    let mut sum = SERIES[0];
    for term in &SERIES[1..] {
        sum = sum * rest + term;
    }
    let sum = (sum * rest + 1.0) * rest + 1.0;
    sum * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// Turns a row of scores into probabilities; returns the logarithm of the sum of the scores' exponentials.
#[inline(always)]
pub(super) fn softmax(row: &mut [f64]) -> f64 {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for score in row.iter_mut() {
        *score = exponential(*score - most);
    }
    let sum: f64 = row.iter().sum();
    let inverse = 1.0 / sum;
    for value in row.iter_mut() {
        *value *= inverse;
    }
    most + sum.ln()
}

/// [`softmax`] of many rows at once, which lie transposed: score `row` of class `class` at `class * rows + row`.
///
/// Column by column all rows do the same, so that every loop becomes vector instructions, however few classes there
/// are. Writes the logarithm of the sum of each row's exponentials into `log_sums`, of length `rows`.
#[inline(always)]
pub(super) fn softmax_columns(scores: &mut [f64], log_sums: &mut [f64], scratch: &mut [f64]) {
    let rows = log_sums.len();
    let (most, sums) = scratch[..2 * rows].split_at_mut(rows);
    most.copy_from_slice(&scores[..rows]);
    for column in scores.chunks_exact(rows).skip(1) {
        most.iter_mut()
            .zip(column)
            .for_each(|(most, &score)| *most = if score > *most { score } else { *most });
    }
    sums.fill(0.0);
    for column in scores.chunks_exact_mut(rows) {
        for ((score, sum), most) in column.iter_mut().zip(&mut *sums).zip(&*most) {
            *score = exponential(*score - most);
            *sum += *score;
        }
    }
    for ((log_sum, sum), most) in log_sums.iter_mut().zip(&mut *sums).zip(&*most) {
        *log_sum = most + sum.ln();
        *sum = 1.0 / *sum;
    }
    for column in scores.chunks_exact_mut(rows) {
        column.iter_mut().zip(&*sums).for_each(|(value, inverse)| *value *= inverse);
    }
}

/// `1 / (1 + exp(-score))`, and the logarithm of `1 + exp(score)`.
#[inline(always)]
pub(super) fn sigmoid(score: f64) -> (f64, f64) {
    let small = exponential(-score.abs());
    let probability = if score >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) };
    (probability, score.max(0.0) + small.ln_1p())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_that_of_the_standard_library() {
        for step in -7000..=0 {
            let value = f64::from(step) * 0.1;
            let relative = exponential(value) / value.exp() - 1.0;
            assert!(relative.abs() < 4e-16, "{value}: {relative}");
        }
        assert_eq!(exponential(0.0), 1.0);
        assert!(exponential(-1e300) < 1e-300 && exponential(f64::NEG_INFINITY) < 1e-300);
    }

    #[test]
    fn columns_are_rows_transposed() {
        let rows = [[0.5, -3.0, 2.0], [1e3, 0.0, 1e3], [-5.0, -5.0, -5.0], [0.0, 700.0, -700.0]];
        let mut columns: Vec<f64> = (0..3).flat_map(|class| rows.map(|row| row[class])).collect();
        let mut log_sums = [0.0; 4];
        softmax_columns(&mut columns, &mut log_sums, &mut [0.0; 8]);
        for (position, mut row) in rows.into_iter().enumerate() {
            assert_eq!(softmax(&mut row), log_sums[position]);
            assert_eq!(row, [0, 1, 2].map(|class| columns[class * 4 + position]));
        }
    }

    #[test]
    fn rows_add_up_to_one_at_any_scale() {
        let mut row = [1e4, 1e4, -1e4];
        let log_sum = softmax(&mut row);
        assert_eq!((row[0], row[1]), (0.5, 0.5));
        assert!((log_sum - (1e4 + 2f64.ln())).abs() < 1e-9);
        let (probability, log) = sigmoid(-800.0);
        assert!(probability < 1e-300 && log >= 0.0);
        assert_eq!(sigmoid(0.0), (0.5, 2f64.ln()));
        assert_eq!(sigmoid(900.0), (1.0, 900.0));
    }
}
