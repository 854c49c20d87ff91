//! A process that runs an engine and writes down what happens, to be signalled and killed by the tests.
//!
//! It is this test binary once more, told to run the one test [`driver`] with a [`Spec`] in its environment.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use scfoundry::nextflow::{Engine, Event, Launch, Origin, Outcome, Request, locate, run};
use scfoundry::ui::Ui;
use serde::{Deserialize, Serialize};

const SPEC: &str = "SCFOUNDRY_TEST_DRIVER";

/// What a driver is to do.
#[derive(Serialize, Deserialize)]
pub struct Spec {
    /// The directory to run in; `events` and `output` are written there.
    pub directory: PathBuf,
    /// A program in place of Nextflow; without one the engine is located as for a user.
    pub program: Option<PathBuf>,
    /// The arguments of the engine; with none it is only located.
    pub args: Vec<String>,
    pub raw: bool,
    /// Stay alive after the run.
    pub linger: bool,
}

#[test]
#[ignore = "started by the other tests; by itself it proves that `true` succeeds"]
fn driver() {
    let Ok(text) = std::env::var(SPEC) else {
        let outcome =
            run(launch(&stand_in(Path::new("true")), &[], Path::new("/"), None, false), &mut |_| {});
        assert!(outcome.unwrap().success());
        return;
    };
    let spec: Spec = serde_json::from_str(&text).unwrap();
    let events = spec.directory.join("events");
    let mut log = String::new();
    let mut note = |line: String| {
        writeln!(log, "{line}").unwrap();
        std::fs::write(&events, &log).unwrap();
    };
    let engine = match &spec.program {
        Some(program) => stand_in(program),
        None => match locate(&Request::from_env(None, None), &Ui::default()) {
            Ok(engine) => engine,
            Err(error) => return note(format!("error {error}")),
        },
    };
    note(format!("located {:?}", engine.program));
    if spec.args.is_empty() {
        return;
    }
    let args: Vec<OsString> = spec.args.iter().map(OsString::from).collect();
    let output = spec.directory.join("output");
    let launch = launch(&engine, &args, &spec.directory, Some(&output), spec.raw);
    let outcome = run(launch, &mut |event| match event {
        Event::Line(text) => note(format!("line {text}")),
        Event::Signal { number, count } => note(format!("signal {number} {count}")),
        Event::OutputLost(error) => note(format!("lost {error}")),
        Event::Tick => {}
    });
    match outcome {
        Ok(Outcome { code, signal, interrupted, killed }) => {
            note(format!("outcome {code:?} {signal:?} {interrupted:?} {killed}"));
        }
        Err(error) => note(format!("error {error}")),
    }
    if spec.linger {
        note("lingering".to_owned());
        std::thread::sleep(Duration::from_secs(60));
    }
}

pub fn stand_in(program: &Path) -> Engine {
    Engine {
        program: program.into(),
        prefix: Vec::new(),
        env: Vec::new(),
        origin: Origin::Option,
        version: None,
        java: None,
    }
}

pub fn launch<'a>(
    engine: &'a Engine,
    args: &'a [OsString],
    cwd: &'a Path,
    output: Option<&'a Path>,
    raw: bool,
) -> Launch<'a> {
    Launch { engine, args, cwd, env: &[], output, raw }
}

/// A running driver.
pub struct Driver {
    child: Child,
    directory: PathBuf,
}

impl Driver {
    /// The command that starts a driver, for callers that add to it.
    pub fn command(spec: &Spec) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "driver::driver", "--nocapture"]);
        command.env(SPEC, serde_json::to_string(spec).unwrap());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub fn start(spec: &Spec) -> Driver {
        Driver::spawn(Driver::command(spec), &spec.directory)
    }

    pub fn spawn(mut command: Command, directory: &Path) -> Driver {
        Driver { child: command.spawn().unwrap(), directory: directory.to_path_buf() }
    }

    pub fn events(&self) -> String {
        std::fs::read_to_string(self.directory.join("events")).unwrap_or_default()
    }

    /// Waits until the events hold a text.
    pub fn expect(&self, text: &str) {
        let seconds = 120;
        wait_for(seconds, || self.events().contains(text))
            .unwrap_or_else(|()| panic!("no {text:?} within {seconds} s in:\n{}", self.events()));
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn status(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Waits for the end; gives what happened.
    pub fn finish(mut self) -> String {
        self.child.wait().unwrap();
        self.events()
    }
}

/// Waits until a condition holds, for some seconds at most.
pub fn wait_for(seconds: u64, condition: impl Fn() -> bool) -> Result<(), ()> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !condition() {
        if Instant::now() > deadline {
            return Err(());
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    Ok(())
}

/// The command lines of the living processes that work in a directory or below it.
pub fn processes_in(directory: &Path) -> Vec<String> {
    let directory = directory.canonicalize().unwrap();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&directory))
        })
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}

/// Fails unless every process that works in a directory has ended within some seconds.
pub fn assert_nobody_in(directory: &Path, seconds: u64) {
    wait_for(seconds, || processes_in(directory).is_empty())
        .unwrap_or_else(|()| panic!("left behind: {:#?}", processes_in(directory)));
}
