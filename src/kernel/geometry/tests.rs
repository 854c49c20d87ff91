//! Every family on small embeddings whose answer is known, and on those that have none.

use super::anisotropy::{PAIRS, cosine, cosine_between, cosine_within, spectral};
use super::dimension::participation_ratio;
use super::effects::partial_eta2;
use super::preservation::{GENES, rnx};
use super::standard::Standard;
use super::twonn::two_nearest;
use super::*;
use crate::kernel::points::Points;
use crate::matrix::Csr;

fn normal(cells: usize, dims: usize, seed: u64) -> Points {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut value = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
    Points::new((0..cells * dims).map(|_| value() as f32).collect(), dims)
}

fn scaled(points: &Points, factor: f32) -> Points {
    Points::new(points.values().iter().map(|value| value * factor).collect(), points.dims())
}

fn groups(names: &[&'static str], cells: usize) -> Groups {
    Groups::of(&(0..cells).map(|cell| Some(names[cell % names.len()])).collect::<Vec<_>>())
}

fn raw_dimension(points: &Points) -> twonn::Dimension {
    let squared = |a: usize, b: usize| {
        points.row(a).iter().zip(points.row(b)).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
    };
    two_nearest(points, &squared, &|_| ())
}

#[test]
fn a_line_has_one_dimension_and_noise_has_all() {
    let line = Points::new((0..200).flat_map(|cell| [cell as f32, -2.0 * cell as f32, 7.0]).collect(), 3);
    let standard = Standard::of(&line);
    assert_eq!(standard.constant(), 1);
    assert!((participation_ratio(&line, &standard).value.unwrap() - 1.0).abs() < 1e-12);
    let noise = normal(4000, 5, 1);
    let ratio = participation_ratio(&noise, &Standard::of(&noise)).value.unwrap();
    assert!(ratio > 4.95 && ratio <= 5.0, "{ratio}");
    let dimension = raw_dimension(&noise);
    assert!((dimension.score.value.unwrap() - 5.0).abs() < 0.4, "{dimension:?}");
    assert_eq!(dimension.cells, 4000);
}

#[test]
fn both_sides_of_the_gram_matrix_agree() {
    let wide = normal(30, 80, 2);
    let twice: Vec<usize> = (0..30).chain(0..30).chain(0..30).collect();
    // Repeating all cells changes no moment, but makes the other side the smaller.
    let tall = wide.select(&twice);
    let ratio = |points: &Points| participation_ratio(points, &Standard::of(points)).value.unwrap();
    assert!((ratio(&wide) / ratio(&tall) - 1.0).abs() < 1e-10);
    assert!((spectral(&wide).value.unwrap() / spectral(&tall).value.unwrap() - 1.0).abs() < 1e-10);
}

#[test]
fn the_unit_does_not_matter() {
    let points = normal(300, 4, 3);
    let expected = (spectral(&points).value.unwrap(), cosine(&points, 5).score.value.unwrap());
    let dimension = raw_dimension(&points).score.value.unwrap();
    for factor in [1e-15, 1e15] {
        let points = scaled(&points, factor);
        assert!((spectral(&points).value.unwrap() / expected.0 - 1.0).abs() < 1e-6);
        assert!((cosine(&points, 5).score.value.unwrap() - expected.1).abs() < 1e-6);
        assert!((raw_dimension(&points).score.value.unwrap() / dimension - 1.0).abs() < 1e-4);
    }
}

#[test]
fn spectral_anisotropy_of_known_spectra() {
    let axes = Points::new(vec![3.0, 0.0, 0.0, 1.0], 2);
    assert!((spectral(&axes).value.unwrap() - 0.9).abs() < 1e-12);
    assert_eq!(spectral(&Points::new(vec![0.0; 6], 2)).value, None);
}

#[test]
fn cosines_within_and_between_types() {
    let value = |cell: usize| if cell.is_multiple_of(2) { [1.0, 0.0] } else { [0.0, 2.0] };
    let points = Points::new((0..20).flat_map(value).collect(), 2);
    let labels = groups(&["a", "b"], 20);
    assert_eq!(cosine_within(&points, &labels, 1).score.value, Some(1.0));
    assert_eq!(cosine_between(&points, &labels, 1).score.value, Some(0.0));
    let all = cosine(&points, 1);
    assert_eq!(all.pairs, PAIRS);
    // Of the 19 others of a cell 9 are of its type.
    assert!((all.score.value.unwrap() - 9.0 / 19.0).abs() < 4.0 * 0.5 / (PAIRS as f64).sqrt());
    assert_eq!(cosine(&points, 1), all);
}

#[test]
fn rows_of_norm_zero_are_left_out_and_said() {
    let mut values = vec![1.0f32; 40];
    values[..20].fill(0.0);
    let found = cosine(&Points::new(values, 2), 3);
    assert!((found.score.value.unwrap() - 1.0).abs() < 1e-12);
    assert!(found.pairs < PAIRS / 2 && found.score.notes[0].contains("norm 0"), "{found:?}");
    assert_eq!(cosine(&Points::new(vec![0.0; 8], 2), 3).score.value, None);
}

#[test]
fn duplicated_cells_are_left_out_of_the_dimension() {
    let mut values = normal(60, 3, 4).values().to_vec();
    values.extend_from_within(..15 * 3);
    let found = raw_dimension(&Points::new(values, 3));
    assert!(found.cells <= 45 && found.score.value.unwrap() > 0.0);
    assert!(found.score.notes[0].starts_with("30 duplicated cells"), "{found:?}");
}

#[test]
fn effects_of_a_balanced_design() {
    // z = type + batch + noise that is orthogonal to both, all of known size.
    let (mut z, mut labels, mut batches) = (Vec::new(), Vec::new(), Vec::new());
    for (label, a) in [("A", 1.0), ("B", -1.0)] {
        for (batch, b) in [("x", 0.5), ("y", -0.5)] {
            for noise in [0.25, -0.25, 0.25, -0.25] {
                z.push((a + b + noise) as f32);
                labels.push(Some(label));
                batches.push(Some(batch));
            }
        }
    }
    let points = Points::new(z, 1);
    let (labels, batches) = (Groups::of(&labels), Groups::of(&batches));
    let found = partial_eta2(&points, &Standard::of(&points), &labels, &batches);
    let (ours, expected) = (found.cell_type.value.unwrap(), 1.0 / (1.0 + 0.0625));
    assert!((ours - expected).abs() < 1e-7, "{ours}");
    assert!((found.batch.value.unwrap() - 0.25 / (0.25 + 0.0625)).abs() < 1e-7);
    assert_eq!((found.dims, found.status.as_str()), (1, "n_labeled=16;n_celltypes=2;n_batches=2"));
}

#[test]
fn confounded_effects_are_na_and_said() {
    let points = normal(40, 3, 5);
    let standard = Standard::of(&points);
    let labels = groups(&["A", "B"], 40);
    let found = partial_eta2(&points, &standard, &labels, &labels);
    assert_eq!((found.cell_type.value, found.batch.value), (None, None));
    assert!(found.status.ends_with(";partially_aliased_effects"), "{found:?}");
    // One type in two batches, the other alone in a third: batches keep one degree of freedom, types none.
    let batches = Groups::of(
        &(0..40)
            .map(|cell| Some(if cell % 2 == 1 { "z" } else { ["x", "y"][cell / 2 % 2] }))
            .collect::<Vec<_>>(),
    );
    let found = partial_eta2(&points, &standard, &labels, &batches);
    assert!(found.cell_type.value.is_none() && found.batch.value.is_some(), "{found:?}");
    let single = partial_eta2(&points, &standard, &labels, &Groups::single(40));
    assert!(single.cell_type.value.is_some());
    assert_eq!(single.batch.notes, ["there is only one batch"]);
}

#[test]
fn what_has_no_answer_is_na_with_a_reason() {
    let empty = Groups { names: Vec::new(), codes: vec![None; 2] };
    for points in
        [Points::new(vec![1.0, 2.0], 2), Points::new(vec![1.0; 4], 2), Points::new(vec![0.0; 40], 2)]
    {
        let standard = Standard::of(&points);
        let none = Groups { codes: vec![None; points.len()], ..empty.clone() };
        let effects = partial_eta2(&points, &standard, &none, &Groups::single(points.len()));
        let scores = [
            participation_ratio(&points, &standard),
            raw_dimension(&points).score,
            cosine_within(&points, &none, 0).score,
            cosine_between(&points, &none, 0).score,
            effects.cell_type,
            effects.batch,
        ];
        for score in scores {
            assert!(score.value.is_none() && !score.notes[0].is_empty(), "{score:?}");
        }
    }
    let points = normal(40, 2, 6);
    let counts = Csr { columns: 1, indptr: vec![0; 41], ..Csr::default() };
    let rows: Vec<Option<u32>> = (0..40).map(Some).collect();
    let found = rnx(&points, &counts, &rows, &Groups::single(40), &[true], &|_| ()).unwrap();
    assert_eq!(found.mean.notes, ["R_NX needs a batch of 101 cells, the largest has 40"]);
    let points = normal(120, 2, 6);
    let counts = Csr { columns: 1, indptr: vec![0; 121], ..Csr::default() };
    let rows: Vec<Option<u32>> = (0..120).map(Some).collect();
    let found = rnx(&points, &counts, &rows, &Groups::single(120), &[true], &|_| ()).unwrap();
    assert_eq!(found.mean.notes, ["no gene is found in 10 cells and counted 10 times"]);
}

/// Counts of three genes of cells along a circle, so that neighbours in counts are neighbours on the circle.
fn circle(cells: usize) -> (Points, Csr) {
    let mut counts = Csr { columns: 4, indptr: vec![0], ..Csr::default() };
    let mut values = Vec::new();
    for cell in 0..cells {
        let angle = cell as f64 / cells as f64 * std::f64::consts::TAU;
        let (sine, cosine) = angle.sin_cos();
        values.extend([sine as f32, cosine as f32]);
        for (gene, part) in [sine, -sine, cosine, -cosine].into_iter().enumerate() {
            counts.indices.push(gene as u32);
            counts.values.push((5000.0 + 1500.0 * part).round());
        }
        counts.indptr.push(counts.indices.len());
    }
    (Points::new(values, 2), counts)
}

#[test]
fn preservation_is_high_for_the_same_shape_and_chance_for_another() {
    let (points, counts) = circle(400);
    let rows: Vec<Option<u32>> = (0..400).map(Some).collect();
    let batches = groups(&["a", "b"], 400);
    let found = rnx(&points, &counts, &rows, &batches, &[true; 4], &|_| ()).unwrap();
    assert!(found.at.iter().all(|score| score.value.unwrap() > 0.9), "{found:?}");
    assert_eq!((found.eligible_cells, found.batches), (400, 2));
    assert_eq!(found.notes, [format!("R_NX uses all 4 eligible genes, fewer than {GENES}")]);
    let chance = rnx(&normal(400, 2, 8), &counts, &rows, &batches, &[true; 4], &|_| ()).unwrap();
    assert!(chance.mean.value.unwrap().abs() < 0.05, "{chance:?}");
    // Small batches take no part.
    let small =
        Groups::of(&(0..400).map(|cell| Some(if cell < 100 { "a" } else { "b" })).collect::<Vec<_>>());
    let found = rnx(&points, &counts, &rows, &small, &[true; 4], &|_| ()).unwrap();
    assert_eq!((found.eligible_cells, found.batches), (300, 1));
}

#[test]
fn the_order_of_rows_in_the_file_does_not_matter() {
    let (points, counts) = circle(240);
    let rows: Vec<Option<u32>> = (0..240).map(Some).collect();
    let batches = groups(&["a", "b"], 240);
    let mut turned = Csr { columns: 4, indptr: vec![0], ..Csr::default() };
    for row in (0..240).rev() {
        turned.indices.extend_from_slice(&counts.indices[counts.indptr[row]..counts.indptr[row + 1]]);
        turned.values.extend_from_slice(&counts.values[counts.indptr[row]..counts.indptr[row + 1]]);
        turned.indptr.push(turned.indices.len());
    }
    let backwards: Vec<Option<u32>> = (0..240).rev().map(Some).collect();
    let (ours, theirs) = (
        rnx(&points, &counts, &rows, &batches, &[true; 4], &|_| ()).unwrap(),
        rnx(&points, &turned, &backwards, &batches, &[true; 4], &|_| ()).unwrap(),
    );
    assert_eq!(ours, theirs);
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let points = normal(700, 40, 9);
    let labels = groups(&["a", "b", "c"], 700);
    let batches = groups(&["x", "y"], 700);
    let all = || {
        let standard = Standard::of(&points);
        let effects = partial_eta2(&points, &standard, &labels, &batches);
        [
            participation_ratio(&points, &standard),
            spectral(&points),
            raw_dimension(&points).score,
            effects.batch,
        ]
        .map(|score| score.value.unwrap().to_bits())
    };
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(all);
    assert_eq!(rayon::ThreadPoolBuilder::new().num_threads(7).build().unwrap().install(all), single);
}
