use super::*;
use crate::error::Kind as ErrorKind;

fn settings(classifier: Kind) -> Settings {
    Settings { classifier, knn_k: 15, seed: 0 }
}

/// Blobs of `per_class` cells around corners, `spread` wide.
fn blobs(classes: usize, per_class: usize, dims: usize, spread: f32, seed: u64) -> (Points, Classes) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut values = Vec::new();
    let mut labels = Vec::new();
    for class in 0..classes {
        for _ in 0..per_class {
            for dimension in 0..dims {
                let noise: f32 = (0..4).map(|_| random.f32() - 0.5).sum();
                values.push(noise * spread + if dimension % classes == class { 2.0 } else { 0.0 });
            }
            labels.push(format!("class{class}"));
        }
    }
    (Points::new(values, dims), Classes::of(&labels))
}

fn fit(kind: Kind, points: &Points, classes: &Classes) -> Fit {
    Model::fit(points, classes, settings(kind), &|_| ()).unwrap()
}

fn assert_rows_are_probabilities(prediction: &Prediction) {
    for cell in 0..prediction.len() {
        let row = prediction.row(cell);
        assert!(row.iter().all(|value| (0.0..=1.0).contains(value)), "{row:?}");
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{row:?}");
    }
}

#[test]
fn blobs_that_lie_apart_are_told_apart() {
    for classes in [2, 3, 5] {
        let (points, truth) = blobs(classes, 40, 10, 0.5, 1);
        let (query, expected) = blobs(classes, 11, 10, 0.5, 2);
        for kind in Kind::ALL {
            let model = fit(kind, &points, &truth).model;
            let (prediction, _) = model.predict(&query, &|_| ());
            assert_rows_are_probabilities(&prediction);
            assert_eq!(prediction.labels(), expected.codes, "{kind}, {classes} classes");
        }
    }
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    let (points, classes) = blobs(4, 300, 150, 3.0, 3);
    let run = |threads: usize, kind| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let model = fit(kind, &points, &classes).model;
            let prediction = model.predict(&points, &|_| ()).0;
            (model, prediction)
        })
    };
    for kind in Kind::ALL {
        assert_eq!(run(1, kind), run(5, kind), "{kind}");
    }
}

#[test]
fn a_model_comes_back_from_its_arrays() {
    let (points, classes) = blobs(3, 20, 7, 2.0, 4);
    for kind in Kind::ALL {
        let model = fit(kind, &points, &classes).model;
        let mut arrays = Arrays::default();
        let names: Vec<&str> = model.arrays().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, Model::array_names(kind));
        for (name, array) in model.arrays() {
            arrays.add(name, npy::decode(&npy::encode(&array)).unwrap());
        }
        assert_eq!(Model::from_arrays(arrays, settings(kind), 3, 7).unwrap(), model);
    }
}

#[test]
fn damaged_arrays_are_named() {
    let (points, classes) = blobs(3, 20, 7, 2.0, 4);
    let arrays = |kind| {
        let mut arrays = Arrays::default();
        fit(kind, &points, &classes)
            .model
            .arrays()
            .into_iter()
            .for_each(|(name, array)| arrays.add(name, array));
        arrays
    };
    let refused = |arrays, kind, classes, dims| {
        let error = Model::from_arrays(arrays, settings(kind), classes, dims).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input);
        error.message
    };
    assert_eq!(refused(Arrays::default(), Kind::Logreg, 3, 7), "mean.npy is missing");
    assert_eq!(
        refused(arrays(Kind::Prototype), Kind::Prototype, 4, 7),
        "prototypes.npy has the shape [3, 7], not [4, 7]"
    );
    assert!(refused(arrays(Kind::Knn), Kind::Knn, 2, 7).contains("labels.npy has the class 2"));
    let mut broken = arrays(Kind::Logreg);
    broken.add("scale", npy::Array { shape: vec![7], values: npy::Values::Float64(vec![0.0; 7]) });
    assert!(refused(broken, Kind::Logreg, 3, 7).contains("scale.npy"));
    let mut broken = arrays(Kind::Mlp);
    broken
        .add("hidden_biases", npy::Array { shape: vec![7], values: npy::Values::Float32(vec![f32::NAN; 7]) });
    assert!(refused(broken, Kind::Mlp, 3, 7).contains("not finite"));
}

#[test]
fn one_class_is_enough_for_those_that_compare_with_cells() {
    let points = Points::new(vec![1.0, 2.0, 3.0, 4.0], 2);
    let classes = Classes::of(&["only", "only"]);
    for kind in [Kind::Prototype, Kind::Knn] {
        let (prediction, _) = fit(kind, &points, &classes).model.predict(&points, &|_| ());
        assert_eq!((prediction.row(0), prediction.labels()), (&[1.0][..], vec![0, 0]), "{kind}");
    }
    for kind in [Kind::Logreg, Kind::Mlp] {
        let error = Model::fit(&points, &classes, settings(kind), &|_| ()).unwrap_err();
        assert_eq!(
            error.message,
            format!("{kind} needs at least 2 classes, the reference has only \"only\"")
        );
    }
    let nobody = Points::new(Vec::new(), 2);
    for kind in Kind::ALL {
        let none = Classes::of::<&str>(&[]);
        assert!(
            Model::fit(&nobody, &none, settings(kind), &|_| ())
                .unwrap_err()
                .message
                .contains("no labelled cell")
        );
    }
}

