use rayon::prelude::*;

use super::*;
use crate::kernel::cases;

fn quiet(_: f64) {}

/// All distances in float64, sorted.
fn plain(points: &Points, queries: &Points, k: usize, own: bool) -> Vec<Vec<(f64, u32)>> {
    let row = |cell: usize| {
        let others = (0..points.len()).filter(|&other| !own || other != cell);
        let mut all: Vec<(f64, u32)> =
            others.map(|other| (distance(queries.row(cell), points.row(other)), other as u32)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        all.truncate(k);
        all
    };
    (0..queries.len()).into_par_iter().map(row).collect()
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
}

/// Fails unless distances are the true ones and indices too, but for ties that rounding of the sums decides.
fn assert_exact(found: &Neighbours, truth: &[Vec<(f64, u32)>], what: &str) {
    assert_eq!(found.search, Search::Exact, "{what}");
    assert_eq!(found.len(), truth.len(), "{what}");
    for (cell, truth) in truth.iter().enumerate() {
        let (indices, distances) = found.row(cell);
        assert_eq!(indices.len(), truth.len(), "{what}");
        for (place, &(exact, index)) in truth.iter().enumerate() {
            assert!(
                (f64::from(distances[place]) - exact).abs() <= 1e-7 * exact + 1e-45,
                "{what}: cell {cell} place {place}"
            );
            let tied = |other: usize| {
                truth.get(other).is_none_or(|&(other, _)| (other - exact).abs() <= 1e-12 * exact)
            };
            let before = place > 0 && tied(place - 1);
            if !before && !tied(place + 1) {
                assert_eq!(indices[place], index, "{what}: cell {cell} place {place}");
            }
        }
        let mut sorted = indices.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), indices.len(), "{what}: cell {cell} has a neighbour twice");
    }
}

fn normal(random: &mut fastrand::Rng) -> f32 {
    ((0..12).map(|_| random.f64()).sum::<f64>() - 6.0) as f32
}

/// Blobs of unequal width, away from zero.
fn blobs(seed: u64, cells: usize, dims: usize, blobs: usize, spread: f32, offset: f32) -> Points {
    let mut random = fastrand::Rng::with_seed(seed);
    let centres: Vec<f32> = (0..blobs * dims).map(|_| spread * normal(&mut random)).collect();
    let values = (0..cells * dims)
        .map(|at| offset + centres[(at / dims % blobs) * dims + at % dims] + normal(&mut random))
        .collect();
    Points::new(values, dims)
}

fn scaled(points: &Points, factor: f32) -> Points {
    Points::new(points.values().iter().map(|value| value * factor).collect(), points.dims())
}

#[test]
fn equals_sorting_all_distances() {
    for (seed, cells, dims, k) in [(1, 700, 50, 15), (2, 1300, 7, 90), (3, 530, 130, 30), (4, 600, 1, 5)] {
        let points = blobs(seed, cells, dims, 5, 3.0, 0.0);
        let truth = plain(&points, &points, k, true);
        assert_exact(&nearest(&points, k, &quiet), &truth, &format!("{cells} x {dims}"));
    }
}

#[test]
fn offsets_and_scales_do_not_matter() {
    for (offset, spread) in [(1000.0, 3.0), (1e5, 3.0), (0.0, 1e4), (-7e3, 300.0)] {
        let points = blobs(5, 900, 20, 4, spread, offset);
        let truth = plain(&points, &points, 30, true);
        assert_exact(&nearest(&points, 30, &quiet), &truth, &format!("offset {offset} spread {spread}"));
    }
    for factor in [1e-6, 1e6, 1e-30, 1e30, 1e-42] {
        let points = scaled(&blobs(6, 600, 10, 3, 3.0, 1.0), factor);
        let truth = plain(&points, &points, 15, true);
        assert_exact(&nearest(&points, 15, &quiet), &truth, &format!("factor {factor}"));
    }
}

#[test]
fn duplicates_come_by_index() {
    let mut points = blobs(7, 400, 12, 3, 2.0, 10.0).values().to_vec();
    // Cells 0, 2, 4, ... are all the same.
    for cell in (0..400).step_by(2) {
        points.copy_within(0..12, cell * 12);
    }
    let points = Points::new(points, 12);
    let found = nearest(&points, 20, &quiet);
    assert_exact(&found, &plain(&points, &points, 20, true), "half the same");
    let expected: Vec<u32> = (0..21).map(|at| at * 2).filter(|&cell| cell != 6).collect();
    assert_eq!(found.row(6), (&expected[..], &[0.0f32; 20][..]));

    let same = Points::new(vec![0.1; 900 * 3], 3);
    let found = nearest(&same, 5, &quiet);
    assert_eq!(found.row(800), (&[0, 1, 2, 3, 4][..], &[0.0f32; 5][..]));
    assert_eq!(found.row(2).0, [0, 1, 3, 4, 5]);
}

#[test]
fn ties_on_a_grid() {
    let mut random = fastrand::Rng::with_seed(8);
    let values = (0..1500 * 4).map(|_| random.i32(-2..3) as f32).collect();
    let points = Points::new(values, 4);
    let (found, truth) = (nearest(&points, 25, &quiet), plain(&points, &points, 25, true));
    // Sums of integers are exact, so even ties are the same.
    for (cell, truth) in truth.iter().enumerate() {
        let expected: Vec<u32> = truth.iter().map(|&(_, index)| index).collect();
        assert_eq!(found.row(cell).0, expected, "cell {cell}");
    }
}

