//! A straight line through few, noisy measurements, and how far its continuation can be trusted.

/// A measured value and what it grows with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub size: f64,
    pub value: f64,
}

/// What is known of the scatter before anything is measured.
#[derive(Debug, Clone, Copy)]
pub struct Prior {
    /// Relative standard deviation of one measurement.
    pub scatter: f64,
    /// The exponent of growth may be wrong by this much beyond what was measured.
    pub exponent: f64,
}

/// How many measurements the prior is worth.
const PRIOR_WEIGHT: f64 = 4.0;

/// A value between two bounds, inside which it lies in nine cases of ten.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Range {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
}

impl Range {
    /// A value that is known.
    pub fn exact(value: f64) -> Range {
        Range { low: value, middle: value, high: value }
    }

    /// Of values that are wrong together, such as the tasks of one run.
    pub fn plus(self, other: Range) -> Range {
        Range { low: self.low + other.low, middle: self.middle + other.middle, high: self.high + other.high }
    }

    /// The larger of two, bound by bound.
    pub fn max(self, other: Range) -> Range {
        Range {
            low: self.low.max(other.low),
            middle: self.middle.max(other.middle),
            high: self.high.max(other.high),
        }
    }

    /// Bounds that are further away by a factor.
    pub fn widened(self, factor: f64) -> Range {
        Range { low: self.low / factor, high: self.high * factor, ..self }
    }

    pub fn times(self, factor: f64) -> Range {
        Range { low: self.low * factor, middle: self.middle * factor, high: self.high * factor }
    }
}

/// The value at a size: `a + b size` with `a, b >= 0`, fitted with relative errors (weights 1/value²). `None`: no point.
///
/// The bounds are the line's 90 % prediction interval (Student's t) on the logarithm, with the scatter of the points
/// pooled with the prior; beyond the largest size measured, the law itself is trusted less. Points of one size alone say
/// nothing of growth: then the bounds reach from no growth to proportional growth.
pub fn predict(points: &[Point], size: f64, prior: Prior) -> Option<Range> {
    let points: Vec<Point> = points.iter().copied().filter(|point| point.value > 0.0).collect();
    let largest = points.iter().map(|point| point.size).reduce(f64::max)?;
    let smallest = points.iter().map(|point| point.size).fold(f64::INFINITY, f64::min);
    let sums = Sums::of(&points);
    // Sizes that differ by less say nothing of growth.
    if largest - smallest <= 0.05 * largest {
        return Some(of_one_size(&sums, largest, size, points.len(), prior));
    }
    let (fixed, growth) = sums.line();
    let middle = fixed + growth * size;
    let misfit: f64 =
        points.iter().map(|point| ((fixed + growth * point.size) / point.value - 1.0).powi(2)).sum();
    let freedom = PRIOR_WEIGHT + points.len() as f64 - 2.0;
    let scatter = ((misfit + PRIOR_WEIGHT * prior.scatter.powi(2)) / freedom).sqrt();
    let relative = scatter * (1.0 + sums.variance_at(size) / (middle * middle)).sqrt();
    let beyond = (size / largest).max(1.0).powf(prior.exponent);
    let factor = (student_90(freedom) * relative).exp() * beyond;
    Some(Range::exact(middle).widened(factor))
}

/// The fixed part and the growth of points of two sizes at least.
pub fn line(points: &[Point]) -> Option<(f64, f64)> {
    let first = points.first()?.size;
    points.iter().any(|point| point.size != first).then(|| Sums::of(points).line())
}

/// What points of one size say of another.
fn of_one_size(sums: &Sums, known: f64, size: f64, count: usize, prior: Prior) -> Range {
    let value = sums.mean();
    let ratio = if known > 0.0 { size / known } else { 1.0 };
    let proportional = value * ratio;
    let relative = prior.scatter * (1.0 + 1.0 / count as f64).sqrt();
    let factor = (student_90(PRIOR_WEIGHT) * relative).exp();
    let (low, high) = (value.min(proportional), value.max(proportional));
    Range { low: low / factor, middle: (low * high).sqrt(), high: high * factor }
}

/// The sums that a weighted line is made from.
struct Sums {
    weight: f64,
    size: f64,
    size_squared: f64,
    value: f64,
    size_value: f64,
}

impl Sums {
    fn of(points: &[Point]) -> Sums {
        let mut sums = Sums { weight: 0.0, size: 0.0, size_squared: 0.0, value: 0.0, size_value: 0.0 };
        for Point { size, value } in points {
            let weight = 1.0 / (value * value);
            sums.weight += weight;
            sums.size += weight * size;
            sums.size_squared += weight * size * size;
            sums.value += weight * value;
            sums.size_value += weight * size * value;
        }
        sums
    }

