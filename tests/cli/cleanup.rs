//! What only served the tasks of a run goes once its results are in place, and stays in all other cases.

use std::process::Command;

use serde_json::json;

use crate::works::Works;
use crate::world::{Ended, record};

const ALL: [&str; 3] = ["work", ".nextflow/cache", "outputs"];

#[test]
fn a_good_run_keeps_its_record_and_not_its_work() {
    let works = Works::new();
    let ended = works.run("one", &[]).succeeded();
    assert_eq!(ended.stderr.matches("warning").count(), 0, "{ended:?}");
    let result = works.result();
    assert_eq!(ended.stdout, format!("{}\n", result.display()));
    assert!(works.served("one").is_empty());
    let run = works.directory("one");
    for kept in ["run.json", "trace.txt", "cost.json", "command.sh", "params.json", ".nextflow/history"] {
        assert!(run.join(kept).is_file(), "{kept}");
    }
    assert_eq!(works.world.json(&["cost"])["tasks"][0]["cells"], 80);
    // The script runs it again by hand all the same.
    std::fs::remove_file(&result).unwrap();
    let mut command = Command::new("bash");
    command.arg(run.join("command.sh")).env_clear().env("PATH", works.world.root().join("bin"));
    Ended::of(command).succeeded();
    assert!(result.is_file());
}

#[test]
fn it_stays_where_one_says_so() {
    let works = Works::new();
    works.run("flag", &["--keep-work"]).succeeded();
    assert_eq!(works.served("flag"), ALL);
    let mut command = works.command("environment", &[]);
    command.env("SCFOUNDRY_KEEP_WORK", "yes");
    Ended::of(command).succeeded();
    assert_eq!(works.served("environment"), ALL);
    works.world.write("here/scfoundry.toml", "keep_work = true\n");
    works.run("file", &[]).succeeded();
    assert_eq!(works.served("file"), ALL);
    let mut command = works.command("neither", &[]);
    command.env("SCFOUNDRY_KEEP_WORK", "0");
    Ended::of(command).succeeded();
    assert!(works.served("neither").is_empty());
    let mut command = works.command("wrong", &[]);
    command.env("SCFOUNDRY_KEEP_WORK", "perhaps");
    Ended::of(command).refused(2, &["$SCFOUNDRY_KEEP_WORK \"perhaps\"", "true"]);
}

#[test]
fn a_run_that_was_not_good_keeps_all() {
    let works = Works::new();
    let killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch.";
    let cases: [(&str, &str, &str, &[&str], i32); 6] = [
        ("failed", "FAKE_ROW", "FAILED\t1", &[], 1),
        ("engine", "FAKE_RC", "1", &[], 1),
        ("suspect", "FAKE_LOG", killed, &[], 1),
        ("without", "FAKE_RESULT", "none", &[], 1),
        ("preview", "FAKE_ROW", "none", &["--", "-preview"], 0),
        ("stub", "FAKE_NOTHING", "", &["--", "-stub-run"], 0),
    ];
    for (name, variable, value, more, code) in cases {
        let mut command = works.command(name, more);
        command.env(variable, value);
        let ended = Ended::of(command);
        assert_eq!(ended.code, Some(code), "{name}: {ended:?}");
        assert_eq!(works.served(name), ALL, "{name}");
    }
}

#[test]
fn the_work_of_the_run_that_it_went_on_from_goes() {
    let works = Works::new();
    works.fail("first", &[]);
    assert_eq!(works.served("first"), ALL);
    works.run("second", &["--resume", "first"]).succeeded();
    assert_eq!(record(&works.directory("second"))["origin"], json!(works.directory("first")));
    // What it could not put in place might be the only copy.
    assert_eq!((works.served("first"), works.served("second")), (vec!["outputs"], vec![]));

    std::fs::remove_file(works.result()).unwrap();
    works.fail("kept", &["--keep-work"]);
    works.run("third", &["--resume", "kept"]).succeeded();
    assert_eq!(works.served("kept"), ALL);
}