#[test]
fn few_cells() {
    let points = blobs(9, 3, 4, 1, 1.0, 0.0);
    assert_exact(&nearest(&points, 15, &quiet), &plain(&points, &points, 2, true), "3 cells");
    for cells in [0, 1] {
        let found = nearest(&points.select(&[0, 1, 2][..cells]), 15, &quiet);
        assert_eq!((found.k, found.len(), found.is_empty()), (0, 0, true));
    }
    let (all, none) = (nearest_of(&points, &points, 9, &quiet), Points::new(Vec::new(), 4));
    assert_exact(&all, &plain(&points, &points, 3, false), "3 of 3");
    assert!(nearest_of(&none, &points, 3, &quiet).is_empty());
    assert!(nearest_of(&points, &none, 3, &quiet).is_empty());
    assert!(nearest(&Points::new(Vec::new(), 0), 3, &quiet).is_empty());
}

#[test]
fn nearest_of_other_cells() {
    let points = blobs(10, 1100, 17, 6, 4.0, 50.0);
    let queries = blobs(11, 300, 17, 3, 40.0, 45.0);
    let truth = plain(&points, &queries, 15, false);
    assert_exact(&nearest_of(&points, &queries, 15, &quiet), &truth, "other cells");
}

#[test]
fn same_bits_for_any_thread_count() {
    let points = blobs(12, 3000, 24, 8, 2.0, 3.0);
    let run = |threads: usize, exact_up_to: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| nearest_with(&points, 15, exact_up_to, &quiet))
    };
    assert_eq!(run(1, EXACT_UP_TO), run(5, EXACT_UP_TO));
    assert_eq!(run(1, 100), run(5, 100));
}

#[test]
fn b11_neighbours_do_not_depend_on_the_unit() {
    let unit = nearest(&cases::points("b11_lisi_unit.h5ad"), 90, &quiet);
    for name in ["b11_lisi_unit.h5ad", "b11_lisi_x1e6.h5ad", "b11_lisi_x1em6.h5ad"] {
        let points = cases::points(name);
        let found = nearest(&points, 90, &quiet);
        assert_exact(&found, &plain(&points, &points, 90, true), name);
        let same = found.indices.iter().zip(&unit.indices).filter(|(a, b)| a == b).count();
        assert!(same as f64 > 0.999 * unit.indices.len() as f64, "{name}: {same}");
    }
}

/// The recall of `found`, by distances, so that ties count.
fn recall(found: &Neighbours, truth: &Neighbours) -> f64 {
    let mut right = 0;
    for cell in 0..truth.len() {
        let bound = truth.row(cell).1[found.k - 1];
        right += found.row(cell).1.iter().filter(|&&distance| distance <= bound).count();
    }
    right as f64 / found.indices.len() as f64
}

#[test]
fn approximate_search_measures_its_recall() {
    let mut approximate = 0;
    // The last two have no structure: many lists have to be probed, or all.
    for (seed, cells, dims, count, spread) in
        [(20, 12_000, 16, 12, 4.0), (21, 9000, 3, 5, 2.0), (22, 6000, 12, 1, 0.0), (23, 20_000, 5, 1, 0.0)]
    {
        let points = blobs(seed, cells, dims, count, spread, 5.0);
        let found = nearest_with(&points, 15, 1000, &quiet);
        let truth = nearest(&points, 15, &quiet);
        let true_recall = recall(&found, &truth);
        match found.search {
            Search::Exact => assert_eq!(true_recall, 1.0),
            Search::Approximate { recall, sampled } => {
                approximate += 1;
                assert!(sampled >= 1000 && recall >= 0.99, "{recall} of {sampled}");
                assert!((recall - true_recall).abs() < 0.005, "{recall} {true_recall}");
            }
        }
        for cell in 0..cells {
            let (indices, distances) = found.row(cell);
            assert!(!indices.contains(&(cell as u32)) && distances.is_sorted());
            let exact = distance(points.row(cell), points.row(indices[14] as usize)) as f32;
            assert!((distances[14] - exact).abs() <= 1e-6 * exact);
        }
    }
    assert!(approximate >= 2);
}

#[test]
fn approximate_search_of_other_cells() {
    let points = blobs(30, 8000, 10, 9, 4.0, 0.0);
    let queries = blobs(31, 2500, 10, 9, 4.0, 0.5);
    let found = nearest_of_with(&points, &queries, 10, 1000, &quiet);
    let recall = recall(&found, &nearest_of(&points, &queries, 10, &quiet));
    assert!(recall >= 0.985, "{recall}");
}

#[test]
fn approximate_search_of_duplicates() {
    let points = Points::new((0..6000 * 4).map(|at| (at / 4 % 7) as f32).collect(), 4);
    let found = nearest_with(&points, 30, 1000, &quiet);
    assert!(found.distances.iter().all(|&distance| distance == 0.0));
    assert_eq!(found.len(), 6000);
}
