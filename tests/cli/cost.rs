//! `cost` on traces of other pipelines and of our runs.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::works::Works;
use crate::world::{Ended, World, case, data, wait_until};

fn row<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in:\n{text}"))
}

/// Case C01.
#[test]
fn units_dashes_and_unfinished_tasks() {
    let world = World::new();
    let text = world.run(&["cost", &case("c01_trace_units.txt")]).succeeded().stdout;
    assert!(row(&text, "EMBED:PREPARE").contains('-'), "{text}");
    assert!(row(&text, "total, 5 executed").ends_with("unfinished"), "{text}");
    assert!(text.contains("2 tasks are without metrics") && text.contains("1 task is unfinished"), "{text}");
    let document = world.json(&["cost", &case("c01_trace_units.txt")]);
    let totals = document["totals"].to_string();
    for number in ["102383306", "1649626825", "1649267441664"] {
        assert!(totals.contains(number), "no {number} in {totals}");
    }
}

#[test]
fn traces_without_tasks_or_cut_short() {
    let world = World::new();
    for name in ["c01_trace_header_only.txt", "c01_trace_zero_bytes.txt"] {
        let text = world.run(&["cost", &case(name)]).succeeded().stdout;
        assert!(text.starts_with("no tasks: ") && text.contains(name), "{text}");
        world.json(&["cost", &case(name)]);
    }
    let text = world.run(&["cost", &case("c01_trace_cut_last_line.txt")]).succeeded().stdout;
    assert!(text.contains("line 3, the last, is cut short") && text.contains("total, 1 executed"), "{text}");
}

/// Case C03.
#[test]
fn cached_and_repeated_rows_are_no_cost() {
    let world = World::new();
    let text = world.run(&["cost", &case("c03_trace_cached_duplicates.txt")]).succeeded().stdout;
    assert!(row(&text, "total, 2 executed").contains("10m 30s"), "{text}");
    assert!(text.contains("2 tasks are cached: 1h 56m saved"), "{text}");
}

#[test]
fn the_disk_that_a_run_leaves_is_told() {
    let works = Works::new();
    works.run("kept", &["--keep-work"]).succeeded();
    let cost = works.world.json(&["cost", "kept"]);
    let bytes = |name: &str| cost["disk"][name].as_u64().unwrap();
    let of_task = cost["tasks"][0]["disk_bytes"].as_u64().unwrap();
    assert!(of_task > 0 && bytes("work_bytes") >= of_task && bytes("results_bytes") > 0, "{}", cost["disk"]);
    assert_eq!(bytes("left_bytes"), bytes("results_bytes") + bytes("work_bytes"));
    let table = works.world.run(&["cost", "kept", "--csv"]).succeeded().stdout;
    let mut lines = table.lines();
    assert!(lines.next().unwrap().ends_with(",disk_bytes,run_results_bytes,run_work_bytes,run_left_bytes"));
    let numbers = [of_task, bytes("results_bytes"), bytes("work_bytes"), bytes("left_bytes")];
    let numbers = numbers.map(|number| number.to_string()).join(",");
    assert!(lines.next().unwrap().ends_with(&format!(",{numbers}")), "{table}");
    let detail = works.world.run(&["cost", "kept", "--detail"]).succeeded().stdout;
    assert!(detail.contains("disk in use: results "), "{detail}");

    std::fs::remove_dir_all(works.directory("kept").join("work")).unwrap();
    let cost = works.world.json(&["cost", "kept"]);
    assert_eq!((&cost["disk"]["work_bytes"], &cost["tasks"][0]["disk_bytes"]), (&json!(0), &Value::Null));
    assert_eq!(cost["tasks"][0]["cells"], 80, "what was recorded stays");
    let foreign = works.world.json(&["cost", works.directory("kept").join("trace.txt").to_str().unwrap()]);
    assert_eq!(foreign["disk"], cost["disk"], "the trace of a run of ours");
    assert_eq!(works.world.json(&["cost", &case("c01_trace_units.txt")])["disk"], Value::Null);
}

/// Case F01.
#[test]
fn a_task_killed_for_memory_is_not_clean() {
    let world = World::new();
    for path in ["f01_slurm_oom", "f01_slurm_oom/trace.txt"] {
        let ended = world.run(&["cost", &case(path)]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stdout.contains("7.9 GiB") && ended.stdout.contains("killed for memory"), "{ended:?}");
        assert!(ended.stderr.contains("is not clean"), "{ended:?}");
        let ended = world.run(&["cost", &case(path), "--json"]);
        assert_eq!(ended.code, Some(1));
        serde_json::from_str::<Value>(&ended.stdout).unwrap();
    }
}

#[test]
fn rows_for_a_spreadsheet() {
    let world = World::new();
    let text = world.run(&["cost", "--csv", &case("c01_trace_units.txt")]).succeeded().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7);
    let columns = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == columns), "{text}");
    let both = [&case("c01_trace_units.txt"), &case("c03_trace_cached_duplicates.txt")];
    let text = world.run(&["cost", "--csv", both[0], both[1]]).succeeded().stdout;
    assert_eq!(text.lines().count(), 1 + 6 + 4);
}

