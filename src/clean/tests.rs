use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::rundir::{RunDir, process_started};
use crate::ui::Ui;

/// A `runs` folder of one test.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(place.runs()).unwrap();
        place
    }

    fn runs(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("runs")
    }

    /// Makes an embed run with some work; `more` is added to its record.
    fn run(&self, name: &str, status: &str, finished: &str, more: Value) -> PathBuf {
        let run = self.runs().join("embed").join(name);
        fs::create_dir_all(run.join("work/ab/cd")).unwrap();
        fs::write(run.join("work/ab/cd/matrix"), vec![7; 1 << 16]).unwrap();
        fs::create_dir_all(run.join(".nextflow/cache/session")).unwrap();
        fs::write(run.join(".nextflow/history"), "session").unwrap();
        let mut record = json!({ "task": "embed", "status": status, "finished": finished, "origin": run });
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fs::write(run.join("run.json"), record.to_string()).unwrap();
        run
    }

    /// Runs of every status, which ended on the first four days of the year.
    fn with_runs() -> Place {
        let place = Place::new();
        for (day, status) in ["ok", "failed", "interrupted", "ok"].iter().enumerate() {
            let finished = format!("2026-01-0{}T00:00:00Z", day + 1);
            place.run(&format!("{status}{}", day + 1), status, &finished, json!({}));
        }
        place.run("planned", "planned", "2026-01-01T00:00:00Z", json!({}));
        place.run("lost", "running", "2026-01-01T00:00:00Z", json!({ "pid": 1, "pid_started": 0 }));
        place
    }

    fn select(&self, wanted: &Wanted) -> Selection {
        select(&self.runs(), wanted, "2026-01-05T00:00:00Z".parse().unwrap()).unwrap()
    }

    fn selected(&self, wanted: &Wanted) -> Vec<String> {
        self.select(wanted).targets.into_iter().map(|target| target.name).collect()
    }

    fn error(&self, wanted: &Wanted) -> crate::error::Error {
        select(&self.runs(), wanted, Timestamp::now()).unwrap_err()
    }
}

fn named(name: &str) -> Wanted {
    Wanted { names: vec![name.into()], ..Wanted::default() }
}

fn old(age: &str) -> Wanted {
    Wanted { older_than: Some(age.parse().unwrap()), ..Wanted::default() }
}

/// A process, which ends with the test.
struct Busy(Child);

