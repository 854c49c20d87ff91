//! Runs that are stopped or killed.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::world::{Ended, World, data, processes_in, record, stand_in, wait_until};

/// Starts a run and waits until its engine works.
fn started(world: &World, engine: &str) -> Child {
    let data = data();
    let mut command = world.command(&["embed", "--method", "pca", "--data", &data]);
    command
        .env("SCFOUNDRY_NEXTFLOW", engine)
        .env("FAKE_SLEEP", "60")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let asleep = || processes_in(&world.root()).iter().any(|line| line.starts_with("sleep"));
    wait_until("the engine sleeps", asleep);
    child
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn an_interrupt_stops_the_engine_and_is_written_down() {
    for (number, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let world = World::new();
        let child = started(&world, &stand_in());
        let run = world.only_run();
        assert_eq!(record(&run)["status"], json!("running"));
        signal(&child, number);
        let ended = Ended::from(child.wait_with_output().unwrap());
        ended.refused(code, &["the run was stopped", "--resume"]);
        let record = record(&run);
        assert_eq!((&record["status"], &record["exit_code"]), (&json!("interrupted"), &json!(code)));
        assert_eq!(processes_in(&world.root()), Vec::<String>::new());
    }
}

#[test]
fn a_killed_program_leaves_no_engine_and_a_run_that_is_lost() {
    let world = World::new();
    // As Nextflow does, it ends its tasks when it is told to stop.
    let engine = world.script("tidy", "#!/bin/sh\ntrap 'kill $!; exit 143' TERM\nsleep 60 &\nwait\n");
    let mut child = started(&world, engine.to_str().unwrap());
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    wait_until("the stand-in has ended", || processes_in(&world.root()).is_empty());
    let runs = world.json(&["runs"]);
    assert_eq!(runs["runs"][0]["status"], json!("lost"));
    assert!(world.run(&["runs"]).succeeded().stdout.contains("lost"));
}
