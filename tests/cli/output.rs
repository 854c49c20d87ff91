//! Where output goes: pipes that close, disks that are full, logs without control codes (case C15).

use std::fs::File;
use std::process::Stdio;

use crate::world::{Ended, World, data, stand_in};

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let world = World::new();
    let data = data();
    for line in [
        &["--help"][..],
        &["list", "methods"],
        &["list", "methods", "--json"],
        &["completions", "bash"],
        &["info", "--effective"],
        &["embed", "--method", "pca", "--data", &data, "--dry-run"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = world.command(line);
        command.stdout(writer).stderr(Stdio::piped());
        let ended = Ended::from(command.spawn().unwrap().wait_with_output().unwrap());
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{line:?}");
    }
}

#[test]
fn a_full_stdout_is_an_error() {
    let mut command = World::new().command(&["list", "methods"]);
    let world = World::new();
    command.current_dir(world.here()).stdout(File::options().write(true).open("/dev/full").unwrap());
    Ended::of(command).refused(1, &["cannot write to stdout", "No space left"]);
}

#[test]
fn a_log_file_holds_no_control_codes() {
    let world = World::new();
    let noisy = world.script(
        "noisy",
        "#!/bin/sh\nprintf '\\033[2K\\033[1mexecutor >\\033[0m local\\rmore\\r\\n[3f/a1b2c3] Submitted process > EMBED (x)\\n'\n",
    );
    for line in [&["--verbose"][..], &[]] {
        let data = data();
        let mut command = world.command(&[&["embed", "--method", "pca", "--data", &data], line].concat());
        command.env("SCFOUNDRY_NEXTFLOW", &noisy).env("TERM", "xterm-256color");
        let ended = Ended::of(command).succeeded();
        let all = ended.stdout + &ended.stderr;
        assert!(!all.contains('\u{1b}') && !all.contains('\r'), "{all:?}");
        assert!(all.contains("EMBED (x) started"), "{all}");
        assert_eq!(all.contains("\nmore\n"), !line.is_empty(), "{all}");
    }
}

#[test]
fn errors_and_warnings_have_no_colour_in_a_file() {
    let world = World::new();
    let ended = world.run(&["embed", "--method", "pca", "--data", &data(), "--batch-size", "8", "--dry-run"]);
    assert!(ended.stderr.starts_with("warning: ") && !ended.stderr.contains('\u{1b}'), "{ended:?}");
    let mut command = world.command(&["embed", "--method", "nope", "--data", "x"]);
    command.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert!(Ended::of(command).stderr.starts_with("error: "));
}

#[test]
fn quiet_leaves_only_what_was_asked_for() {
    let world = World::with_workspace("none");
    let data = data();
    let line = ["embed", "--method", "pca", "--data", &data, "--quiet", "--nextflow", &stand_in()];
    let ended = world.run(&line).succeeded();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    let warned = world.run(&[&line[..], &["--batch-size", "8"]].concat()).succeeded();
    assert!(warned.stderr.starts_with("warning: "), "quiet hides a warning");
}
