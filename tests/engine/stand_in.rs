//! The child process with shell scripts in place of Nextflow.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use scfoundry::nextflow::{Event, Launch, run};
use tempfile::TempDir;

use crate::driver::{Driver, Spec, assert_nobody_in, launch, processes_in, stand_in};

/// An engine that starts a task, says so, and on SIGTERM ends both, as Nextflow does.
const TIDY: &str = "trap 'kill $task; echo stopping; exit 1' TERM; sleep 300 & task=$!; echo ready; wait";
/// An engine that does not mind being asked.
const STUBBORN: &str = "trap '' TERM INT; sleep 300 & echo ready; wait; wait; sleep 300";
/// An engine that ends when asked, and forgets its task.
const FORGETFUL: &str = "sleep 300 & echo ready; wait";

struct Place {
    directory: TempDir,
    program: PathBuf,
}

fn place(script: &str) -> Place {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("engine.sh");
    std::fs::write(&program, format!("#!/bin/bash\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    Place { directory, program }
}

impl Place {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn spec(&self) -> Spec {
        Spec {
            directory: self.path().to_path_buf(),
            program: Some(self.program.clone()),
            args: vec!["run".into()],
            raw: false,
            linger: false,
        }
    }

    /// Runs the script here and now; gives the outcome's code and the lines.
    fn run(&self, raw: bool) -> (Option<i32>, Vec<String>) {
        let output = self.path().join("output");
        let mut lines = Vec::new();
        let engine = stand_in(&self.program);
        let outcome = run(launch(&engine, &[], self.path(), Some(&output), raw), &mut |event| {
            if let Event::Line(line) = event {
                lines.push(line);
            }
        });
        (outcome.unwrap().code, lines)
    }
}

#[test]
fn arguments_and_exit_code_pass_through_untouched() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cases");
    let lists = std::fs::read_to_string(format!("{cases}/c11_passthrough.jsonl")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let script = std::fs::canonicalize(format!("{cases}/c11_fake_nextflow.sh")).unwrap();
    let engine = stand_in(&directory.path().join("nextflow"));
    std::fs::copy(script, directory.path().join("nextflow")).unwrap();
    std::fs::set_permissions(directory.path().join("nextflow"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    let recorded = directory.path().join("out");
    let env: [(OsString, OsString); 2] =
        [("FAKE_OUT".into(), recorded.clone().into()), ("FAKE_RC".into(), "7".into())];
    let mut count = 0;
    for line in lists.lines() {
        let list: Vec<String> = serde_json::from_str(line).unwrap();
        let args: Vec<OsString> = ["run".to_owned()].iter().chain(&list).map(OsString::from).collect();
        let launch = Launch {
            engine: &engine,
            args: &args,
            cwd: directory.path(),
            env: &env,
            output: None,
            raw: false,
        };
        let outcome = run(launch, &mut |_| {}).unwrap();
        assert_eq!((outcome.code, outcome.signal, outcome.interrupted), (Some(7), None, None));
        let bytes = std::fs::read(recorded.with_extension("argv")).unwrap();
        let mut expected = b"run\0".to_vec();
        list.iter().for_each(|argument| expected.extend([argument.as_bytes(), b"\0"].concat()));
        assert_eq!(bytes, expected, "{line}");
        count += 1;
    }
    assert_eq!(count, 12);
}

#[test]
fn output_is_streamed_in_order_and_kept() {
    let place = place(r"echo one; echo two >&2; printf 'three \377\r\n'; printf four; exit 3");
    std::fs::write(place.path().join("output"), "before\n").unwrap();
    let (code, lines) = place.run(false);
    assert_eq!(code, Some(3));
    assert_eq!(lines, ["one", "two", "three \u{fffd}", "four"]);
    let kept = std::fs::read(place.path().join("output")).unwrap();
    assert_eq!(kept, b"before\none\ntwo\nthree \xff\r\nfour");
}

#[test]
fn raw_output_is_not_ours() {
    let place = place("exit 0");
    let (code, lines) = place.run(true);
    assert_eq!((code, lines), (Some(0), vec![]));
    assert!(!place.path().join("output").exists());
}

#[test]
fn the_clock_ticks_through_silence_and_floods() {
    for script in ["sleep 1.5", "timeout 1.5 yes; true"] {
        let place = place(script);
        let engine = stand_in(&place.program);
        let mut ticks = 0;
        let started = Instant::now();
        let outcome = run(launch(&engine, &[], place.path(), None, false), &mut |event| {
            ticks += u32::from(matches!(event, Event::Tick));
        });
        assert!(outcome.unwrap().success(), "{script}");
        let expected = started.elapsed().as_secs_f64() / 0.2;
        assert!((0.5..=1.1).contains(&(f64::from(ticks) / expected)), "{script}: {ticks} of {expected}");
    }
}

#[test]
fn an_engine_that_leaves_its_output_open_does_not_hold_us() {
    let place = place("setsid sleep 5 & exit 0");
    let started = Instant::now();
    assert_eq!(place.run(false).0, Some(0));
    assert!(started.elapsed() < Duration::from_secs(4));
}

#[test]
fn a_missing_program_is_named() {
    let engine = stand_in(Path::new("/nowhere/nextflow"));
    let error = run(launch(&engine, &[], Path::new("/"), None, false), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind.exit_code(), 4);
    assert!(error.message.contains("/nowhere/nextflow"), "{error}");
}

#[test]
fn the_first_request_asks_and_waits() {
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
        let place = place(TIDY);
        let driver = Driver::start(&place.spec());
        driver.expect("line ready");
        driver.signal(signal);
        let events = driver.finish();
        assert!(events.contains(&format!("signal {number} 1\n")), "{events}");
        assert!(events.contains("line stopping\n"), "{events}");
        assert!(events.ends_with(&format!("outcome Some(1) None Some({number}) false\n")), "{events}");
        assert_nobody_in(place.path(), 0);
    }
}

#[test]
fn the_second_request_kills_the_whole_group() {
    let place = place(STUBBORN);
    let driver = Driver::start(&place.spec());
    driver.expect("line ready");
    driver.signal(Signal::INT);
    driver.expect("signal 2 1");
    std::thread::sleep(Duration::from_millis(500));
    assert!(processes_in(place.path()).len() >= 2, "the first request must not kill");
    driver.signal(Signal::INT);
    let events = driver.finish();
    assert!(events.ends_with("signal 2 2\noutcome None Some(9) Some(2) true\n"), "{events}");
    assert_nobody_in(place.path(), 1);
}

#[test]
fn an_echo_of_the_first_request_is_not_a_second() {
    let place = place("trap 'sleep 1; echo tidied; exit 1' TERM; echo ready; while :; do sleep 0.05; done");
    let driver = Driver::start(&place.spec());
    driver.expect("line ready");
    for _ in 0..3 {
        driver.signal(Signal::INT);
        std::thread::sleep(Duration::from_millis(30));
    }
    let events = driver.finish();
    assert!(events.contains("line tidied\n"), "{events}");
    assert!(events.ends_with("outcome Some(1) None Some(2) false\n"), "{events}");
}

#[test]
fn a_task_that_the_engine_forgot_is_ended() {
    let place = place(FORGETFUL);
    let driver = Driver::start(&place.spec());
    driver.expect("line ready");
    driver.signal(Signal::TERM);
    let events = driver.finish();
    assert!(events.ends_with("outcome None Some(15) Some(15) false\n"), "{events}");
    assert_nobody_in(place.path(), 1);
}

#[test]
fn nothing_outlives_a_driver_that_is_killed() {
    let place = place(TIDY);
    let driver = Driver::start(&place.spec());
    driver.expect("line ready");
    driver.signal(Signal::KILL);
    driver.finish();
    assert_nobody_in(place.path(), 5);
}

#[test]
fn an_engine_killed_by_another_leaves_no_task() {
    let place = place("sleep 300 & echo ready; kill -KILL $$");
    let driver = Driver::start(&place.spec());
    let events = driver.finish();
    assert!(events.ends_with("outcome None Some(9) None false\n"), "{events}");
    assert_nobody_in(place.path(), 1);
}

/// The driver behind a shell that has a signal ignored, as `scfoundry … &` in a script has SIGINT, `nohup` SIGHUP.
fn behind(signal: &str, place: &Place) -> Driver {
    let driver = Driver::command(&place.spec());
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("trap '' {signal}; exec \"$@\""), "bash"]).arg(driver.get_program());
    shell.args(driver.get_args()).envs(driver.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).process_group(0);
    Driver::spawn(shell, place.path())
}

#[test]
fn a_run_in_the_background_of_a_script_can_be_stopped() {
    let place = place(&format!("grep SigIgn /proc/$$/status; {TIDY}"));
    let driver = behind("INT", &place);
    driver.expect("line ready");
    let mask =
        driver.events().lines().find_map(|line| Some(line.strip_prefix("line SigIgn:")?.trim().to_owned()));
    let mask = u64::from_str_radix(&mask.unwrap(), 16).unwrap();
    assert_eq!(mask & 0b10, 0, "the engine must not inherit that SIGINT is ignored: {mask:x}");
    driver.signal(Signal::INT);
    let events = driver.finish();
    assert!(events.ends_with("outcome Some(1) None Some(2) false\n"), "{events}");
    assert_nobody_in(place.path(), 1);
}

#[test]
fn nohup_is_respected() {
    let place = place("echo ready; sleep 1; echo done");
    let driver = behind("HUP", &place);
    driver.expect("line ready");
    driver.signal(Signal::HUP);
    let events = driver.finish();
    assert!(events.ends_with("line done\noutcome Some(0) None None false\n"), "{events}");
}

#[test]
fn after_the_runs_a_signal_ends_the_program_again() {
    let place = place("exit 0");
    let driver = Driver::start(&Spec { linger: true, ..place.spec() });
    driver.expect("outcome Some(0)");
    driver.expect("lingering");
    driver.signal(Signal::INT);
    assert_eq!(driver.status().signal(), Some(2));
}

#[test]
fn runs_can_follow_each_other() {
    let place = place("exit 4");
    assert_eq!(place.run(false).0, Some(4));
    assert_eq!(place.run(false).0, Some(4));
}
