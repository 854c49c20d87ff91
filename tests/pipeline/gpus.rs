//! Runs that share cards: what their tasks see of each other.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cards::Cards;
use crate::methods::Method;
use crate::place::{Done, Place, case, path_with, wait_for};

const LAYOUTS: [&str; 4] = ["a06_csr_int32", "a06_csc_int64", "a06_dense", "a06_csr_unsorted_mixed"];

/// A task that writes down on which card it was and when, and that nobody else was there. nvidia-smi shows its process.
const TASK: &str = r#"
import fcntl
cards, card = "CARDS", os.environ.get("CUDA_VISIBLE_DEVICES", "none")
began = time.monotonic()
alone = open(f"{cards}/alone-{card}", "w")
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    with open(f"{cards}/log", "a") as log:
        log.write(f"{card} not-alone\n")
mark = f"{cards}/{card}/pids/{os.getpid()}"
if os.path.isdir(os.path.dirname(mark)):
    with open(mark, "w") as file:
        file.write("2000\n")
time.sleep(2)
with open(f"{cards}/log", "a") as log:
    log.write(f"{card} {began} {time.monotonic()}\n")
"#;

fn place(runtime: &str) -> (Place, Cards) {
    let place = Place::new();
    place.run(&["init", ".", "--runtime", runtime]).expect(0);
    let cards = Cards::install(&place.join("bin"), place.join("cards"), 2);
    let does = TASK.replace("CARDS", cards.folder().to_str().unwrap());
    Method { gpu: true, does: &does, ..Method::default() }.add_to(&place);
    (place, cards)
}

fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(arguments);
    command.env("PATH", path_with(&place.join("bin"))).env("SCFOUNDRY_LEASE_DIR", place.join("leases"));
    command
}

fn embed(place: &Place, more: &[&str]) -> Command {
    command(place, &[&["embed", "--method", "mine"], more].concat())
}

/// When each card was used, from the tasks' own notes; none was ever used by two at once.
fn log(cards: &Cards) -> BTreeMap<String, Vec<(f64, f64)>> {
    let text = std::fs::read_to_string(cards.folder().join("log")).unwrap();
    let mut found: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [card, began, ended] = words.as_slice() else { panic!("{text}") };
        found.entry(card.to_string()).or_default().push((began.parse().unwrap(), ended.parse().unwrap()));
    }
    for times in found.values_mut() {
        times.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{text}");
    }
    found
}

/// The holder's process of each card, and how many compute on it.
fn holders(place: &Place) -> Vec<(Option<u64>, usize)> {
    let done = Done::of(&command(place, &["gpus", "--json"]).output().unwrap());
    let found: Value = serde_json::from_str(&done.expect(0).stdout).unwrap();
    let gpus = found["gpus"].as_array().unwrap();
    gpus.iter()
        .map(|gpu| (gpu["holder"]["pid"].as_u64(), gpu["processes"].as_array().unwrap().len()))
        .collect()
}

#[test]
#[ignore = "engine: eight runs at once on two cards, of which one is killed"]
fn engine_eight_runs_share_two_cards() {
    let (place, cards) = place("none");
    let data = case("a06_csr_int32.h5ad");
    let started: Vec<Child> = (0..8)
        .map(|run| {
            let (name, outdir) = (format!("run-{run}"), format!("out-{run}"));
            let line =
                ["--data", data.to_str().unwrap(), "--gpu", "auto", "--run-name", &name, "--outdir", &outdir];
            embed(&place, &line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    assert!(wait_for(120, || holders(&place).iter().any(|(holder, busy)| holder.is_some() && *busy > 0)));
    let (card, victim) = (0..)
        .zip(holders(&place))
        .find_map(|(card, (holder, busy))| Some((card, holder.filter(|_| busy > 0)?)))
        .unwrap();
    kill_process(Pid::from_raw(victim as i32).unwrap(), Signal::KILL).unwrap();
    let killed = Instant::now();
    let freed = || holders(&place).get::<usize>(card).is_some_and(|(holder, _)| *holder != Some(victim));
    assert!(wait_for(10, freed) && killed.elapsed() < Duration::from_secs(3), "{:?}", killed.elapsed());

    let mut good = 0;
    for child in started {
        let id = u64::from(child.id());
        let done = Done::of(&child.wait_with_output().unwrap());
        if id != victim {
            done.expect(0);
            good += 1;
        }
    }
    assert_eq!(good, 7);
    let log = log(&cards);
    assert_eq!(log.keys().collect::<Vec<_>>(), ["0", "1"], "{log:?}");
    assert!(log.values().map(Vec::len).sum::<usize>() >= 7, "{log:?}");
    // The record names the card that the task saw.
    for run in place.runs().iter().filter(|run| run["status"] == "ok") {
        let path = Path::new(run["path"].as_str().unwrap());
        let parameters: Value =
            serde_json::from_str(&std::fs::read_to_string(path.join("params.json")).unwrap()).unwrap();
        assert_eq!(parameters["gpu_id"], run["cards"][0]["index"].to_string());
    }
    assert_eq!(holders(&place), [(None, 0), (None, 0)]);
}

#[test]
#[ignore = "engine: four tasks of a run on its two cards"]
fn engine_tasks_side_by_side_have_a_card_each() {
    let (place, cards) = place("none");
    let files = LAYOUTS.map(|name| case(&format!("{name}.h5ad")).to_str().unwrap().to_owned());
    let line =
        [&["--gpu", "0,1", "--keep-work", "--data"][..], &files.each_ref().map(String::as_str)].concat();
    Done::of(&embed(&place, &line).output().unwrap()).expect(0);
    let found = log(&cards);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["0", "1"], "{found:?}");
    assert_eq!(found.values().map(Vec::len).sum::<usize>(), 4);
    // On another card nothing is done anew.
    let again = [&["--gpu", "1", "--resume", "--outdir", "elsewhere", "--data"][..], &line[4..]].concat();
    Done::of(&embed(&place, &again).output().unwrap()).expect(0);
    assert_eq!(log(&cards), found);
}

#[test]
#[ignore = "engine: tasks side by side in a stand-in for docker"]
fn engine_docker_is_told_of_a_card_for_each_task() {
    let (place, _cards) = place("docker");
    let record = place.join("record");
    let stand_in = r#"#!/bin/bash
[ "$1" = run ] || exit 0
while (($#)); do
    [ "$1" = --gpus ] && echo "$2" >>RECORD
    word=$1
    shift
    if [ "$word" = none:0 ]; then exec "$@"; fi
done
"#;
    place.script("bin/docker", &stand_in.replace("RECORD", record.to_str().unwrap()));
    let files = [0, 1].map(|at| case(&format!("{}.h5ad", LAYOUTS[at])).to_str().unwrap().to_owned());
    Done::of(&embed(&place, &["--gpu", "0,1", "--data", &files[0], &files[1]]).output().unwrap()).expect(0);
    let text = std::fs::read_to_string(record).unwrap();
    let mut told: Vec<&str> = text.lines().collect();
    told.sort_unstable();
    assert_eq!(told, ["device=0", "device=1"]);
}
