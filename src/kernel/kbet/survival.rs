//! The chi-square distribution.

/// Probability that a chi-square variable with `freedom` degrees of freedom exceeds `statistic`.
///
/// Q(freedom / 2, statistic / 2), the regularised upper incomplete gamma function: by its series below the bulk of the
/// distribution, by its continued fraction above. Agrees with `scipy.special.chdtrc` to 1e-12.
pub(super) fn survival(freedom: usize, statistic: f64) -> f64 {
    let (shape, x) = (0.5 * freedom as f64, 0.5 * statistic);
    if x <= 0.0 {
        return 1.0;
    }
    let front = (shape * x.ln() - x - ln_gamma(freedom)).exp();
    match x < shape + 1.0 {
        true => 1.0 - front * lower_series(shape, x),
        false => front * upper_fraction(shape, x),
    }
}

/// Sum of x^i / (shape (shape + 1) ... (shape + i)).
fn lower_series(shape: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut next) = (1.0 / shape, 1.0 / shape, shape);
    while term > sum * 1e-17 {
        next += 1.0;
        term *= x / next;
        sum += term;
    }
    sum
}

/// Legendre's continued fraction of the upper incomplete gamma function, by the modified method of Lentz.
fn upper_fraction(shape: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - shape;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / b);
    let mut value = d;
    for index in 1..100_000 {
        let a = -f64::from(index) * (f64::from(index) - shape);
        b += 2.0;
        d = 1.0 / nonzero(a * d + b, TINY);
        c = nonzero(b + a / c, TINY);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}

fn nonzero(value: f64, tiny: f64) -> f64 {
    if value.abs() < tiny { tiny } else { value }
}

/// Logarithm of the gamma function of half a whole number.
fn ln_gamma(doubled: usize) -> f64 {
    let (first, start) = match doubled % 2 {
        0 => (1.0, 0.0),
        _ => (0.5, 0.5 * std::f64::consts::PI.ln()),
    };
    let factors = (doubled - 1) / 2;
    start + (0..factors).map(|factor| (first + factor as f64).ln()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_scipy() {
        // freedom, statistic, scipy.special.chdtrc(freedom, statistic)
        for (freedom, statistic, expected) in [
            (1, 1e-06, 0.9992021155721779),
            (1, 0.1, 0.7518296340458492),
            (1, 1.0, 0.31731050786291115),
            (1, 3.84, 0.05004352124870519),
            (1, 10.0, 0.001565402258002549),
            (1, 60.0, 9.485737571073857e-15),
            (2, 0.01, 0.9950124791926823),
            (2, 5.99, 0.05003662708658629),
            (2, 50.0, 1.3887943864964e-11),
            (3, 0.5, 0.9188914116546758),
            (3, 3.0, 0.3916251762710877),
            (3, 7.81, 0.05010605635000589),
            (3, 30.0, 1.3800570312932553e-06),
            (7, 1.0, 0.9948285365165155),
            (7, 6.9, 0.43936566042362757),
            (7, 14.07, 0.049950250317479475),
            (7, 14.9, 0.03730283727921726),
            (10, 3.0, 0.9814240637778593),
            (10, 11.0, 0.3575180024279255),
            (10, 18.3, 0.050109061411462506),
            (49, 20.0, 0.9999245464953185),
            (49, 49.5, 0.45315727405377454),
            (49, 66.3, 0.05033040595915702),
            (49, 150.0, 3.5574159128318413e-12),
            (250, 180.0, 0.9997214238747563),
            (250, 250.0, 0.488105320047829),
            (250, 287.9, 0.04992235771500825),
            (250, 400.0, 5.040856547317286e-09),
            (999, 800.0, 0.9999990897770585),
            (999, 999.0, 0.4940498779585279),
            (999, 1073.6, 0.05009387345217517),
            (999, 1300.0, 3.398217496515481e-10),
        ] {
            let found = survival(freedom, statistic);
            let allowed = 1e-12 * f64::max(1e-3, expected);
            assert!((found - expected).abs() < allowed, "{freedom} {statistic}: {found} {expected}");
        }
        assert_eq!(survival(3, 0.0), 1.0);
        assert_eq!(survival(3, 1e6), 0.0);
    }
}
