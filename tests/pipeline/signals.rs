//! Stopping and killing the whole program: nothing stays behind, the record says what happened, the work goes on from there.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Done, PROGRAM, Place, assert_nobody_in, demo, processes_in, trace, wait_for};

fn slow(place: &Place) -> Child {
    // A user's own configuration is the last word, and so can put something slow in front of the task's work.
    let wrapper = place.script("slow", &format!("#!/bin/sh\nsleep 301\nexec {PROGRAM} \"$@\"\n"));
    place.write("slow.config", &format!("env.SCFOUNDRY = '{}'\n", wrapper.display()));
    let mut command = place.command(&["embed", "--method", "pca", "--config", "slow.config", "--data"]);
    command.arg(demo()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let sleeps = || processes_in(place.root()).iter().any(|line| line.starts_with("sleep 301"));
    assert!(wait_for(120, sleeps), "no task within two minutes: {:#?}", processes_in(place.root()));
    child
}

fn resume(place: &Place) {
    let done = place.run(&["embed", "--method", "pca", "--resume", "--data", demo().to_str().unwrap()]);
    done.expect(0);
    assert!(place.join("results/embeddings/pca/pbmc_700.h5ad").is_file());
    assert_eq!(place.runs()[0]["status"], "ok");
}

#[test]
#[ignore = "engine: interrupts the main job"]
fn engine_interrupted_run_says_so_and_can_be_resumed() {
    let place = Place::new();
    let child = slow(&place);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = Done::of(&child.wait_with_output().unwrap());
    done.expect(130);
    assert!(done.error().contains("--resume"), "{}", done.stderr);
    assert_eq!(done.stdout, "");
    assert_nobody_in(place.root());
    let run = &place.runs()[0];
    assert_eq!((run["status"].as_str(), run["exit_code"].as_i64()), (Some("interrupted"), Some(130)));
    let rows = trace(&place.newest().join("trace.txt"));
    assert_eq!(rows.iter().map(|row| row["status"].as_str()).collect::<Vec<_>>(), ["ABORTED"]);
    assert!(!place.join("results/embeddings").exists());
    resume(&place);
}

#[test]
#[ignore = "engine: kills the program in the main job"]
fn engine_killed_run_is_lost_and_can_be_resumed() {
    let place = Place::new();
    let mut child = slow(&place);
    assert_eq!(place.runs()[0]["status"], "running");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_nobody_in(place.root());
    assert_eq!(place.runs()[0]["status"], "lost");
    resume(&place);
}
