use super::super::cases;
use super::super::points::Points;
use super::transitions::Transitions;
use super::*;

/// Cells of one blob, with batches drawn by `batch`.
fn blob(cells: usize, dims: usize, batch: impl Fn(usize, &[f32]) -> String) -> (Graph, Classes) {
    let mut random = fastrand::Rng::with_seed(11);
    let values: Vec<f32> = (0..cells * dims).map(|_| random.f32() + random.f32() + random.f32()).collect();
    let points = Points::new(values, dims);
    let names: Vec<String> = (0..cells).map(|cell| batch(cell, points.row(cell))).collect();
    (Graph::connectivities(&nearest(&points, 49, &|_| ())), Classes::of(&names))
}

fn one_label(cells: usize) -> Classes {
    Classes::of(&vec!["a"; cells])
}

#[test]
fn b05_states_its_neighbours() {
    let (points, labels, batches) = cases::labels_and_batches("b05_tiny_24_cells.h5ad");
    let graph = Graph::connectivities(&nearest(&points, 49, &|_| ()));
    let score = kbet(&graph, &labels, &batches, &|_| ());
    assert!((0.0..=1.0).contains(&score.value.unwrap()));
    assert!(
        score.notes[0].starts_with("10 neighbours are tested, more than a third of the cells, in 2 of 2")
    );
}

#[test]
fn batches_drawn_at_random_pass_and_batches_by_place_do_not() {
    for cells in [300, 900] {
        let (graph, drawn) = blob(cells, 5, |cell, _| format!("{}", cell * 7919 % 3));
        let random = kbet(&graph, &one_label(cells), &drawn, &|_| ());
        assert!(random.value.unwrap() > 0.85, "{random:?}");
        let (graph, placed) = blob(cells, 5, |_, row| format!("{}", row[0] > 1.5));
        let apart = kbet(&graph, &one_label(cells), &placed, &|_| ());
        assert!(apart.value.unwrap() < 0.5, "{apart:?}");
    }
}

#[test]
fn lanczos_finds_what_the_whole_decomposition_finds() {
    let (graph, _) = blob(900, 4, |_, _| String::new());
    let matrix = Transitions::of(&graph);
    let found = lanczos::leading(&matrix, 100).unwrap();
    let dense = faer::Mat::from_fn(900, 900, |row, column| {
        matrix.row(row).find(|&(other, _)| other == column).map_or(0.0, |(_, value)| value)
    });
    let (values, vectors) = dense::eigen(&dense).unwrap();
    let order = dense::largest(&values, 100);
    assert!((found.values[0] - 1.0).abs() < 1e-12 && found.residual < 1e-9);
    for (place, &column) in order.iter().enumerate() {
        assert!((found.values[place] - values[column]).abs() < 1e-10, "{place}");
        let cosine: f64 =
            (0..900).map(|node| f64::from(found.vectors[node * 100 + place]) * vectors[(node, column)]).sum();
        assert!((cosine.abs() - 1.0).abs() < 1e-5, "{place}: {cosine}");
    }
}

#[test]
fn labels_without_a_test_are_named() {
    let (graph, _) = blob(60, 3, |_, _| String::new());
    let labels: Vec<&str> = (0..60)
        .map(|cell| ["big", "big", "big", "single"][cell % 4])
        .enumerate()
        .map(|(cell, name)| if cell < 4 { "tiny" } else { name })
        .collect();
    let batches: Vec<&str> = labels
        .iter()
        .enumerate()
        .map(|(cell, name)| if *name == "single" || cell % 3 == 0 { "x" } else { "y" })
        .collect();
    let score = kbet(&graph, &Classes::of(&labels), &Classes::of(&batches), &|_| ());
    assert_eq!(score.notes[0], "2 labels left out (fewer than 12 cells, or only one batch): single, tiny");
    assert!(score.value.is_some());
}

#[test]
fn a_label_in_pieces_is_rejected_and_small_pieces_are_left_out() {
    // Rings of 20: each below three times ten neighbours.
    let ring =
        |first: u32, size: u32| (0..size).map(move |node| (first + node, first + (node + 1) % size, 0.5f32));
    let batches = |cells: usize| Classes::of(&["x", "y"].repeat(cells / 2));
    let pieces: Vec<_> = (0..4).flat_map(|piece| ring(piece * 20, 20)).collect();
    let score = kbet(&Graph::of_edges(80, &pieces), &one_label(80), &batches(80), &|_| ());
    assert_eq!(score.value, Some(0.0));
    let pieces: Vec<_> = ring(0, 40).chain(ring(40, 40)).chain(ring(80, 10)).collect();
    let outcome = kbet_per_label(&Graph::of_edges(90, &pieces), &one_label(90), &batches(90), &|_| ());
    assert!(matches!(outcome[0], Outcome::Accepted { cells: 80, neighbours: 11, .. }), "{outcome:?}");
}

#[test]
fn too_little_to_tell_is_na() {
    for cells in [0, 1, 2, 11] {
        let score = kbet(
            &Graph::without_edges(cells),
            &one_label(cells),
            &Classes::of(&["x", "y"].repeat(6)[..cells]),
            &|_| (),
        );
        assert_eq!(score.value, None);
    }
}

#[test]
fn cells_at_one_place_are_scored() {
    for cells in [40, 700] {
        let same = Points::new(vec![1.0; cells * 2], 2);
        let graph = Graph::connectivities(&nearest(&same, 49, &|_| ()));
        let batches: Vec<String> = (0..cells).map(|cell| format!("{}", cell * 7919 % 2)).collect();
        let score = kbet(&graph, &one_label(cells), &Classes::of(&batches), &|_| ());
        assert!((0.0..=1.0).contains(&score.value.unwrap()), "{score:?}");
    }
}

#[test]
fn the_same_for_any_number_of_threads() {
    let (graph, batches) = blob(2100, 6, |cell, row| format!("{}", (cell % 5 == 0) ^ (row[0] > 1.4)));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| diffusion::map(&graph, 100).unwrap().points)
    };
    assert_eq!(run(1), run(3));
    assert_eq!(batches.len(), 2);
}