#[test]
fn too_few_neighbours_are_said() {
    let (points, _) = blobs(2, 4, 3, 0.1, 5);
    let classes = Classes::of(&["a", "a", "a", "a", "a", "a", "a", "b"]);
    let fit = fit(Kind::Knn, &points, &classes);
    assert_eq!(
        fit.notes[0],
        "knn: 15 neighbours were asked for, the reference has 8 labelled cells: all vote"
    );
    assert!(fit.notes[1].contains("class \"b\" has fewer cells (1) than the 8 that vote"), "{:?}", fit.notes);
    let (prediction, _) = fit.model.predict(&points, &|_| ());
    assert_eq!(prediction.row(0), [0.875, 0.125]);
}

#[test]
fn equal_votes_go_to_the_first_class() {
    let points = Points::new(vec![1.0, 0.0, 0.0, 1.0], 2);
    let classes = Classes::of(&["b", "a"]);
    let knn = Model::fit(&points, &classes, Settings { knn_k: 2, ..settings(Kind::Knn) }, &|_| ()).unwrap();
    let (prediction, _) = knn.model.predict(&Points::new(vec![1.0, 0.1], 2), &|_| ());
    assert_eq!((prediction.row(0), prediction.labels()), (&[0.5, 0.5][..], vec![0]));
}

#[test]
fn a_row_of_zeros_and_any_scale_give_numbers() {
    for scale in [1e-30f32, 1.0, 1e30] {
        let values: Vec<f32> = [1.0, 0.0, 0.9, 0.1, 0.0, 1.0, 0.1, 0.9, 0.0, 0.0].map(|x| x * scale).to_vec();
        let points = Points::new(values, 2);
        let classes = Classes::of(&["a", "a", "b", "b", "c"]);
        for kind in [Kind::Prototype, Kind::Knn, Kind::Logreg] {
            let (prediction, _) = fit(kind, &points, &classes).model.predict(&points, &|_| ());
            assert_rows_are_probabilities(&prediction);
        }
    }
    let points = Points::new(vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0], 2);
    let prototype = fit(Kind::Prototype, &points, &Classes::of(&["a", "b", "b"])).model;
    let (prediction, _) = prototype.predict(&Points::new(vec![0.0, 0.0], 2), &|_| ());
    assert_eq!(prediction.row(0), [0.5, 0.5], "a row of zeros is as near to all");
}

#[test]
fn constant_and_duplicate_cells_keep_the_share_of_their_class() {
    let points = Points::new(vec![3.0; 20], 2);
    let classes = Classes::of(&["a", "a", "a", "a", "a", "a", "a", "b", "b", "b"]);
    let logistic = fit(Kind::Logreg, &points, &classes).model;
    let (prediction, _) = logistic.predict(&points, &|_| ());
    assert!((prediction.row(0)[0] - 0.7).abs() < 1e-5, "{:?}", prediction.row(0));
}

#[test]
fn held_out_cells_are_a_fifth_of_each_class_that_can_spare_one() {
    let labels: Vec<&str> =
        std::iter::repeat_n("big", 23).chain(std::iter::repeat_n("five", 5)).chain(["rare"; 4]).collect();
    let classes = Classes::of(&labels);
    let (training, held_out) = perceptron::split(&classes, &mut fastrand::Rng::with_seed(0));
    let of = |cells: &[usize], class| cells.iter().filter(|&&cell| labels[cell] == class).count();
    assert_eq!((of(&held_out, "big"), of(&held_out, "five"), of(&held_out, "rare")), (4, 1, 0));
    assert_eq!(training.len() + held_out.len(), labels.len());
    let points = Points::new((0..8).map(|value| value as f32).collect(), 1);
    let small = Classes::of(&["a", "a", "a", "a", "b", "b", "b", "b"]);
    let error = Model::fit(&points, &small, settings(Kind::Mlp), &|_| ()).unwrap_err();
    assert!(error.message.contains("no class of the reference has 5 cells"), "{error}");
    assert!(error.hints[0].contains("logreg"));
}

#[test]
fn logistic_regression_is_at_the_minimum_of_its_objective() {
    // Of two classes on one dimension the slope w solves a scalar equation: mean of (p - y) x = -w / n.
    let points = Points::new(vec![-3.0, -1.0, 0.5, -0.5, 1.0, 3.0], 1);
    let classes = Classes::of(&["a", "a", "a", "b", "b", "b"]);
    let Model::Logistic(model) = fit(Kind::Logreg, &points, &classes).model else { panic!("not logistic") };
    let arrays = Model::Logistic(model).arrays();
    let value = |index: usize| match &arrays[index].1.values {
        npy::Values::Float64(values) => values[0],
        other => panic!("{other:?}"),
    };
    let (mean, scale, weight, intercept) = (value(0), value(1), value(2), value(3));
    let (mut slope, mut level) = (weight, 0.0);
    for (cell, truth) in [0.0, 0.0, 0.0, 1.0, 1.0, 1.0].into_iter().enumerate() {
        let x = (f64::from(points.row(cell)[0]) - mean) / scale;
        let p = 1.0 / (1.0 + (-(weight * x + intercept)).exp());
        slope += (p - truth) * x;
        level += p - truth;
    }
    assert!(slope.abs() < 1e-5 && level.abs() < 1e-5, "{slope} {level}");
}
