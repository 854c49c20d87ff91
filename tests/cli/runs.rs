//! Run directories: one a run, also when many start at once (case G01), with all that is needed to run again.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::world::{Ended, World, argv, case, data, record, stand_in};

#[test]
fn eight_runs_at_once_in_a_new_directory() {
    let world = World::new();
    let data = data();
    let start = |number: usize| -> Child {
        let mut command = world.command_stand_in(&["embed", "--method", "pca", "--data", &data]);
        command.env("FAKE_SLEEP", "2").env("FAKE_OUT", world.root().join(format!("recorded{number}")));
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..8).map(start).collect();
    for child in children {
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let folder = |number: usize| {
        std::fs::read_to_string(world.root().join(format!("recorded{number}.cwd")))
            .unwrap()
            .trim_end()
            .to_owned()
    };
    let folders: BTreeSet<String> = (0..8).map(folder).collect();
    let runs: BTreeSet<String> = world.runs().iter().map(|run| run.to_str().unwrap().to_owned()).collect();
    assert_eq!(folders, runs);
    assert_eq!(runs.len(), 8);
    for run in world.runs() {
        let record = record(&run);
        assert_eq!((&record["status"], &record["exit_code"]), (&json!("ok"), &json!(0)));
        assert_eq!(record["origin"], json!(run));
    }
    let listed = world.json(&["runs"]);
    assert_eq!(listed["runs"].as_array().unwrap().len(), 8);
    let leftovers: Vec<_> =
        std::fs::read_dir(world.here()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!leftovers.iter().any(|name| name.to_string_lossy().starts_with(".scfoundry-")), "{leftovers:?}");
}

#[test]
fn the_record_tells_what_was_run() {
    let world = World::with_workspace("none");
    let data = data();
    world.run_stand_in(&["embed", "--method", "pca", "--data", &data, "--run-name", "first try"]).succeeded();
    let run = world.only_run();
    assert_eq!(run.file_name().unwrap(), "first_try");
    let record = record(&run);
    for (name, value) in [("task", "embed"), ("method", "pca"), ("input", "a06_csr_int32"), ("status", "ok")]
    {
        assert_eq!(record[name], json!(value), "{name}");
    }
    assert_eq!(record["workspace"], json!(world.here()));
    assert_eq!(record["inputs"], json!([data]));
    let moments = ["started", "finished"].map(|name| record[name].as_str().unwrap().to_owned());
    assert!(moments[0] <= moments[1] && moments[0].ends_with('Z'), "{moments:?}");
    for file in ["params.json", "nextflow.config", "command.sh", "nextflow.out", "pipeline/main.nf"] {
        assert!(run.join(file).is_file(), "{file}");
    }
    for (name, folder) in [("..", "_.."), ("-x", "_-x"), ("a/../b", "a_.._b")] {
        let option = format!("--run-name={name}");
        let plan = world.plan(&["embed", "--method", "pca", "--data", &data, &option]);
        assert_eq!(plan["run"], json!(world.here().join("runs/embed").join(folder)));
    }
    // The same name again is another run.
    world.run_stand_in(&["embed", "--method", "pca", "--data", &data, "--run-name", "first try"]).succeeded();
    assert!(world.here().join("runs/embed/first_try-2/run.json").is_file());
}

#[test]
fn the_script_runs_it_again() {
    let world = World::new();
    let data = data();
    let note = ["--", "--note", "it's $HOME `id`", "", "γδ"];
    world.run_stand_in(&[&["embed", "--method", "pca", "--data", &data][..], &note].concat()).succeeded();
    let first = world.argv();
    let script = world.only_run().join("command.sh");
    assert!(Command::new("bash").arg("-n").arg(&script).status().unwrap().success());
    let again = world.root().join("again");
    let mut command = Command::new("bash");
    command.arg(&script).env_clear().env("PATH", world.root().join("bin")).env("FAKE_OUT", &again);
    let ended = Ended::of(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(argv(&again), first);
    let folder = |record: &std::path::Path| std::fs::read_to_string(record.with_extension("cwd")).unwrap();
    assert_eq!(folder(&again), folder(&world.recorded()));
}

/// `--resume` takes the newest run of the same input, not the newest of all, and shares its session and task cache.
#[test]
fn resume_goes_on_from_the_run_with_the_same_input() {
    let world = World::new();
    std::os::unix::fs::symlink("/bin/mkdir", world.root().join("bin/mkdir")).unwrap();
    let history = "mkdir -p .nextflow/cache; printf 'now\\t1s\\tname\\tOK\\tabc\\t%s\\tcommand\\n' \"$SESSION\" > .nextflow/history";
    let engine = world.script(
        "engine",
        &format!("#!/bin/sh\n[ \"$SESSION\" ] && {{ {history}; }}\nexec {} \"$@\"\n", stand_in()),
    );
    let inputs = [data(), case("a06_dense.h5ad")];
    let run = |input: &str, session: &str, more: &[&str]| {
        let mut command = world.command(&[&["embed", "--method", "pca", "--data", input], more].concat());
        command.env("SCFOUNDRY_NEXTFLOW", &engine).env("SESSION", session).env("SCFOUNDRY_OUTDIR", "out");
        Ended::of(command).succeeded()
    };
    run(&inputs[0], "one", &["--run-name", "first"]);
    run(&inputs[1], "two", &["--run-name", "second"]);
    let first = world.here().join("runs/embed/first");
    assert_eq!(record(&first)["session"], json!("one"));

    run(&inputs[0], "", &["--run-name", "third", "--resume"]);
    assert!(world.argv().ends_with(&["-resume".to_owned(), "one".to_owned()]), "{:?}", world.argv());
    let environment = std::fs::read_to_string(world.recorded().with_extension("env")).unwrap();
    assert!(
        environment.contains(&format!("NXF_CACHE_DIR={}\n", first.join(".nextflow").display())),
        "{environment}"
    );
    let third = world.here().join("runs/embed/third");
    assert_eq!(record(&third)["origin"], json!(first));
    let config = std::fs::read_to_string(third.join("nextflow.config")).unwrap();
    assert!(config.contains(&format!("workDir = '{}'\n", first.join("work").display())), "{config}");

    run(&inputs[1], "", &["--resume", "second"]);
    assert_eq!(world.argv().last().unwrap(), "two");
    // A run that resumed can be resumed: it is the same session still.
    run(&inputs[0], "", &["--resume", "third"]);
    assert_eq!(world.argv().last().unwrap(), "one");
}

#[test]
fn a_record_that_is_damaged_hides_no_other() {
    let world = World::with_workspace("none");
    world.run_stand_in(&["check", "--data", &data()]).succeeded();
    world.write("here/runs/embed/broken/run.json", "{\"task\": ");
    world.write("here/runs/embed/empty/other", "");
    let runs = world.json(&["runs"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
    assert_eq!(world.run(&["runs", "--limit", "1"]).succeeded().stdout.lines().count(), 2);
}
