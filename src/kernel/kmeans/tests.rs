use super::*;

fn quiet(_: f64) {}

fn normal(random: &mut fastrand::Rng) -> f32 {
    ((0..12).map(|_| random.f64()).sum::<f64>() - 6.0) as f32
}

/// Cells around points far apart, one after the other.
fn blobs(cells: usize, count: usize, offset: f32) -> Points {
    let mut random = fastrand::Rng::with_seed(3);
    let values = (0..cells * 5).map(|at| {
        let centre = if at % 5 == at / 5 % count % 5 { 30.0 * (1 + at / 5 % count) as f32 } else { 0.0 };
        offset + centre + normal(&mut random)
    });
    Points::new(values.collect(), 5)
}

#[test]
fn finds_blobs_apart() {
    for offset in [0.0, 1000.0] {
        let points = blobs(2000, 7, offset);
        let found = kmeans(&points, 7, 10, 1, &quiet);
        for cell in 0..2000 {
            assert_eq!(found.labels[cell], found.labels[cell % 7], "cell {cell}");
        }
        // 5 dimensions of variance 1.
        assert!((found.inertia / 2000.0 - 5.0).abs() < 0.2, "{}", found.inertia);
        let mut centre = [0f64; 5];
        let own: Vec<usize> = (0..2000).filter(|cell| found.labels[*cell] == 3).collect();
        for &cell in &own {
            centre.iter_mut().zip(points.row(cell)).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        for (ours, sum) in found.centres[15..20].iter().zip(centre) {
            assert!((ours - sum / own.len() as f64).abs() < 1e-5 * (1.0 + ours.abs()));
        }
    }
}

#[test]
fn as_many_centres_as_distinct_cells_or_more() {
    let points = Points::new(vec![1.0, 1.0, 5.0, 5.0, 1.0, 9.0], 1);
    for k in [3, 4, 6, 50] {
        let found = kmeans(&points, k, 3, 0, &quiet);
        assert_eq!(found.inertia, 0.0, "{k}");
        assert_eq!(found.centres.len(), k.min(6));
        let labels = &found.labels;
        assert!(labels[0] == labels[1] && labels[0] == labels[4] && labels[2] == labels[3]);
        assert!(labels[0] != labels[2] && labels[2] != labels[5] && labels[0] != labels[5]);
    }
    let one = kmeans(&points, 1, 1, 0, &quiet);
    assert!((one.centres[0] - 22.0 / 6.0).abs() < 1e-6 && one.labels == [0; 6]);
    assert!(kmeans(&Points::new(Vec::new(), 2), 3, 1, 0, &quiet).labels.is_empty());
    assert!(kmeans(&points, 0, 1, 0, &quiet).centres.is_empty());
    let constant = kmeans(&Points::new(vec![0.1; 40], 2), 3, 2, 0, &quiet);
    assert!(constant.inertia < 1e-12 && constant.labels == [0; 20]);
}

#[test]
fn an_empty_cluster_takes_the_farthest_cell() {
    let mut found = Assignment { labels: vec![0, 0, 0, 1], distances: vec![1.0, 3.0, 2.0, 9.0] };
    fill_empty(&mut found, 4);
    assert_eq!(found.labels, [0, 2, 3, 1]);
}

#[test]
fn same_bits_for_any_thread_count_and_scale_by_powers_of_two() {
    let points = blobs(9000, 5, 3.0);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| kmeans(&points, 12, 2, 7, &quiet))
    };
    assert_eq!(run(1), run(5));
    for factor in [2f32.powi(70), 2f32.powi(-70)] {
        let scaled = points.values().iter().map(|value| value * factor).collect();
        assert_eq!(kmeans(&Points::new(scaled, 5), 12, 2, 7, &quiet).labels, run(1).labels);
    }
}

#[test]
fn more_centres_than_one_block() {
    let mut random = fastrand::Rng::with_seed(4);
    let points = Points::new((0..3000 * 2).map(|_| random.f32()).collect(), 2);
    let found = kmeans(&points, 600, 1, 0, &quiet);
    for cell in (0..3000).step_by(50) {
        let distance = |label: usize| {
            let centre = &found.centres[label * 2..label * 2 + 2];
            points.row(cell).iter().zip(centre).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum::<f64>()
        };
        let own = distance(found.labels[cell] as usize);
        assert!((0..600).all(|label| distance(label) >= own - 1e-6), "cell {cell}");
    }
}
