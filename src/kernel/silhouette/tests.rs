use super::*;
use crate::kernel::cases;

fn quiet(_: f64) {}

/// The embedding of a case, and the classes in a column.
fn case(name: &str, column: &str) -> (Points, Classes) {
    (cases::points(name), cases::classes(name, column))
}

fn value(points: &Points, classes: &Classes) -> f64 {
    asw(points, classes, &quiet).value.unwrap()
}

fn random(seed: u64, cells: usize, dims: usize, classes: usize, offset: f32) -> (Points, Classes) {
    let mut random = fastrand::Rng::with_seed(seed);
    let labels: Vec<String> = (0..cells).map(|_| format!("c{}", random.usize(..classes))).collect();
    let classes = Classes::of(&labels);
    let values = (0..cells * dims).map(|at| {
        let class = classes.codes[at / dims];
        offset + random.f32() + if class as usize % dims == at % dims { 0.5 } else { 0.0 }
    });
    (Points::new(values.collect(), dims), classes)
}

/// By the definition, in float64.
fn plain(points: &Points, classes: &Classes) -> Vec<f64> {
    let members = classes.members();
    let distance = |a: usize, b: usize| {
        let pairs = points.row(a).iter().zip(points.row(b));
        pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
    };
    let of = |cell: usize| {
        let own = classes.codes[cell] as usize;
        if members[own].len() == 1 {
            return 0.0;
        }
        let sum = |class: usize| members[class].iter().map(|&other| distance(cell, other)).sum::<f64>();
        let a = sum(own) / (members[own].len() - 1) as f64;
        let others = (0..members.len()).filter(|&class| class != own);
        let b = others.map(|class| sum(class) / members[class].len() as f64).fold(f64::INFINITY, f64::min);
        if a.max(b) == 0.0 { 0.0 } else { (b - a) / a.max(b) }
    };
    (0..points.len()).map(of).collect()
}

fn assert_near(ours: &[f64], truth: &[f64], tolerance: f64, what: &str) {
    assert_eq!(ours.len(), truth.len(), "{what}");
    for (cell, (ours, truth)) in ours.iter().zip(truth).enumerate() {
        assert!((ours - truth).abs() <= tolerance, "{what}: cell {cell}: {ours} {truth}");
    }
}

#[test]
fn b01_singletons_are_zero() {
    let (points, classes) = case("b01_silhouette_singleton.h5ad", "cell_type");
    assert_near(&samples(&points, &classes), &[0.99, 0.989_899, 0.0], 1e-6, "b01");
    assert!((value(&points, &classes) - 0.659_966).abs() < 1e-6);
    let (points, classes) = case("b01_silhouette_two_singletons.h5ad", "cell_type");
    assert!((value(&points, &classes) + 0.175_447).abs() < 1e-6);
    assert_eq!(samples(&points, &classes)[38..], [0.0, 0.0]);
}

#[test]
fn b05_b09_and_a18_have_their_values() {
    for (name, column, expected) in [
        ("b05_tiny_24_cells.h5ad", "cell_type", 0.58012),
        ("b09_four_blobs.h5ad", "cell_type", 0.929_958),
        ("b09_four_blobs_shuffled.h5ad", "cell_type", 0.929_958),
        ("a18_unused_categories.h5ad", "cell_type", 0.368_179),
    ] {
        let (points, classes) = case(name, column);
        let value = value(&points, &classes);
        assert!((value - expected).abs() < 1e-6, "{name}: {value}");
    }
}

#[test]
fn b11_does_not_depend_on_the_unit() {
    let unit = case("b11_lisi_unit.h5ad", "cell_type");
    for name in ["b11_lisi_x1e6.h5ad", "b11_lisi_x1em6.h5ad"] {
        let (points, classes) = case(name, "cell_type");
        assert!((value(&points, &classes) - value(&unit.0, &unit.1)).abs() < 1e-7, "{name}");
    }
}

