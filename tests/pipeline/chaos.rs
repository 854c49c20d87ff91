//! Runs that are killed at a random moment, at a random place, and resumed: nothing is lost, left behind or cut short.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::{PROGRAM, Place, assert_nobody_in, demo};

const RUNS: u64 = 50;

/// Runs that are under way at a time.
const SIDE_BY_SIDE: u64 = 2;

/// Whoever is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Program,
    Engine,
    Task,
}

const TARGETS: [Target; 3] = [Target::Program, Target::Engine, Target::Task];
const SIGNALS: [(Signal, &str); 4] =
    [(Signal::INT, "INT"), (Signal::TERM, "TERM"), (Signal::HUP, "HUP"), (Signal::KILL, "KILL")];

#[test]
#[ignore = "chaos: kills 50 runs and resumes them"]
fn chaos_killed_runs_end_as_if_nothing_had_happened() {
    let calm = Place::new();
    let start = Instant::now();
    let done = command(&calm, &[]).wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let (length, expected) = (start.elapsed(), results(&calm));
    assert_eq!(expected.len(), 1);
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..SIDE_BY_SIDE)
            .map(|lane| {
                let expected = &expected;
                let run = move |seed| disturb(seed, length, expected);
                scope.spawn(move || (lane..RUNS).step_by(SIDE_BY_SIDE as usize).map(run).collect::<Vec<_>>())
            })
            .collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    let mut counts: BTreeMap<(Target, &str, String), usize> = BTreeMap::new();
    for Outcome { target, signal, status } in outcomes {
        *counts.entry((target, signal, status)).or_default() += 1;
    }
    for ((target, signal, status), count) in counts {
        println!("{count:>3} x {target:?} {signal}: {status}");
    }
}

struct Outcome {
    target: Target,
    signal: &'static str,
    /// What the record says of the run that was killed.
    status: String,
}

/// Starts a run, kills, and resumes; everything has to be as it was without.
fn disturb(seed: u64, length: Duration, expected: &BTreeMap<PathBuf, Vec<u8>>) -> Outcome {
    let mut random = fastrand::Rng::with_seed(seed);
    let (target, (signal, name)) = (random.choice(TARGETS).unwrap(), random.choice(SIGNALS).unwrap());
    let what = format!("run {seed}, {target:?} {name}");
    let place = Place::new();
    let child = command(&place, &[]);
    let moment = Instant::now() + length.mul_f64(random.f64());
    let process = loop {
        match find(&place, &child, target) {
            Some(process) if Instant::now() >= moment => break Some(process),
            _ if Instant::now() > moment + length * 2 => break None,
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    // A process that has just ended cannot be killed any more, which is a moment as good as any.
    process.map(|process| kill_process(process, signal));
    let output = child.wait_with_output().unwrap();
    assert_nobody_in(place.root());
    let runs = place.runs();
    let status =
        runs.first().map_or("no run yet".to_owned(), |run| run["status"].as_str().unwrap().to_owned());
    let stderr = String::from_utf8_lossy(&output.stderr);
    let possible = ["no run yet", "ok", "failed", "interrupted", "lost"];
    assert!(possible.contains(&status.as_str()), "{what}: {status}\n{stderr}");
    assert!(output.status.success() == (status == "ok"), "{what}: {status} {}\n{stderr}", output.status);
    let results_now = results(&place);
    for (path, bytes) in &results_now {
        assert!(expected.get(path) == Some(bytes), "{what}: {} is not whole", path.display());
    }
    let resume = if runs.is_empty() { &[][..] } else { &["--resume"][..] };
    let again = command(&place, resume).wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success(), "{what}, {status}, then: {}\n{stderr}", again.status);
    assert!(results(&place) == *expected, "{what}, {status}: another result\n{stderr}");
    assert_nobody_in(place.root());
    let states: Vec<Value> = place.runs().into_iter().map(|run| run["status"].clone()).collect();
    assert_eq!(states[0], "ok", "{what}: {states:?}");
    Outcome { target, signal: name, status }
}

/// The main job, with half a second in front of the task's work so that the task can be met.
fn command(place: &Place, more: &[&str]) -> Child {
    let wrapper = place.script("slow", &format!("#!/bin/sh\nsleep 0.5\n{PROGRAM} \"$@\"\n"));
    place.write("slow.config", &format!("env.SCFOUNDRY = '{}'\n", wrapper.display()));
    let mut command = place.command(&["embed", "--method", "pca", "--config", "slow.config", "--data"]);
    command.arg(demo()).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The process to kill, if it is there.
fn find(place: &Place, child: &Child, target: Target) -> Option<Pid> {
    let program = Pid::from_child(child);
    if target == Target::Program {
        return Some(program);
    }
    let is_task = |cwd: &Path| cwd.components().any(|part| part.as_os_str() == "work");
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let process = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let cwd = std::fs::read_link(entry.path().join("cwd")).ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let is_engine = line.split(|byte| *byte == 0).any(|word| word == b"nextflow.cli.Launcher");
        let fits = match target {
            Target::Task => is_task(cwd.strip_prefix(place.root()).ok()?),
            _ => is_engine && cwd.starts_with(place.root()),
        };
        (fits && process != program).then_some(process)
    })
}

/// Everything below the results, by its path there: whole files, half ones too if there were any.
fn results(place: &Place) -> BTreeMap<PathBuf, Vec<u8>> {
    let root = place.join("results");
    let mut found = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let bytes = std::fs::read(&path).unwrap();
                    found.insert(path.strip_prefix(&root).unwrap().to_owned(), bytes);
                }
            }
        }
    }
    found
}
