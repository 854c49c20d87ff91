//! What only served the tasks of a run goes once its results are in place, and stays in all other cases.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::world::{Ended, World, data, record};

/// An engine that does its work: one task, its trace, its cache, its result. `$FAKE_ROW` is what became of the task.
const ENGINE: &str = r#"#!/bin/sh
case "$1" in -version) echo "nextflow version 25.04.2.5947"; exit 0;; esac
cache=${NXF_CACHE_DIR:-.nextflow}
mkdir -p "$cache/cache/session" outputs/embeddings/pca
[ -f "$cache/history" ] || printf 'now\t1s\tname\tOK\tabc\t%s\tcommand\n' "session" > "$cache/history"
work=$(sed -n "s/^workDir = '\(.*\)'$/\1/p" nextflow.config)
mkdir -p "$work/ab/123456"
echo '{"kind": "kernel", "cells": 80}' > "$work/ab/123456/usage.json"
echo "$FAKE_LOG" > "$work/ab/123456/.command.log"
[ "$FAKE_ROW" = none ] || printf 'task_id\thash\tname\tstatus\texit\trealtime\tworkdir\n1\tab/123456\tEMBED (x)\t%s\t1s\t%s\n' \
    "${FAKE_ROW:-COMPLETED	0}" "$work/ab/123456" > trace.txt
[ "$FAKE_RESULT" = none ] || echo "${FAKE_RESULT:-embedded}" > outputs/embeddings/pca/a06_csr_int32.h5ad
echo leftover > outputs/other
exit "${FAKE_RC:-0}"
"#;

/// A workspace whose engine is the one above.
struct Works {
    world: World,
    engine: PathBuf,
}

impl Works {
    fn new() -> Works {
        let world = World::with_workspace("none");
        for tool in ["mkdir", "sed"] {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            symlink(found.iter().find(|path| path.exists()).unwrap(), world.root().join("bin").join(tool))
                .unwrap();
        }
        let engine = world.script("engine", ENGINE);
        Works { world, engine }
    }

    fn command(&self, name: &str, more: &[&str]) -> Command {
        let data = data();
        let start = ["embed", "--method", "pca", "--data", &data, "--run-name", name];
        let mut command = self.world.command(&[&start[..], more].concat());
        command.env("SCFOUNDRY_NEXTFLOW", &self.engine);
        command
    }

    fn run(&self, name: &str, more: &[&str]) -> Ended {
        Ended::of(self.command(name, more))
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.world.here().join("runs/embed").join(name)
    }

    /// Which of its parts that only serve the tasks a run has.
    fn served(&self, name: &str) -> Vec<&'static str> {
        let run = self.directory(name);
        ["work", ".nextflow/cache", "outputs"].into_iter().filter(|part| run.join(part).exists()).collect()
    }
}

const ALL: [&str; 3] = ["work", ".nextflow/cache", "outputs"];

#[test]
fn a_good_run_keeps_its_record_and_not_its_work() {
    let works = Works::new();
    let ended = works.run("one", &[]).succeeded();
    assert_eq!(ended.stderr.matches("warning").count(), 0, "{ended:?}");
    let result = works.world.here().join("results/embeddings/pca/a06_csr_int32.h5ad");
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
    let fails = |name: &str, more: &[&str]| {
        let mut command = works.command(name, more);
        command.env("FAKE_ROW", "FAILED\t1");
        assert_eq!(Ended::of(command).code, Some(1));
        assert_eq!(works.served(name), ALL);
    };
    fails("first", &[]);
    works.run("second", &["--resume", "first"]).succeeded();
    assert_eq!(record(&works.directory("second"))["origin"], json!(works.directory("first")));
    // What it could not put in place might be the only copy.
    assert_eq!((works.served("first"), works.served("second")), (vec!["outputs"], vec![]));

    fails("kept", &["--keep-work"]);
    works.run("third", &["--resume", "kept"]).succeeded();
    assert_eq!(works.served("kept"), ALL);
}