    fn determinant(&self) -> f64 {
        self.weight * self.size_squared - self.size * self.size
    }

    fn mean(&self) -> f64 {
        self.value / self.weight
    }

    /// The fixed part and the growth, neither below 0.
    fn line(&self) -> (f64, f64) {
        let growth = (self.weight * self.size_value - self.size * self.value) / self.determinant();
        let fixed = (self.value - growth * self.size) / self.weight;
        match (fixed < 0.0, growth < 0.0) {
            (true, _) => (0.0, self.size_value / self.size_squared),
            (_, true) => (self.mean(), 0.0),
            _ => (fixed, growth),
        }
    }

    /// The variance of the line at a size, for a relative scatter of 1.
    fn variance_at(&self, size: f64) -> f64 {
        (self.size_squared - 2.0 * size * self.size + size * size * self.weight) / self.determinant()
    }
}

/// The 95 % quantile of Student's t (Hill 1970, first terms), so that nine of ten lie between it and its negative.
fn student_90(freedom: f64) -> f64 {
    const NORMAL: f64 = 1.644_853_6;
    let cubed = NORMAL.powi(3);
    let first = (cubed + NORMAL) / 4.0;
    let second = (5.0 * NORMAL.powi(5) + 16.0 * cubed + 3.0 * NORMAL) / 96.0;
    NORMAL + first / freedom + second / (freedom * freedom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Prior = Prior { scatter: 0.1, exponent: 0.1 };

    fn points(values: &[(f64, f64)]) -> Vec<Point> {
        values.iter().map(|&(size, value)| Point { size, value }).collect()
    }

    #[test]
    fn a_line_is_found_again_and_trusted_less_further_away() {
        let measured = points(&[(100.0, 7.0), (300.0, 11.0), (1000.0, 25.0)]);
        let near = predict(&measured, 1000.0, TIME).unwrap();
        let far = predict(&measured, 10_000.0, TIME).unwrap();
        assert!((near.middle - 25.0).abs() < 1e-9 && (far.middle - 205.0).abs() < 1e-6);
        assert!(near.low < 25.0 && 25.0 < near.high);
        assert!(far.high / far.middle > near.high / near.middle);
    }

    #[test]
    fn neither_part_is_negative() {
        let falling = predict(&points(&[(100.0, 5.0), (200.0, 4.0)]), 1e4, TIME).unwrap();
        assert!(falling.middle > 4.0 && falling.middle < 5.0, "{falling:?}");
        let steep = predict(&points(&[(100.0, 1.0), (200.0, 4.0)]), 0.0, TIME).unwrap();
        assert_eq!(steep.middle, 0.0);
    }

    #[test]
    fn one_size_says_nothing_of_growth() {
        let range = predict(&points(&[(100.0, 5.0), (100.0, 5.0)]), 400.0, TIME).unwrap();
        assert!(range.low < 5.0 && range.high > 20.0 && (range.middle - 10.0).abs() < 1e-9, "{range:?}");
        let same = predict(&points(&[(100.0, 5.0)]), 100.0, TIME).unwrap();
        assert!(same.high < 7.5 && same.low > 3.3, "{same:?}");
        assert_eq!(predict(&[], 1.0, TIME), None);
    }

    /// Numbers that look like chance, the same in each run.
    fn normal(state: &mut u64) -> f64 {
        let mut uniform = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((*state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
    }

    #[test]
    fn nine_of_ten_lie_between_the_bounds() {
        let mut state = 7;
        let mut inside = 0;
        for _ in 0..1000 {
            let mut noisy =
                |size: f64| Point { size, value: (3.0 + 0.01 * size) * (1.0 + 0.1 * normal(&mut state)) };
            let measured = [noisy(300.0), noisy(1000.0)];
            let truth = noisy(10_000.0).value;
            let range = predict(&measured, 10_000.0, TIME).unwrap();
            inside += usize::from((range.low..=range.high).contains(&truth));
        }
        assert!((880..=1000).contains(&inside), "{inside} of 1000");
    }

    #[test]
    fn student_is_that_of_the_tables() {
        for (freedom, quantile) in [(4.0, 2.132), (10.0, 1.812), (30.0, 1.697)] {
            assert!((student_90(freedom) - quantile).abs() < 0.02, "{freedom}");
        }
    }
}