#[test]
fn several_are_compared() {
    let world = World::new();
    let both = [&case("c01_trace_units.txt"), &case("c03_trace_cached_duplicates.txt")];
    let text = world.run(&["cost", both[0], both[1]]).succeeded().stdout;
    assert_eq!(text.lines().count(), 3 + 2 + 3, "{text}");
    assert!(row(&text, both[1].as_str()).ends_with("ok"), "{text}");
    let document = world.json(&["cost", both[0], both[1]]);
    assert_eq!(document["runs"].as_array().unwrap().len(), 2, "{document}");
}

#[test]
fn money_where_rates_are_set() {
    let world = World::with_workspace("none");
    world.write("here/scfoundry.toml", "[rates]\ncurrency = \"EUR\"\ncpu_hour = 1.0\ngpu_hour = 2.0\n");
    let text = world.run(&["cost", &case("c03_trace_cached_duplicates.txt")]).succeeded().stdout;
    assert!(text.contains("EUR"), "{text}");
}

#[test]
fn runs_of_the_workspace_by_name_or_the_newest() {
    let world = World::with_workspace("none");
    let trace = std::fs::read_to_string(case("c03_trace_cached_duplicates.txt")).unwrap();
    let engine = world.script("engine", &format!("#!/bin/sh\ncat > trace.txt <<'END'\n{trace}\nEND\n"));
    std::os::unix::fs::symlink("/bin/cat", world.root().join("bin/cat")).unwrap();
    let mut command =
        world.command(&["embed", "--method", "pca", "--data", &data(), "--run-name", "one", "--json"]);
    command.env("SCFOUNDRY_NEXTFLOW", engine);
    let ended = Ended::of(command);
    // It ran tasks but left no result.
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("was not written"), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["status"], json!("failed"));
    let newest = world.json(&["cost"]);
    assert_eq!(newest, world.json(&["cost", "one"]));
    assert_eq!(newest, world.json(&["cost", "runs/embed/one"]));
    assert_eq!(newest["totals"], document["cost"]["totals"]);
    assert!(world.here().join("runs/embed/one/cost.json").is_file());
    world.refuses(&["cost", "two"], 3, &["two is neither a run nor a trace file", "scfoundry runs"]);
}

/// What only the work directories told is in the run's own record of its cost.
#[test]
fn a_run_without_its_work_still_knows_its_cost() {
    let world = World::with_workspace("none");
    let row = "task_id\thash\tname\tstatus\texit\trealtime\tcpus\n1\tab/123456\tEMBED (x)\tCOMPLETED\t0\t3600000\t2";
    let usage = r#"{"kind": "kernel", "cells": 80, "peak_rss_bytes": 1048576, "device": "NVIDIA T4"}"#;
    let engine = format!(
        "#!/bin/sh\nmkdir -p work/ab/123456\necho '{usage}' > work/ab/123456/usage.json\nprintf '{row}\\n' > trace.txt\n"
    );
    let engine = world.script("engine", &engine.replace('\t', "\\t"));
    std::os::unix::fs::symlink("/bin/mkdir", world.root().join("bin/mkdir")).unwrap();
    let mut command = world.command(&["embed", "--method", "pca", "--data", &data(), "--run-name", "one"]);
    command.env("SCFOUNDRY_NEXTFLOW", engine);
    Ended::of(command);
    let run = world.here().join("runs/embed/one");
    let mut before = world.json(&["cost", "one"]);
    assert_eq!(before["tasks"][0]["cells"], 80, "{before:#}");
    assert!(before["disk"]["work_bytes"].as_u64().unwrap() > 0, "{before:#}");
    world.run(&["clean", "--work"]).succeeded();
    assert!(!run.join("work").exists());
    // Only the disk is another.
    before["disk"] = json!({"results_bytes": 0, "work_bytes": 0, "left_bytes": 0});
    before["tasks"][0].as_object_mut().unwrap().shift_remove("disk_bytes").unwrap();
    assert_eq!(world.json(&["cost", "one"]), before);
    let text = world.run(&["cost"]).succeeded().stdout;
    assert!(text.contains("1.0 MiB") && text.contains("GPU-hours: 1.000"), "{text}");

    world.write("here/scfoundry.toml", "[rates]\ncurrency = \"EUR\"\ncpu_hour = 1.0\ngpu_hour = 5.0\n");
    let text = world.run(&["cost"]).succeeded().stdout;
    assert!(text.contains("price: 7.00 EUR"), "{text}");
    let changed = |path: &str, from: &str, to: &str| {
        let path = run.join(path);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "no {from} in {text}");
        std::fs::write(&path, text.replace(from, to)).unwrap();
    };
    // The engine was run again by hand.
    changed("trace.txt", "123456", "654321");
    assert_eq!(world.json(&["cost", "one"])["tasks"][0]["cells"], Value::Null);
    changed("trace.txt", "654321", "123456");
    assert_eq!(world.json(&["cost", "one"])["tasks"][0]["cells"], 80);
    // A run that has not ended has not written its cost.
    changed("run.json", "\"failed\"", "\"running\"");
    changed("run.json", "\"pid_started\": ", "\"pid_started\": 1");
    assert_eq!(world.json(&["runs"])["runs"][0]["status"], "lost");
    assert_eq!(world.json(&["cost", "one"])["tasks"][0]["cells"], Value::Null);
}

