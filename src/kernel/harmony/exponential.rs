//! The exponential of float32 numbers, written so that compilers turn a loop of it into vector instructions.

use std::f32::consts::LOG2_E;

/// ln 2 in two parts: the first has few digits, so that its products with whole numbers are exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// Added and taken away again, it rounds a number below 2^22 to the next whole one.
const ROUNDER: f32 = 12_582_912.0;

/// Below, the result is smaller than the smallest normal number.
const LEAST: f32 = -87.0;

/// e to the power of `x`, for `x` up to 80; what is below -87 counts as -87. Off by less than 3e-7 of itself.
#[inline(always)]
pub(super) fn exponential(x: f32) -> f32 {
    let x = if x < LEAST { LEAST } else { x };
    let power = (x * LOG2_E + ROUNDER) - ROUNDER;
    let rest = (x - power * LN_2_HIGH) - power * LN_2_LOW;
    // The Taylor series: the rest is at most half of ln 2, the first term left out 1e-8 there.
    let mut series = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = series * rest + coefficient;
    }
    // Two to a whole power is that power in the exponent's bits.
    series * f32::from_bits(((power as i32 + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_exponential_to_float32_rounding() {
        for step in -86_000..80_000 {
            let x = step as f32 / 1000.0;
            let error = f64::from(exponential(x)) / f64::from(x).exp() - 1.0;
            assert!(error.abs() < 3e-7, "{x}: {error}");
        }
        assert_eq!(exponential(0.0), 1.0);
        assert_eq!(exponential(f32::NEG_INFINITY), exponential(-87.0));
    }
}
