//! The main job: a file in, an embedding, its trace and its cost out; again with resume; offline.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::place::{Done, Place, case, demo, embedding, nextflow, surround, trace};

fn arguments(extra: &[&'static str]) -> Vec<String> {
    let mut all: Vec<String> = ["embed", "--method", "pca", "--data"].map(str::to_owned).to_vec();
    all.push(demo().to_str().unwrap().to_owned());
    all.extend(extra.iter().map(|&word| word.to_owned()));
    all
}

fn record(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap()
}

#[test]
#[ignore = "engine: runs the main job three times"]
fn engine_main_job_and_its_resumption() {
    let place = Place::new();
    let reports = ["--keep-work", "--", "-with-trace", "trace.txt", "-with-report", "report.html"];
    let done = place.run(&arguments(&reports));
    done.expect(0);
    let result = place.join("results/embeddings/pca/pbmc_700.h5ad");
    assert_eq!(done.stdout, format!("{}\n", result.display()), "stdout holds the result and nothing else");
    assert!(done.stderr.contains("peak RSS") && done.stderr.contains("EMBED (pbmc_700)"), "{}", done.stderr);
    let (dims, values) = embedding(&result);
    assert_eq!((dims, values.len()), (50, 700 * 50));

    let first = place.newest();
    assert!(std::fs::metadata(first.join("report.html")).unwrap().len() > 100_000);
    let rows = trace(&first.join("trace.txt"));
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0]["status"].as_str(), rows[0]["exit"].as_str()), ("COMPLETED", "0"));
    for column in ["submit", "start", "complete", "duration", "realtime", "peak_rss", "rchar", "wchar"] {
        rows[0][column]
            .parse::<u64>()
            .unwrap_or_else(|_| panic!("{column} is {:?}, not raw", rows[0][column]));
    }
    assert!(rows[0]["peak_rss"].parse::<u64>().unwrap() > 1_000_000);
    assert_eq!(record(&first)["status"], "ok");
    let cost = std::fs::read(first.join("cost.json")).unwrap();

    for resume in [&["--resume", "--", "-with-trace", "own.txt"][..], &["--", "-resume"]] {
        // Else there would be nothing to do.
        std::fs::remove_file(&result).unwrap();
        let done = place.run(&arguments(resume));
        done.expect(0);
        assert_eq!(done.stdout, format!("{}\n", result.display()));
        let run = place.newest();
        assert_ne!(run, first);
        let rows = trace(&run.join("trace.txt"));
        assert_eq!(
            rows.iter().map(|row| row["status"].as_str()).collect::<Vec<_>>(),
            ["CACHED"],
            "{resume:?}"
        );
        assert_eq!(record(&run)["origin"], first.to_str().unwrap(), "{resume:?}");
        assert_eq!(embedding(&result).1, values);
    }
    assert_eq!(std::fs::read(first.join("cost.json")).unwrap(), cost, "the first run's cost is as it was");
    let name = first.file_name().unwrap().to_str().unwrap();
    assert!(place.run(&["cost", name]).expect(0).stdout.contains("1 executed"));
}

