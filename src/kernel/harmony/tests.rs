use super::*;

/// Cells of `types` in `batches`, each batch moved by an offset of its own, from a fixed generator.
fn shifted(cells: usize, dims: usize, types: usize, batches: usize) -> (Points, Classes, Vec<usize>) {
    let mut random = fastrand::Rng::with_seed(7);
    let mut direction = |length: f64| -> Vec<f64> {
        (0..dims).map(|_| (random.f64() + random.f64() + random.f64() - 1.5) * length).collect()
    };
    let centres: Vec<Vec<f64>> = (0..types).map(|_| direction(12.0)).collect();
    let offsets: Vec<Vec<f64>> = (0..batches).map(|_| direction(5.0)).collect();
    let (mut values, mut labels, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
    for cell in 0..cells {
        // Batches have all types, the first more than the others.
        let (kind, batch) = (cell % types, (cell / types) % (batches + 1) % batches);
        let noise = direction(2.0);
        let place = centres[kind].iter().zip(&offsets[batch]).zip(noise);
        values.extend(place.map(|((centre, offset), noise)| (centre + offset + noise) as f32));
        labels.push(format!("batch {batch}"));
        kinds.push(kind);
    }
    (Points::new(values, dims), Classes::of(&labels), kinds)
}

fn quiet(_: &str, _: f64) {}

/// Mean coordinates of the cells of a type in a batch.
fn mean(values: &[f32], dims: usize, chosen: impl Fn(usize) -> bool) -> Vec<f64> {
    let rows: Vec<&[f32]> =
        values.chunks_exact(dims).enumerate().filter(|(cell, _)| chosen(*cell)).map(|(_, row)| row).collect();
    (0..dims).map(|dim| rows.iter().map(|row| f64::from(row[dim])).sum::<f64>() / rows.len() as f64).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn batches_meet_and_types_stay_apart() {
    let (points, batches, kinds) = shifted(1500, 10, 4, 3);
    let harmonised = harmonise(&points, &batches, &Params::default(), &quiet);
    assert_eq!((harmonised.clusters, harmonised.values.len()), (50, 15_000));
    let gap = |values: &[f32], kind: usize, batch: u32| {
        let of = |wanted: u32| mean(values, 10, |cell| kinds[cell] == kind && batches.codes[cell] == wanted);
        distance(&of(batch), &of(0))
    };
    for kind in 0..4 {
        for batch in 1..3 {
            let (before, after) = (gap(points.values(), kind, batch), gap(&harmonised.values, kind, batch));
            assert!(after < before * 0.25, "type {kind}, batch {batch}: {before} apart, then {after}");
        }
    }
    let of_kind = |kind: usize| mean(&harmonised.values, 10, |cell| kinds[cell] == kind);
    let nearest = (1..4).map(|kind| distance(&of_kind(kind), &of_kind(0))).fold(f64::MAX, f64::min);
    assert!(nearest > 5.0, "types are {nearest} apart");
}

#[test]
fn threads_do_not_change_a_bit_and_the_seed_decides() {
    let (points, batches, _) = shifted(3000, 7, 5, 4);
    let run = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| harmonise(&points, &batches, &Params { seed, ..Params::default() }, &quiet))
    };
    let one = run(1, 0);
    assert!(one == run(7, 0), "7 threads");
    assert!(one.values != run(1, 1).values, "another seed");
}

#[test]
fn one_cluster_takes_away_the_shrunk_means_of_batches() {
    // With one cluster all memberships are 1: plain ridge regression, which needs no more than two lines.
    let points = Points::new(vec![1.0, 2.0, 3.0, 2.0, 8.0, 1.0, 9.0, 3.0, 10.0, 2.0], 2);
    let batches = Classes::of(&["a", "a", "b", "b", "b"]);
    let harmonised = harmonise_from(&points, &batches, &[1.0, 0.0], &Params::default(), &quiet);
    for dim in 0..2 {
        let column: Vec<f64> = (0..5).map(|cell| f64::from(points.row(cell)[dim])).collect();
        let (a, b) = (column[0] + column[1], column[2] + column[3] + column[4]);
        // Weights are 2 and 3 cells, and the penalty is that of 1 cell.
        let intercept = (a / 3.0 + b / 4.0) / (2.0 / 3.0 + 3.0 / 4.0);
        let effects = [(a - 2.0 * intercept) / 3.0, (b - 3.0 * intercept) / 4.0];
        for cell in 0..5 {
            let expected = column[cell] - effects[batches.codes[cell] as usize];
            let given = f64::from(harmonised.values[cell * 2 + dim]);
            assert!((given - expected).abs() < 1e-5, "cell {cell}: {given}, not {expected}");
        }
    }
}

#[test]
fn memberships_add_up_and_the_objective_falls() {
    let (points, batches, _) = shifted(900, 6, 3, 2);
    let params = Params::default();
    let order: Vec<u32> = (0..900).collect();
    let cells = Cells::new(&points, &batches, &order);
    let start: Vec<f64> = points.values()[..8 * 6].iter().map(|&value| f64::from(value)).collect();
    let (mut clustering, mut last) = Clustering::start(&cells, &start, &params);
    for _ in 0..6 {
        let next = clustering.round(&cells, &blocks(900, 0.05), &params);
        assert!(next < last + 1e-4 * last.abs(), "{last}, then {next}");
        last = next;
    }
    for row in clustering.membership.chunks_exact(8) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let held: f64 = clustering.observed.iter().sum();
    assert!((held - 900.0).abs() < 1e-3, "{held}");
}

#[test]
fn cells_at_the_origin_and_few_cells_stay_finite() {
    let points = Points::new(vec![0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 3.0, -1.0], 2);
    let batches = Classes::of(&["a", "b", "b", "a"]);
    let harmonised = harmonise(&points, &batches, &Params::default(), &quiet);
    assert!(harmonised.values.iter().all(|value| value.is_finite()), "{harmonised:?}");
}

#[test]
fn clusters_and_blocks_by_number_of_cells() {
    assert_eq!([1, 30, 75, 105, 2999, 1_000_000].map(cluster_count), [1, 1, 2, 4, 100, 100]);
    assert_eq!(blocks(10, 0.3), [0..3, 3..6, 6..8, 8..10]);
    assert_eq!(blocks(5, 1.0), vec![0..5]);
    assert_eq!(blocks(3, 0.05).len(), 3);
}
