//! What reaches Nextflow: all after `--`, byte for byte, and ours before it (case C11).

use serde_json::{Value, json};

use crate::world::{Ended, World, cases, data, read_json};

const OURS: [&str; 8] =
    ["-log", "nextflow.log", "run", "pipeline/main.nf", "-ansi-log", "false", "-params-file", "params.json"];

fn run(world: &World, before: &[&str], after: &[&str]) -> Ended {
    let data = data();
    let line = [&["embed", "--method", "pca", "--data", &data], before, &["--"], after].concat();
    world.run_stand_in(&line).succeeded()
}

#[test]
fn every_list_arrives_byte_for_byte() {
    let text = std::fs::read_to_string(cases().join("c11_passthrough.jsonl")).unwrap();
    let lists: Vec<Vec<String>> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lists.len(), 12);
    let world = World::new();
    for list in lists {
        let words: Vec<&str> = list.iter().map(String::as_str).collect();
        run(&world, &[], &words);
        assert_eq!(world.argv(), [&OURS[..], &words].concat());
    }
    assert_eq!(world.runs().len(), 12);
}

#[test]
fn bytes_that_are_no_text_arrive_too() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let data = data();
    let mut command = world.command_stand_in(&["embed", "--method", "pca", "--data", &data, "--", "--odd"]);
    command.arg(OsStr::from_bytes(b"\xff\xfe"));
    Ended::of(command).succeeded();
    let recorded = std::fs::read(world.recorded().with_extension("argv")).unwrap();
    assert!(recorded.ends_with(b"--odd\0\xff\xfe\0"), "{recorded:?}");
}

#[test]
fn resume_with_two_dashes_draws_a_warning() {
    let world = World::new();
    let ended = run(&world, &[], &["--resume"]);
    assert!(ended.stderr.contains("warning: `--resume` after `--`"), "{}", ended.stderr);
    assert_eq!(world.argv().last().unwrap(), "--resume");
    let plain = run(&world, &[], &["-resume"]);
    assert!(!plain.stderr.contains("warning"), "{}", plain.stderr);
}

#[test]
fn an_option_given_there_is_not_doubled() {
    let world = World::new();
    run(&world, &[], &["-ansi-log", "true"]);
    let argv = world.argv();
    assert_eq!(argv.iter().filter(|word| *word == "-ansi-log").count(), 1);
    assert!(argv.ends_with(&["-ansi-log".to_owned(), "true".to_owned()]), "{argv:?}");
}

#[test]
fn with_a_parameter_file_of_the_user_ours_go_into_the_configuration() {
    let world = World::new();
    run(&world, &["--pca_n_comps", "7", "--note", "it's $x"], &["-params-file", "own.json"]);
    let argv = world.argv();
    assert!(!argv.contains(&"params.json".to_owned()), "{argv:?}");
    let config = std::fs::read_to_string(world.only_run().join("nextflow.config")).unwrap();
    for line in ["pca_n_comps = 7\n", "note = 'it\\'s $x'\n", "pca_n_top_genes = 2000\n"] {
        assert!(config.contains(line), "{config}");
    }
}

#[test]
fn a_relative_file_after_the_dashes_draws_a_warning() {
    let world = World::new();
    world.write("here/my.config", "");
    let ended = run(&world, &[], &["-c", "my.config"]);
    assert!(ended.stderr.contains("write the whole path"), "{}", ended.stderr);
    let ours = run(&world, &["--config", "my.config"], &[]);
    assert_eq!(ours.stderr.matches("warning").count(), 0);
    let position = world.argv().iter().position(|word| word == "-c").unwrap();
    assert_eq!(world.argv()[position + 1], world.here().join("my.config").to_str().unwrap());
}

#[test]
fn a_profile_goes_on() {
    let world = World::new();
    run(&world, &["--profile", "test,big"], &[]);
    assert!(world.argv().ends_with(&["-profile".to_owned(), "test,big".to_owned()]));
}

#[test]
fn the_plan_shows_a_command_that_a_shell_takes_apart() {
    let world = World::new();
    let data = data();
    let after = ["--", "--tag", "two words", "it's", ""];
    let line = [&["embed", "--method", "pca", "--data", &data, "--dry-run"][..], &after].concat();
    let text = world.run(&line).succeeded().stdout;
    assert!(text.contains("params.json --tag 'two words' 'it'\\''s' ''\n"), "{text}");
}

#[test]
fn a_trace_of_the_user_is_read_and_kept() {
    let world = World::new();
    let trace = "task_id\tname\tstatus\trealtime\n1\tEMBED (x)\tCOMPLETED\t1500\n";
    let engine = world.script("engine", &format!("#!/bin/sh\nprintf '%s' '{trace}' > own.txt\n"));
    let data = data();
    let line = ["embed", "--method", "pca", "--data", &data, "--", "-with-trace", "own.txt"];
    let mut command = world.command(&line);
    command.env("SCFOUNDRY_NEXTFLOW", engine);
    let ended = Ended::of(command);
    assert!(ended.stderr.contains("EMBED (x)"), "{ended:?}");
    let kept = std::fs::read_to_string(world.only_run().join("trace.txt")).unwrap();
    assert_eq!(kept, trace);
    assert!(world.run(&["cost"]).succeeded().stdout.contains("EMBED (x)"));
}

#[test]
fn nextflow_is_told_where_it_is() {
    let world = World::new();
    run(&world, &[], &[]);
    let run = world.only_run();
    let cwd = std::fs::read_to_string(world.recorded().with_extension("cwd")).unwrap();
    assert_eq!(cwd.trim_end(), run.to_str().unwrap());
    let environment = std::fs::read_to_string(world.recorded().with_extension("env")).unwrap();
    assert!(environment.contains("NXF_DISABLE_CHECK_LATEST=true"), "{environment}");
    let parameters: Value = read_json(&run.join("params.json"));
    assert_eq!(parameters["inputs"][0]["path"], json!(data()));
}
