//! What cannot be done is said once, by name, with the right exit code, and leaves nothing half done.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::place::{Done, PROGRAM, Place, case, demo, surround};

/// A copy of a case with one dataset changed.
fn changed(place: &Place, name: &str, dataset: &str, change: impl Fn(&mut Vec<i32>)) -> PathBuf {
    let path = place.join(name);
    std::fs::copy(case("a06_csr_int32.h5ad"), &path).unwrap();
    let file = hdf5_metno::File::open_rw(&path).unwrap();
    let dataset = file.dataset(dataset).unwrap();
    let mut values = dataset.read_raw::<i32>().unwrap();
    change(&mut values);
    dataset.write_raw(&values).unwrap();
    file.close().unwrap();
    path
}

fn with_data<'a>(start: &[&'a str], files: &'a [PathBuf]) -> Vec<&'a str> {
    start.iter().copied().chain(files.iter().map(|file| file.to_str().unwrap())).collect()
}

#[test]
#[ignore = "engine: embeds one bad file among three"]
fn engine_one_bad_file_does_not_stop_the_others() {
    let place = Place::new();
    let files =
        [case("a06_csr_int32.h5ad"), case("a14_lognorm_counts_in_layer.h5ad"), case("a06_dense.h5ad")];
    let done = place.run(&with_data(&["embed", "--method", "pca", "--data"], &files));
    done.expect(3);
    assert!(
        done.error().contains("a14_lognorm_counts_in_layer.h5ad does not hold raw counts"),
        "{}",
        done.stderr
    );
    assert!(done.error().contains("layers/counts"), "{}", done.stderr);
    let published: Vec<&str> = done.stdout.lines().collect();
    let result = |name: &str| place.join(format!("results/embeddings/pca/{name}.h5ad"));
    assert_eq!(
        published,
        [result("a06_csr_int32"), result("a06_dense")].map(|path| path.display().to_string())
    );
    assert!(published.iter().all(|path| Path::new(path).is_file()));
    assert!(!result("a14_lognorm_counts_in_layer").exists());
    assert_eq!(place.runs()[0]["status"], "failed");
    assert_eq!(place.runs()[0]["exit_code"], 3);

    let scaled = [case("a14_scaled_counts_in_raw.h5ad")];
    let done = place.run(&with_data(&["embed", "--method", "pca", "--data"], &scaled));
    done.expect(3);
    assert_eq!(done.stdout, "");
    assert!(
        done.error().contains("a14_scaled_counts_in_raw.h5ad") && done.error().contains("raw"),
        "{}",
        done.stderr
    );
}

#[test]
#[ignore = "engine: checks all case files"]
fn engine_check_judges_every_case() {
    let place = Place::new();
    for bad in ["a08_truncated.h5ad", "a08_empty.h5ad", "a08_not_hdf5.h5ad"] {
        let done = place.run(&["check", "--data", case(bad).to_str().unwrap()]);
        done.expect(3);
        assert!(done.error().contains(bad), "{}", done.stderr);
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(case(""))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "h5ad"))
        .filter(|path| !path.to_string_lossy().contains("a08_"))
        .collect();
    files.sort();
    assert!(files.len() > 20);
    let report = place.json(&with_data(&["check", "--method", "scgpt", "--data"], &files));
    let reports = report["reports"].as_array().unwrap();
    assert_eq!(reports.len(), files.len());
    let of = |name: &str| -> &Value {
        reports.iter().find(|report| report["file"].as_str().unwrap().contains(name)).unwrap()
    };
    let said = |name: &str| of(name).to_string();
    for failing in ["a14_lognorm", "a14_scaled", "e01_mouse", "e03_integer"] {
        assert_eq!(of(failing)["verdict"], "FAIL", "{failing}: {}", said(failing));
    }
    assert_ne!(of("a06_dense")["facts"], Value::Null);
    assert!(said("a14_lognorm").contains("layers/counts"));
    assert!(said("a14_scaled").contains("raw"));
    assert!(said("e01_mouse").contains("mouse"));
    assert!(said("e03_integer").contains("feature_name"));

    let data = case("e03_integer_gene_index.h5ad");
    let done = place.run(&["check", "--strict", "--data", data.to_str().unwrap()]);
    done.expect(3);
    assert!(done.error().contains("e03_integer_gene_index.h5ad failed the check"), "{}", done.stderr);
}

#[test]
#[ignore = "engine: embeds and checks damaged files"]
fn engine_damaged_matrices_are_refused() {
    let place = Place::new();
    let files = [
        changed(&place, "far.h5ad", "X/indices", |indices| indices[7] = 1_000_000),
        changed(&place, "wrapped.h5ad", "X/indptr", |pointers| pointers[9] = -2_147_483_000),
    ];
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        for start in [&["embed", "--method", "pca", "--data"][..], &["check", "--data"]] {
            let done = place.run(&with_data(start, std::slice::from_ref(&file)));
            done.expect(3);
            assert!(done.error().contains(&name), "{}", done.stderr);
            assert_eq!(done.stdout, "", "{name}");
        }
    }
}