#[test]
#[ignore = "engine: runs the main job in a place of hostile names"]
fn engine_hostile_names_come_through() {
    let place = Place::named("it's `id` \\ \"q\" γδ 🧬");
    let names = [
        "my data [1].h5ad",
        "a'b$HOME;`id`.h5ad",
        "star*?.h5ad",
        "back\\slash \"q\".h5ad",
        "γδ 🧬.h5ad",
        "two\nlines.h5ad",
        "left/x.h5ad",
        "right/x.h5ad",
        "{a,b}.h5ad",
    ];
    let mut words = ["embed", "--method", "pca", "--data"].map(str::to_owned).to_vec();
    for name in names {
        let path = place.join("data").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(case("a06_csr_int32.h5ad"), &path).unwrap();
        words.push(format!("data/{name}"));
    }
    // What the shell would take for the first file, were the brackets not kept from it.
    std::fs::copy(demo(), place.join("data/my data 1.h5ad")).unwrap();
    words.push("--keep-work".to_owned());
    let document = place.json(&words);
    let outputs: Vec<PathBuf> =
        document["outputs"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().into()).collect();
    assert_eq!(outputs.len(), names.len());
    let first = embedding(&outputs[0]);
    for (output, name) in outputs.iter().zip(names) {
        // Two are called x, so all take their folder in.
        let stem = if name.contains('/') { name.replace('/', "_") } else { format!("data_{name}") };
        assert_eq!(output.file_name().unwrap().to_str().unwrap(), stem);
        assert_eq!(embedding(output), first, "{name:?}");
    }
    assert_eq!(trace(&place.newest().join("trace.txt")).len(), names.len());
    words.push("--resume".to_owned());
    assert_eq!(place.json(&words)["computed"], false);
    std::fs::remove_file(&outputs[0]).unwrap();
    place.json(&words);
    assert!(trace(&place.newest().join("trace.txt")).iter().all(|row| row["status"] == "CACHED"));

    let label = "it's $x \\ `id` \"q\"\nγδ";
    let done = place.run(&["check", "--label-key", label, "--data", "data/my data [1].h5ad"]);
    done.expect(0);
    let report = std::fs::read_to_string(place.join("results/check/my data [1]_check.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let messages: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["message"].as_str().unwrap())
        .collect();
    let missing = format!("obs has no column {label:?}");
    assert!(messages.iter().any(|message| message.starts_with(&missing)), "{messages:?}");
}

#[test]
fn workspace_that_nextflow_cannot_work_in_is_refused() {
    for name in ["$HOME", "{a,b}", "two\nlines"] {
        let place = Place::named(name);
        let done = place.run(&arguments(&[]));
        done.expect(3);
        assert!(done.error().contains("--workspace"), "{}", done.stderr);
        assert_eq!(std::fs::read_dir(place.root()).unwrap().count(), 0);
    }
}

#[test]
#[ignore = "engine: runs the main job without a network"]
fn engine_main_job_needs_no_network() {
    let place = Place::new();
    // Brings the engine, if it is not there.
    nextflow(place.root(), &["-version"]);
    let inside = place.command(&arguments(&[]));
    let mut command = Command::new("unshare");
    // Without root a user namespace of one's own allows it.
    command.arg(if rustix::process::geteuid().is_root() { "-n" } else { "-rn" });
    command.arg(inside.get_program()).args(inside.get_args());
    surround(&mut command, place.root());
    let done = Done::of(&command.output().unwrap());
    done.expect(0);
    assert_eq!(embedding(Path::new(done.stdout.trim_end())).0, 50);
}

/// Case C05.
#[test]
#[ignore = "engine: runs twice with the trace in the same place"]
fn engine_a_trace_that_is_there_is_no_obstacle() {
    let place = Place::new();
    let (data, file) = (demo(), place.join("trace of mine.txt"));
    let line = ["embed", "--method", "pca", "--keep-work", "--data", data.to_str().unwrap()];
    let with_trace = |more: &[&str]| {
        place.run(&[&line[..], more, &["--", "-with-trace", file.to_str().unwrap()]].concat()).expect(0);
        place.newest()
    };
    let first = with_trace(&[]);
    std::fs::remove_dir_all(place.join("results")).unwrap();
    let second = with_trace(&["--resume"]);
    assert_ne!(first, second);
    let status = |run: &Path| trace(&run.join("trace.txt"))[0]["status"].clone();
    assert_eq!((status(&first), status(&second)), ("COMPLETED".to_owned(), "CACHED".to_owned()));
    let cost = place.json(&["cost", first.to_str().unwrap()]);
    assert_eq!((&cost["totals"]["executed"], &cost["totals"]["cached"]), (&1.into(), &0.into()));
}