/// An engine that ends one task, and then waits for a file before it ends another and itself, with this exit code.
fn two_tasks(world: &World, code: i32) -> std::path::PathBuf {
    let header = "task_id\\thash\\tname\\tstatus\\texit\\trealtime\\tcpus";
    let row = |number: u8| {
        format!("{number}\\tab/00000{number}\\tEMBED (x{number})\\tCOMPLETED\\t0\\t{number}000\\t1")
    };
    let text = format!(
        "#!/bin/sh\nprintf '{header}\\n{}\\n' > trace.txt\nuntil [ -e go ]; do sleep 0.05; done\n\
         printf '{}\\n' >> trace.txt\nexit {code}\n",
        row(1),
        row(2)
    );
    world.script("engine", &text)
}

/// Starts a run that waits for the file `go`; gives it and its directory once its first task has ended.
fn waiting_run(world: &World, code: i32) -> (std::process::Child, std::path::PathBuf) {
    let engine = two_tasks(world, code);
    let data = data();
    let mut command = world.command(&["embed", "--method", "pca", "--data", &data, "--run-name", "one"]);
    command.env("SCFOUNDRY_NEXTFLOW", engine).stdout(Stdio::null()).stderr(Stdio::null());
    let run = command.spawn().unwrap();
    let directory = world.here().join("runs/embed/one");
    wait_until("a task has ended", || directory.join("trace.txt").exists());
    (run, directory)
}

#[test]
fn a_running_run_is_followed_to_its_end() {
    let world = World::with_workspace("none");
    let (mut run, directory) = waiting_run(&world, 1);
    let mut command = world.command(&["cost", "--follow"]);
    let mut follow = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut lines = BufReader::new(follow.stdout.take().unwrap());
    lines.read_line(&mut first).unwrap();
    assert_eq!(first, "EMBED (x1) done in 1.0 s\n");
    std::fs::write(directory.join("go"), "").unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    let ended = follow.wait_with_output().unwrap();
    run.wait().unwrap();
    let summary = rest.strip_prefix("EMBED (x2) done in 2.0 s\n").expect(&rest);
    assert_eq!(summary, world.run(&["cost", "one"]).succeeded().stdout);
    let errors = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{errors}");
    assert!(errors.contains("run one is failed"), "{errors}");
    // It has ended: its cost at once.
    let again = world.run(&["cost", "--follow", "one"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(1), summary));
    world.refuses(&["cost", "--follow"], 3, &["no run in", "is running"]);
    world.refuses(&["cost", "--follow", "one", "two"], 2, &["watches one run"]);
}

#[test]
fn running_runs_are_shown_with_what_they_do() {
    let world = World::with_workspace("none");
    assert_eq!(world.run(&["top"]).succeeded().stdout, "no run of this workspace is running\n");
    let (mut run, directory) = waiting_run(&world, 1);
    let shown = world.json(&["top"])["runs"][0].clone();
    assert_eq!((&shown["name"], &shown["task"]), (&"one".into(), &"embed".into()));
    let stage = &shown["stages"][0];
    assert_eq!((&stage["process"], &stage["done"]), (&"EMBED".into(), &1.into()), "{shown}");
    let table = world.run(&["top", "--once"]).succeeded().stdout;
    assert!(table.lines().nth(1).is_some_and(|line| line.starts_with("one ")), "{table}");
    std::fs::write(directory.join("go"), "").unwrap();
    run.wait().unwrap();
    assert_eq!(world.json(&["top"])["runs"], serde_json::json!([]));
}

#[test]
fn an_interrupt_ends_the_watching_only() {
    let world = World::with_workspace("none");
    let (mut run, directory) = waiting_run(&world, 0);
    let mut command = world.command(&["cost", "--follow", "one", "--json"]);
    let follow = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It watches for signals before it looks at the trace, and a stop at its first look is a stop as well.
    std::thread::sleep(std::time::Duration::from_secs(1));
    kill_process(Pid::from_child(&follow), Signal::INT).unwrap();
    let ended = Ended::from(follow.wait_with_output().unwrap());
    ended.refused(130, &["EMBED (x1) done", "run one goes on"]);
    assert_eq!(world.json(&["runs"])["runs"][0]["status"], "running");
    std::fs::write(directory.join("go"), "").unwrap();
    run.wait().unwrap();
    assert_eq!(world.json(&["cost", "one"])["totals"]["completed"], 2);
}
