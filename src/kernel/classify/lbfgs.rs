//! Minimum of a smooth function of many variables by L-BFGS.
//!
//! Nocedal & Wright, Numerical Optimization (2006), algorithm 7.5; the step is found by bisection between the
//! conditions of Armijo and of (weak) Wolfe, as Lewis & Overton (2013) do.

/// Steps whose curvature is remembered.
const MEMORY: usize = 10;

/// Part of the expected decrease that a step has to give.
const DECREASE: f64 = 1e-4;

/// Part of the slope that may be left after a step.
const CURVATURE: f64 = 0.9;

/// Trials for one step.
const TRIALS: usize = 40;

/// Steps in a row without a decrease beyond rounding, after which there is none to come.
const STALLED: usize = 5;

/// Where to stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub iterations: usize,
    /// Largest entry of the gradient by size.
    pub gradient: f64,
}

/// Where it stopped.
#[derive(Debug, Clone)]
pub(super) struct Minimum {
    pub point: Vec<f64>,
    pub iterations: usize,
    /// Largest entry of the gradient by size.
    pub gradient: f64,
}

/// A step and what it changed about the gradient.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    /// Inverse of their product.
    inverse: f64,
}

/// Minimises `objective`, which writes the gradient into its second argument and returns the value.
///
/// Stops at the limits, or where rounding hides any further decrease.
pub(super) fn minimise(
    start: Vec<f64>,
    limits: Limits,
    objective: &mut dyn FnMut(&[f64], &mut [f64]) -> f64,
) -> Minimum {
    let mut point = start;
    let mut gradient = vec![0.0; point.len()];
    let mut value = objective(&point, &mut gradient);
    let mut pairs: Vec<Pair> = Vec::with_capacity(MEMORY);
    let (mut iterations, mut stalled) = (0, 0);
    while iterations < limits.iterations && stalled < STALLED && largest(&gradient) > limits.gradient {
        let direction = direction(&pairs, &gradient);
        let Some(next) = search(&point, value, &gradient, &direction, objective, pairs.is_empty()) else {
            if pairs.is_empty() {
                break;
            }
            // The remembered curvature may be what misleads.
            pairs.clear();
            continue;
        };
        let step: Vec<f64> = next.point.iter().zip(&point).map(|(new, old)| new - old).collect();
        let change: Vec<f64> = next.gradient.iter().zip(&gradient).map(|(new, old)| new - old).collect();
        let product = dot(&step, &change);
        if product > f64::EPSILON * dot(&change, &change) {
            if pairs.len() == MEMORY {
                pairs.remove(0);
            }
            pairs.push(Pair { step, change, inverse: 1.0 / product });
        }
        let decreased = value - next.value > 4.0 * f64::EPSILON * value.abs();
        stalled = if decreased { 0 } else { stalled + 1 };
        (point, value, gradient) = (next.point, next.value, next.gradient);
        iterations += 1;
    }
    Minimum { iterations, gradient: largest(&gradient), point }
}

/// The quasi-Newton direction: minus the gradient times what the pairs know of the inverse Hessian.
fn direction(pairs: &[Pair], gradient: &[f64]) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|entry| -entry).collect();
    let mut shares = Vec::with_capacity(pairs.len());
    for pair in pairs.iter().rev() {
        let share = pair.inverse * dot(&pair.step, &direction);
        add(&mut direction, -share, &pair.change);
        shares.push(share);
    }
    if let Some(last) = pairs.last() {
        let scale = 1.0 / (last.inverse * dot(&last.change, &last.change));
        direction.iter_mut().for_each(|entry| *entry *= scale);
    }
    for (pair, share) in pairs.iter().zip(shares.into_iter().rev()) {
        let other = pair.inverse * dot(&pair.change, &direction);
        add(&mut direction, share - other, &pair.step);
    }
    direction
}

struct Trial {
    point: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// A step along `direction` that both conditions hold for; `None` where there is none that rounding lets see.
fn search(
    point: &[f64],
    value: f64,
    gradient: &[f64],
    direction: &[f64],
    objective: &mut dyn FnMut(&[f64], &mut [f64]) -> f64,
    first: bool,
) -> Option<Trial> {
    let slope = dot(gradient, direction);
    if slope.is_nan() || slope >= 0.0 {
        return None;
    }
    let mut length = if first { 1.0 / dot(direction, direction).sqrt().max(1.0) } else { 1.0 };
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let rounding = f64::EPSILON * value.abs();
    for _ in 0..TRIALS {
        let mut trial = Trial { point: point.to_vec(), value: 0.0, gradient: vec![0.0; point.len()] };
        add(&mut trial.point, length, direction);
        trial.value = objective(&trial.point, &mut trial.gradient);
        let enough = trial.value <= value + DECREASE * length * slope + rounding;
        if !enough {
            high = length;
        } else if dot(&trial.gradient, direction) < CURVATURE * slope {
            low = length;
        } else {
            return Some(trial);
        }
        length = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * low };
    }
    None
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(target: &mut [f64], factor: f64, values: &[f64]) {
    target.iter_mut().zip(values).for_each(|(target, value)| *target += factor * value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curved_valley_is_followed_to_its_lowest_point() {
        // Rosenbrock's function in ten dimensions: minimum 0 where all are 1.
        let mut evaluations = 0;
        let mut objective = |x: &[f64], gradient: &mut [f64]| {
            evaluations += 1;
            gradient.fill(0.0);
            let mut value = 0.0;
            for i in 0..x.len() - 1 {
                let (a, b) = (x[i + 1] - x[i] * x[i], 1.0 - x[i]);
                value += 100.0 * a * a + b * b;
                gradient[i] += -400.0 * x[i] * a - 2.0 * b;
                gradient[i + 1] += 200.0 * a;
            }
            value
        };
        // From x[0] below 0 one may end in its other minimum.
        let start = vec![1.2, 1.0, -0.5, 0.3, 0.0, 2.0, -1.0, 0.7, 0.1, -0.4];
        let minimum = minimise(start, Limits { iterations: 500, gradient: 1e-8 }, &mut objective);
        assert!(minimum.gradient <= 1e-8 && minimum.iterations < 200, "{minimum:?}");
        assert!(minimum.point.iter().all(|x| (x - 1.0).abs() < 1e-7), "{minimum:?}");
        assert!(evaluations < 2 * minimum.iterations, "{evaluations}");
    }

    #[test]
    fn it_stops_at_the_limit_of_iterations_and_at_a_minimum() {
        let mut slow = |x: &[f64], gradient: &mut [f64]| {
            gradient.iter_mut().zip(x).enumerate().for_each(|(i, (g, x))| *g = 10f64.powi(i as i32) * x);
            x.iter().enumerate().map(|(i, x)| 0.5 * 10f64.powi(i as i32) * x * x).sum()
        };
        let stopped = minimise(vec![1.0; 8], Limits { iterations: 3, gradient: 0.0 }, &mut slow);
        assert_eq!(stopped.iterations, 3);
        let there = minimise(vec![0.0; 8], Limits { iterations: 3, gradient: 0.0 }, &mut slow);
        assert_eq!(there.iterations, 0);
    }
}