#[test]
fn equals_the_definition() {
    // More classes than a block has cells, too.
    for (seed, cells, dims, count, offset) in
        [(1, 700, 50, 6, 0.0), (2, 1500, 3, 20, 1000.0), (3, 1300, 5, 600, 0.0)]
    {
        let (points, classes) = random(seed, cells, dims, count, offset);
        let truth = plain(&points, &classes);
        assert_near(&samples(&points, &classes), &truth, 1e-9, "float64");
        let all: Vec<u32> = (0..cells as u32).collect();
        assert_near(&silhouettes::<f32>(&points, &classes, &all, &quiet), &truth, 2e-5, "float32");
        let mean = truth.iter().sum::<f64>() / cells as f64;
        assert!((value(&points, &classes) - mean).abs() < 1e-9);
    }
}

#[test]
fn huge_and_tiny_scales() {
    let (points, classes) = random(4, 300, 6, 4, 0.0);
    for factor in [1e30f32, 1e-30] {
        let scaled = points.values().iter().map(|value| value * factor).collect();
        let scaled = samples(&Points::new(scaled, 6), &classes);
        assert_near(&scaled, &samples(&points, &classes), 1e-6, "scaled");
    }
}

#[test]
fn equal_cells_are_at_distance_zero() {
    let labels: Vec<&str> = (0..60).map(|cell| ["a", "b", "c"][cell / 20]).collect();
    let classes = Classes::of(&labels);
    let mut random = fastrand::Rng::with_seed(5);
    let places: Vec<f32> = (0..2 * 7).map(|_| 100.0 + random.f32()).collect();
    // Classes a and b are at one place, c at another.
    let values: Vec<f32> = (0..60).flat_map(|cell| places[7 * (cell / 40)..][..7].to_vec()).collect();
    let points = Points::new(values, 7);
    let all: Vec<u32> = (0..60).collect();
    let expected: Vec<f64> = (0..60).map(|cell| if cell < 40 { 0.0 } else { 1.0 }).collect();
    assert_eq!(samples(&points, &classes), expected);
    assert_eq!(silhouettes::<f32>(&points, &classes, &all, &quiet), expected);
    assert_eq!(value(&Points::new(vec![0.3; 60], 1), &classes), 0.0);
}

#[test]
fn na_says_why() {
    let reason = |values: Vec<f32>, labels: &[&str]| {
        let (points, classes) = (Points::new(values, 1), Classes::of(labels));
        assert!(samples(&points, &classes).is_empty());
        let score = asw(&points, &classes, &quiet);
        assert_eq!(score.value, None);
        score.notes[0].clone()
    };
    assert!(reason(vec![], &[]).contains("no cells"));
    assert!(reason(vec![1.0], &["a"]).contains("one class"));
    assert!(reason(vec![1.0, 2.0], &["a", "a"]).contains("one class"));
    assert!(reason(vec![1.0, 2.0], &["a", "b"]).contains("of its own"));
}

#[test]
fn a_sample_estimates_the_mean_and_its_error() {
    let (points, classes) = random(6, 6000, 8, 5, 0.0);
    let exact = value(&points, &classes);
    let score = asw_with(&points, &classes, 1000, 1500, &quiet);
    let note = &score.notes[0];
    // Shares of the classes are rounded.
    assert!(note.starts_with("silhouette of 150"), "{note}");
    assert!(note.contains(" sampled cells, each against all 6000; standard error "), "{note}");
    let error: f64 = note.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(error > 1e-4 && error < 5e-3, "{error}");
    assert!((score.value.unwrap() - exact).abs() < 4.0 * error);
    // All cells of a class drawn: no error is left.
    let whole = asw_with(&points, &classes, 1000, 6000, &quiet);
    assert!((whole.value.unwrap() - exact).abs() < 1e-12);
    assert!(whole.notes[0].ends_with("standard error 0.0e0"), "{:?}", whole.notes);
}

#[test]
fn same_bits_for_any_thread_count() {
    let (points, classes) = random(7, 2500, 30, 7, 2.0);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| asw(&points, &classes, &quiet))
    };
    assert_eq!(run(1), run(5));
}