/// Runs the main job with its results on a disk of its own; then the files that are on that disk.
fn with_small_disk(place: &Place, size: &str, more: &[&str]) -> (Done, String) {
    std::fs::create_dir_all(place.join("small")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size={size} none small && \"$@\"; code=$?; find small -type f >left; exit $code"
    );
    let inside = place.command(&["embed", "--method", "pca", "--outdir", "small", "--data"]);
    let mut command = Command::new("unshare");
    // Without root a user namespace of one's own allows it.
    command.arg(if rustix::process::geteuid().is_root() { "-m" } else { "-rm" });
    command.args(["sh", "-c", &script, "sh"]).arg(inside.get_program()).args(inside.get_args());
    command.arg(demo()).args(more);
    surround(&mut command, place.root());
    let done = Done::of(&command.output().unwrap());
    (done, std::fs::read_to_string(place.join("left")).unwrap())
}

#[test]
#[ignore = "engine: finds no space for the results of the main job"]
fn engine_small_disk_is_refused_before_anything_is_written() {
    let place = Place::new();
    let (done, left) = with_small_disk(&place, "60k", &[]);
    done.expect(4);
    let error = done.error();
    assert!(error.starts_with("error: not enough disk space in "), "{error}");
    // 700 cells x 50 components x 4 bytes, and the annotation of the cells.
    for part in ["small", "at least 288.6 KiB needed (results 288.6 KiB), 60.0 KiB free", "--outdir"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!((done.stdout.as_str(), left.as_str()), ("", ""));
    assert!(!place.join("runs").exists() && !place.join(".scfoundry.json").exists());
    let (done, _) = with_small_disk(&place, "60k", &["--dry-run"]);
    done.expect(0);
    assert!(done.stderr.contains("warning: not enough disk space in "), "{}", done.stderr);
    assert!(done.stdout.lines().any(|line| line.starts_with("Disk ") && line.contains("results 288.6")));
    let plan = place.json(&["embed", "--method", "pca", "--dry-run", "--data", demo().to_str().unwrap()]);
    let shares = plan["plan"]["disk"]["shares"].as_array().unwrap();
    let least = shares.iter().find(|share| share["part"] == "results").unwrap()["bytes"].as_u64().unwrap();
    place.run(&["embed", "--method", "pca", "--data", demo().to_str().unwrap()]).expect(0);
    let written = std::fs::metadata(place.join("results/embeddings/pca/pbmc_700.h5ad")).unwrap().len();
    assert!((written / 2..=written).contains(&least), "{least} of {written}");
}

#[test]
#[ignore = "engine: runs the main job with results on a disk that fills up"]
fn engine_full_disk_is_one_error_and_no_file() {
    let place = Place::new();
    // Somebody else takes the space that was there when the run began.
    let filler = "head -c 1000000 /dev/zero >\"$SCFOUNDRY_WORKSPACE/small/filler\"";
    let program = place.script("greedy", &format!("#!/bin/sh\n{filler}\nexec {PROGRAM} \"$@\"\n"));
    place.write("greedy.config", &format!("env.SCFOUNDRY = '{}'\n", program.display()));
    let (done, left) = with_small_disk(&place, "1m", &["--config", "greedy.config"]);
    done.expect(4);
    assert!(done.error().contains("pbmc_700.h5ad") && done.error().contains("space"), "{}", done.stderr);
    assert!(!done.error().contains("not enough disk space in"), "{}", done.stderr);
    assert_eq!((done.stdout.as_str(), left.as_str()), ("", "small/filler\n"));
    assert_eq!(place.runs()[0]["exit_code"], 4);
    // With space again nothing has to be computed again.
    let done = place.run(&["embed", "--method", "pca", "--resume", "--data", demo().to_str().unwrap()]);
    done.expect(0);
    assert!(done.stderr.contains("reused"), "{}", done.stderr);
}

#[test]
#[ignore = "engine: runs the main job whose work directory is held fast"]
fn engine_work_that_cannot_be_removed_is_a_warning() {
    let place = Place::new();
    place.write("held.config", "process.afterScript = 'mkdir held && mount -t tmpfs none held'\n");
    let inside = place.command(&["embed", "--method", "pca", "--config", "held.config", "--data"]);
    let mut command = Command::new("unshare");
    command.arg(if rustix::process::geteuid().is_root() { "-m" } else { "-rm" });
    command.arg(inside.get_program()).args(inside.get_args()).arg(demo());
    surround(&mut command, place.root());
    let done = Done::of(&command.output().unwrap());
    done.expect(0);
    assert!(done.stderr.contains("warning: the run went well, but some of its work"), "{}", done.stderr);
    assert!(Path::new(done.stdout.trim_end()).is_file());
    let run = place.newest();
    assert_eq!(place.runs()[0]["status"], "ok");
    assert!(!run.join("work").exists() && run.join(".removing-work").is_dir());
    assert!(!run.join("outputs").exists());
    // The next removal takes it along, since nothing holds it any more.
    place.run(&["clean", "--work"]).expect(0);
    assert!(!run.join(".removing-work").exists());
}
