//! Many runs at once, as a loop in a shell starts them.

use std::collections::BTreeSet;
use std::process::Command;

use crate::place::{Done, PROGRAM, Place, case, embedding, surround, trace};

const LAYOUTS: [&str; 4] = ["a06_csr_int32", "a06_csc_int64", "a06_dense", "a06_csr_unsorted_mixed"];

const LOOP: &str = r#"
for i in 1 2; do
    for name in "${@:3}"; do
        "$1" embed --method pca --data "$2/$name.h5ad" --outdir "out$i" --keep-work >"$name.$i.out" 2>"$name.$i.err" &
    done
done
failed=0
for job in $(jobs -p); do wait "$job" || failed=$((failed + 1)); done
exit "$failed"
"#;

#[test]
#[ignore = "engine: runs the main job eight times at once"]
fn engine_eight_at_once_in_a_new_workspace() {
    let place = Place::new();
    let mut command = Command::new("bash");
    let folder = case("");
    command.args(["-c", LOOP, "bash", PROGRAM, folder.to_str().unwrap()]).args(LAYOUTS);
    surround(&mut command, place.root());
    let done = Done::of(&command.output().unwrap());
    let said: Vec<String> = std::fs::read_dir(place.root())
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "err"))
        .map(|entry| std::fs::read_to_string(entry.path()).unwrap())
        .collect();
    assert_eq!(done.code, Some(0), "{said:#?}");

    let runs = place.runs();
    let paths: BTreeSet<&str> = runs.iter().map(|run| run["path"].as_str().unwrap()).collect();
    let sessions: BTreeSet<&str> = runs.iter().map(|run| run["session"].as_str().unwrap()).collect();
    assert_eq!((runs.len(), paths.len(), sessions.len()), (8, 8, 8));
    for run in &runs {
        assert_eq!(run["status"], "ok");
        assert_eq!(trace(&std::path::Path::new(run["path"].as_str().unwrap()).join("trace.txt")).len(), 1);
    }

    // A06: four ways to store the same counts, one embedding.
    let file = |folder: &str, name: &str| place.join(folder).join(format!("embeddings/pca/{name}.h5ad"));
    let (dims, values) = embedding(&file("out1", LAYOUTS[0]));
    assert_eq!(dims, 50);
    for name in LAYOUTS {
        assert_eq!(embedding(&file("out1", name)), embedding(&file("out2", name)), "{name}");
        assert_same_up_to_sign(name, dims, &values, &embedding(&file("out1", name)).1);
    }

    // The newest run is of another input: resume takes the one of the same.
    let oldest = runs.last().unwrap()["inputs"][0].as_str().unwrap();
    let outdir = place.join("out3");
    place
        .run(&[
            "embed",
            "--method",
            "pca",
            "--data",
            oldest,
            "--resume",
            "--outdir",
            outdir.to_str().unwrap(),
        ])
        .expect(0);
    let newest = &place.runs()[0];
    let origin = newest["origin"].as_str().unwrap();
    let of = runs.iter().find(|run| run["path"] == origin).unwrap();
    assert_eq!(of["inputs"][0], oldest);
    assert_eq!(trace(&place.newest().join("trace.txt"))[0]["status"], "CACHED");
}

fn assert_same_up_to_sign(name: &str, dims: usize, a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for column in 0..dims {
        let pairs: Vec<(f64, f64)> =
            a.iter().zip(b).skip(column).step_by(dims).map(|(a, b)| (*a, *b)).collect();
        let sign = pairs.iter().map(|(a, b)| a * b).sum::<f64>().signum();
        let worst = pairs.iter().map(|(a, b)| (a - sign * b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-5, "{name}: component {column} differs by {worst}");
    }
}