impl Busy {
    fn new() -> Busy {
        Busy(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn record(&self) -> Value {
        json!({ "pid": self.0.id(), "pid_started": process_started(self.0.id()).unwrap() })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn holds_tasks(run: &Path) -> bool {
    run.join(crate::launch::TASK_CACHE).is_dir()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn selects_by_age_outcome_and_name() {
    let place = Place::with_runs();
    let failed = Wanted { failed: true, ..Wanted::default() };
    assert_eq!(place.selected(&failed), ["interrupted3", "failed2", "lost"]);
    assert_eq!(place.selected(&Wanted { failed: true, ..old("3d") }), ["failed2", "lost"]);
    assert_eq!(place.selected(&old("73h")), ["planned", "ok1", "lost"]);
    assert_eq!(place.selected(&old("1w")), [""; 0]);
    // Without an age, a run that never started has to be named.
    assert_eq!(place.selected(&Wanted::default()), ["ok4", "interrupted3", "failed2", "ok1", "lost"]);
    assert_eq!(place.selected(&named("planned")), ["planned"]);
    let path = place.runs().join("embed/../embed/ok4/");
    assert_eq!(place.selected(&named(path.to_str().unwrap())), ["ok4"]);
    assert_eq!(place.selected(&Wanted { failed: true, ..named("ok4") }), [""; 0]);
    assert!(place.error(&named("ok5")).message.contains("ok5 is not a run"));
}

#[test]
fn a_run_elsewhere_is_none_of_this_workspace() {
    let (place, other) = (Place::with_runs(), Place::with_runs());
    let path = other.runs().join("embed/ok1");
    assert!(place.error(&named(path.to_str().unwrap())).message.contains("not a run of this workspace"));
}

#[test]
fn a_record_without_an_end_counts_from_its_start_then_from_its_file() {
    let place = Place::new();
    place.run("begun", "failed", "?", json!({ "started": "2026-01-01T00:00:00.5Z", "finished": null }));
    place.run("neither", "failed", "?", json!({}));
    assert_eq!(place.selected(&old("4d")), [""; 0]);
    assert_eq!(place.selected(&old("95h")), ["begun"]);
    assert_eq!(place.selected(&old("0h")), ["neither", "begun"]);
}

#[test]
fn work_alone_goes_and_the_record_stays() {
    let place = Place::with_runs();
    let selection = place.select(&Wanted { work: true, ..named("ok1") });
    let [target] = selection.targets.as_slice() else { panic!("{selection:?}") };
    assert!(remove(target, &Ui::default()).unwrap());
    let run = place.runs().join("embed/ok1");
    assert_eq!(names(&run), [".lock", ".nextflow", "run.json"]);
    assert_eq!(names(&run.join(".nextflow")), ["history"]);
    assert!(!holds_tasks(&run));
    assert!(!remove(target, &Ui::default()).unwrap(), "it is gone already");
    assert_eq!(place.selected(&Wanted { work: true, ..named("ok1") }), [""; 0]);
}

#[test]
fn a_running_run_stays_and_so_does_the_work_that_it_uses() {
    let place = Place::new();
    let busy = Busy::new();
    let first = place.run("first", "failed", "2026-01-01T00:00:00Z", json!({}));
    let mut more = busy.record();
    more["origin"] = json!(first);
    place.run("second", "running", "?", more);
    assert_eq!(place.selected(&old("0h")), [""; 0]);
    for (name, word) in [("first", "is used by run second"), ("second", "is running")] {
        for work in [false, true] {
            let selection = place.select(&Wanted { work, ..named(name) });
            assert!(selection.targets.is_empty());
            assert!(selection.refused[0].contains(word), "{selection:?}");
        }
    }
    drop(busy);
    assert_eq!(place.selected(&named("second")), ["second"]);
    assert_eq!(place.selected(&named("first")), ["first"]);
}

#[test]
fn a_run_that_starts_after_it_was_selected_stays() {
    let place = Place::with_runs();
    let run = place.runs().join("embed/failed2");
    let target = place.select(&named("failed2")).targets.remove(0);
    let claim = crate::launch::claim(&run).unwrap();
    assert!(remove(&target, &Ui::default()).unwrap_err().message.contains("in use"));
    drop(claim);
    let busy = Busy::new();
    place.run("failed2", "running", "?", busy.record());
    assert!(remove(&target, &Ui::default()).unwrap_err().message.contains("is running"));
    assert!(run.join("work/ab/cd/matrix").is_file());
    drop(busy);
    assert!(remove(&target, &Ui::default()).unwrap());
    assert!(!run.exists());
}

#[test]
fn a_run_is_as_young_as_the_last_that_resumed_it() {
    let place = Place::new();
    let first = place.run("first", "failed", "2026-01-01T00:00:00Z", json!({}));
    place.run("second", "failed", "2026-01-04T00:00:00Z", json!({ "origin": first }));
    assert_eq!(place.selected(&old("2d")), [""; 0]);
    assert_eq!(place.selected(&old("1d")).len(), 2);
}

#[test]
fn symbolic_links_are_left_alone() {
    let (place, other) = (Place::with_runs(), Place::with_runs());
    symlink(other.runs().join("embed/ok1"), place.runs().join("embed/link")).unwrap();
    symlink(other.runs().join("embed"), place.runs().join("check")).unwrap();
    let run = place.runs().join("embed/ok1");
    fs::remove_dir_all(run.join("work")).unwrap();
    symlink(other.runs(), run.join("work")).unwrap();
    assert_eq!(place.select(&Wanted { work: true, ..old("0h") }).odd.len(), 3);
    assert!(place.error(&named("link")).causes[0].contains("is a symbolic link"));
    let selection = place.select(&old("0h"));
    assert_eq!((selection.odd.len(), selection.targets.len()), (2, 6));
    for target in &selection.targets {
        assert!(remove(target, &Ui::default()).unwrap());
    }
    assert_eq!(names(&place.runs().join("embed")), ["link"]);
    assert!(other.runs().join("embed/ok1/work/ab/cd/matrix").is_file());

    let linked = Place { folder: tempfile::tempdir().unwrap() };
    symlink(other.runs(), linked.runs()).unwrap();
    assert!(linked.error(&old("0h")).message.contains("is a symbolic link"));
    assert_eq!(other.selected(&old("0h")).len(), 6);
}

#[test]
fn what_was_cut_off_is_no_run_and_goes_the_next_time() {
    let place = Place::with_runs();
    let folder = place.runs().join("embed");
    fs::rename(folder.join("ok1"), folder.join(".removing-ok1")).unwrap();
    fs::rename(folder.join("ok4/work"), folder.join("ok4/.removing-work")).unwrap();
    let listed = crate::rundir::RunDir::list(&place.runs());
    assert!(!listed.iter().any(|run| run.name().contains("ok1")), "{listed:?}");
    // A run of the same name can go meanwhile.
    place.run("ok1", "ok", "2026-01-01T00:00:00Z", json!({}));
    let selection = place.select(&named("ok1"));
    let parts: Vec<(&str, Part)> =
        selection.targets.iter().map(|target| (target.name.as_str(), target.part)).collect();
    assert_eq!(parts[0], ("ok1", Part::Run));
    assert_eq!(parts.len(), 3);
    assert!(parts.contains(&("ok1", Part::Leftover)) && parts.contains(&("ok4", Part::Leftover)));
    for target in &selection.targets {
        assert!(remove(target, &Ui::default()).unwrap());
    }
    assert_eq!(names(&folder), ["failed2", "interrupted3", "lost", "ok4", "planned"]);
    assert_eq!(names(&folder.join("ok4")), [".nextflow", "run.json"]);
}

#[test]
fn empty_folders_of_tasks_go() {
    let place = Place::with_runs();
    fs::create_dir(place.runs().join("check")).unwrap();
    remove_empty_folders(&place.runs());
    assert_eq!(names(&place.runs()), ["embed"]);
}

/// A run that went on from another, with something left of what it staged.
fn second(place: &Place, origin: &Path) -> RunDir {
    let path = place.run("second", "ok", "2026-01-04T00:00:00Z", json!({ "origin": origin }));
    fs::remove_dir_all(path.join("work")).unwrap();
    fs::create_dir_all(path.join("outputs/embeddings")).unwrap();
    RunDir::open(&path).unwrap()
}

#[test]
fn what_served_a_good_run_goes_where_it_lies() {
    let place = Place::with_runs();
    let origin = place.runs().join("embed/failed2");
    let run = second(&place, &origin);
    let claim = crate::launch::claim(&origin).unwrap();
    remove_served(&run, &origin, &place.runs(), &claim).unwrap();
    assert_eq!(names(&origin), [".lock", ".nextflow", "run.json"]);
    assert_eq!(names(&origin.join(".nextflow")), ["history"]);
    assert_eq!(names(run.path()), [".nextflow", "run.json"]);
    assert!(holds_tasks(&place.runs().join("embed/ok1")), "another run's is its own");
    remove_served(&run, &origin, &place.runs(), &claim).unwrap();
}

#[test]
fn what_served_stays_where_it_is_not_this_workspaces_own() {
    let (place, other) = (Place::with_runs(), Place::with_runs());
    let elsewhere = other.runs().join("embed/ok1");
    let link = place.runs().join("embed/link");
    symlink(&elsewhere, &link).unwrap();
    let linked = place.runs().join("embed/ok4");
    fs::remove_dir_all(linked.join("work")).unwrap();
    symlink(elsewhere.join("work"), linked.join("work")).unwrap();
    for origin in [&elsewhere, &link, &linked] {
        let run = second(&place, origin);
        let claim = crate::launch::claim(origin).unwrap();
        remove_served(&run, origin, &place.runs(), &claim).unwrap();
        assert!(origin.join("work/ab/cd/matrix").is_file() && holds_tasks(origin), "{origin:?}");
        assert!(!run.join("outputs").exists());
    }
}
