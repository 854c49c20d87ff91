//! Removing runs and their work.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::world::{Ended, World, data, record};

/// A workspace with a run that went well, one that failed, and work of 1 MiB in each.
fn two_runs() -> (World, [PathBuf; 2]) {
    let world = World::with_workspace("none");
    for (name, exit) in [("good", "0"), ("bad", "1")] {
        let mut command =
            world.command_stand_in(&["embed", "--method", "pca", "--data", &data(), "--run-name", name]);
        command.env("FAKE_RC", exit);
        Ended::of(command);
        let work = world.here().join("runs/embed").join(name).join("work/ab");
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(work.join("matrix"), vec![7; 1 << 20]).unwrap();
    }
    world.write("here/results/embeddings/kept.h5ad", "result");
    let runs = ["good", "bad"].map(|name| world.here().join("runs/embed").join(name));
    assert_eq!([&record(&runs[0])["status"], &record(&runs[1])["status"]], ["ok", "failed"]);
    (world, runs)
}

fn exists(paths: &[PathBuf; 2]) -> [bool; 2] {
    [paths[0].exists(), paths[1].exists()]
}

#[test]
fn it_is_refused_without_a_choice_and_outside_a_workspace() {
    let (world, _) = two_runs();
    world.refuses(&["clean"], 2, &["which runs", "--older-than 30d", "--failed", "--work", "--dry-run"]);
    world.refuses(&["clean", "--dry-run"], 2, &["which runs"]);
    for age in ["30", "3x", "-1d", "1.5d", ""] {
        world.refuses(&["clean", "--older-than", age], 2, &["--older-than", "12h, 30d, 4w"]);
    }
    world.refuses(&["clean", "neither", "good"], 3, &["neither is not a run", "scfoundry runs"]);
    World::new().refuses(&["clean", "--failed"], 3, &["no workspace"]);
}

#[test]
fn a_dry_run_shows_what_would_go_and_writes_nothing() {
    let (world, _) = two_runs();
    let before = world.listing();
    let text = world.run(&["clean", "--older-than", "0h", "--dry-run"]).succeeded().stdout;
    assert_eq!(world.listing(), before);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["run", "status", "age", "would", "go", "size"]
    );
    assert!(lines[3].starts_with("2 runs, 2.") && lines[3].ends_with(" MiB would be freed"), "{text}");
    let text = world.run(&["clean", "--work", "--dry-run"]).succeeded().stdout;
    assert!(text.contains("  work  ") && text.contains("2 runs, 2.0 MiB would be freed"), "{text}");
    assert_eq!(world.listing(), before);
}

#[test]
fn work_goes_and_the_runs_are_still_known() {
    let (world, runs) = two_runs();
    let trace = "task_id\tname\tstatus\texit\trealtime\n1\tEMBED (x)\tCOMPLETED\t0\t1s\n";
    std::fs::write(runs[0].join("trace.txt"), trace).unwrap();
    let text = world.run(&["clean", "--work"]).succeeded().stdout;
    assert!(text.ends_with("2 runs, 2.0 MiB freed\n"), "{text}");
    assert!(runs.iter().all(|run| !run.join("work").exists() && run.join("run.json").is_file()));
    assert_eq!(world.json(&["runs"])["runs"].as_array().unwrap().len(), 2);
    assert_eq!(world.json(&["cost", "good"])["tasks"].as_array().unwrap().len(), 1);
    let again = world.run(&["clean", "--work"]).succeeded();
    assert_eq!(again.stdout, "");
    assert!(again.stderr.contains("nothing to remove"), "{again:?}");
}

#[test]
fn runs_go_by_outcome_and_results_stay() {
    let (world, runs) = two_runs();
    let gone = world.json(&["clean", "--failed"]);
    assert_eq!((&gone["dry_run"], &gone["failures"]), (&json!(false), &json!(0)));
    let entry = &gone["removed"][0];
    assert_eq!((&entry["name"], &entry["status"]), (&json!("bad"), &json!("failed")));
    assert_eq!((&entry["part"], &entry["path"]), (&json!("run"), &json!(runs[1])));
    assert!(entry["bytes"].as_u64().unwrap() > 1 << 20 && entry["age_seconds"].is_u64(), "{gone}");
    assert_eq!(gone["freed_bytes"], entry["bytes"]);
    assert_eq!(exists(&runs), [true, false]);
    world.run(&["clean", "good"]).succeeded();
    assert_eq!(exists(&runs), [false, false]);
    assert_eq!(world.json(&["runs"])["runs"], json!([]));
    let here = |path: &str| world.here().join(path);
    assert!(!here("runs/embed").exists() && here("runs").is_dir());
    for kept in ["results/embeddings/kept.h5ad", ".scfoundry.json", "data/model_weights", "methods"] {
        assert!(here(kept).exists(), "{kept}");
    }
}

#[test]
fn a_run_whose_first_run_is_gone_cannot_be_resumed() {
    let (world, runs) = two_runs();
    let mut changed = record(&runs[0]);
    changed["origin"] = json!(runs[1]);
    changed["session"] = json!("some");
    std::fs::write(runs[0].join("run.json"), changed.to_string()).unwrap();
    world.run(&["clean", "bad"]).succeeded();
    let line = ["embed", "--method", "pca", "--data", &data(), "--resume", "good"];
    let ended = world.run_stand_in(&line);
    ended.refused(3, &["cannot be resumed", "runs/embed/bad, which has been removed", "without `--resume`"]);
    assert!(!Path::new(&runs[1]).exists());
}

#[test]
fn what_cannot_be_removed_is_named_and_the_rest_goes() {
    let (world, runs) = two_runs();
    let claim = std::fs::File::create(runs[0].join(".lock")).unwrap();
    claim.lock().unwrap();
    let ended = world.run(&["clean", "--older-than", "0h"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("warning: run ") && ended.stderr.contains("in use by another process"));
    assert!(ended.stderr.contains("error: 1 directory was not removed"), "{ended:?}");
    assert!(ended.stdout.contains("1 run, "), "{ended:?}");
    assert_eq!(exists(&runs), [true, false]);
}
