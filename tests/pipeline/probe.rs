//! Probes with the real engine: what they measure, and that nothing of them stays.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use scfoundry::history;
use scfoundry::method::Task;
use scfoundry::plan::Role;

use crate::driver::{Said, Spec, end};
use crate::place::{PROGRAM, Place, assert_nobody_in, demo, processes_in, wait_for};

/// A probe of pca whose tasks run `program`.
fn pca(place: &Place, program: &Path) -> Spec {
    let config = place.write("program.config", &format!("env.SCFOUNDRY = '{}'\n", program.display()));
    Spec {
        task: Task::Embed,
        method: Some("pca".to_owned()),
        inputs: vec![(Role::Data, demo())],
        config,
        cells: 200,
    }
}

/// All files below a folder but those that the engine or the tests have put there.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { BTreeSet::from([path]) }).collect()
}

/// Nothing is in the workspace but what makes it one, the history and the test's own files.
#[track_caller]
fn assert_clean(place: &Place, own: &[&str]) {
    let workspace = [".scfoundry.json", "nextflow.config", "scfoundry.toml", "program.config"];
    let expected: BTreeSet<PathBuf> = workspace.iter().chain(own).map(|name| place.join(name)).collect();
    let mut found = files(place.root());
    found.retain(|path| !path.starts_with(place.join("history")));
    assert_eq!(found, expected);
    for folder in ["runs", "results"] {
        assert_eq!(std::fs::read_dir(place.join(folder)).unwrap().count(), 0, "{folder}");
    }
}

#[test]
#[ignore = "engine: runs real Nextflow"]
fn engine_a_probe_measures_two_samples_and_leaves_only_its_history() {
    let place = Place::new();
    let (said, stderr) = end(pca(&place, Path::new(PROGRAM)).start(&place), &place);
    let Said::Measured(measured) = said else { panic!("{stderr}") };
    let kept = history::read(&place.join("history")).unwrap().entries;
    let mut cells: Vec<u64> = kept.iter().map(|entry| entry.inputs[0].cells).collect();
    cells.sort_unstable();
    assert_eq!(cells, [67, 200], "{stderr}");
    assert_eq!(measured.iter().map(|entry| entry.inputs[0].cells).collect::<Vec<_>>(), [67, 200]);
    for entry in &kept {
        assert!(entry.probe && entry.wall_seconds.is_some() && measured.contains(entry));
        assert!(entry.steps[0].seconds.is_some() && entry.steps[0].peak_rss_bytes.is_some());
        assert!(entry.inputs[0].genes == kept[0].inputs[0].genes);
    }
    assert!(stderr.contains("probe: pca on 67 of 700 cells") && !stderr.contains("\nrun /"), "{stderr}");
    assert_clean(&place, &[]);
    assert_nobody_in(place.root());
}

#[test]
#[ignore = "engine: a task that fails"]
fn engine_a_probe_that_fails_says_so_and_leaves_nothing() {
    let place = Place::new();
    let broken = place.script("broken", "#!/bin/sh\necho no luck today >&2\nexit 7\n");
    let (said, stderr) = end(pca(&place, &broken).start(&place), &place);
    let Said::Failed { code, error, hints } = said else { panic!("{stderr}") };
    assert_eq!(code, 1);
    assert!(error.starts_with("the probe with 67 cells failed: EMBED"), "{error}");
    assert!(error.contains("no luck today"), "{error}");
    // No hint at what is no more.
    assert!(hints.iter().all(|hint| !hint.contains("20261203-060000")), "{hints:?}");
    assert!(history::read(&place.join("history")).unwrap().entries.is_empty());
    assert_clean(&place, &["broken"]);
}

#[test]
#[ignore = "engine: interrupts a probe"]
fn engine_an_interrupted_probe_leaves_nothing() {
    let place = Place::new();
    let slow = place.script("slow", "#!/bin/sh\nexec sleep 301\n");
    let driver = pca(&place, &slow).start(&place);
    let sleeps = || processes_in(place.root()).iter().any(|line| line.starts_with("sleep 301"));
    assert!(wait_for(120, sleeps), "no task within two minutes: {:#?}", processes_in(place.root()));
    kill_process(Pid::from_child(&driver), Signal::INT).unwrap();
    let (said, stderr) = end(driver, &place);
    let Said::Failed { code, error, .. } = said else { panic!("{stderr}") };
    assert_eq!((code, error.as_str()), (130, "the probe was stopped"), "{stderr}");
    assert_nobody_in(place.root());
    assert_clean(&place, &["slow"]);
}

#[test]
#[ignore = "engine: kills a probe"]
fn engine_what_a_killed_probe_leaves_is_removed_by_clean() {
    let place = Place::new();
    let slow = place.script("slow", "#!/bin/sh\nexec sleep 301\n");
    let mut driver = pca(&place, &slow).start(&place);
    let sleeps = || processes_in(place.root()).iter().any(|line| line.starts_with("sleep 301"));
    assert!(wait_for(120, sleeps), "no task within two minutes: {:#?}", processes_in(place.root()));
    let samples = || files(&place.join("runs")).iter().any(|path| path.ends_with("demo/pbmc_700.h5ad"));
    place.run(&["clean", "--failed"]).expect(0);
    assert!(samples(), "one that is under way is not removed");
    driver.kill().unwrap();
    driver.wait().unwrap();
    assert_nobody_in(place.root());
    assert!(samples());
    place.run(&["clean", "--failed"]).expect(0);
    assert_clean(&place, &["slow"]);
}
