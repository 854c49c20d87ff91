//! A directory, a home and a PATH for one test.

use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The commands that the stand-in and `command.sh` need.
const TOOLS: [&str; 7] = ["sh", "bash", "sleep", "env", "grep", "sort", "ps"];

/// The place of one test: `here` to work in, `home`, and `bin` as the whole PATH.
pub struct World {
    directory: TempDir,
}

impl World {
    pub fn new() -> World {
        let directory = tempfile::Builder::new().prefix("scfoundry-cli-").tempdir().unwrap();
        let world = World { directory };
        for folder in ["here", "home", "bin"] {
            std::fs::create_dir(world.root().join(folder)).unwrap();
        }
        for tool in TOOLS {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            let found = found.iter().find(|path| path.exists()).unwrap();
            symlink(found, world.root().join("bin").join(tool)).unwrap();
        }
        world
    }

    /// A world whose `here` is a workspace.
    pub fn with_workspace(runtime: &str) -> World {
        let world = World::new();
        world.run(&["init", "--runtime", runtime]).succeeded();
        world
    }

    pub fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    /// The current directory of the program.
    pub fn here(&self) -> PathBuf {
        self.root().join("here")
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// Where the stand-in writes down what it got.
    pub fn recorded(&self) -> PathBuf {
        self.root().join("recorded")
    }

    /// The program with its arguments, not yet started. Nothing of this process's environment reaches it.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scfoundry"));
        command
            .args(arguments)
            .current_dir(self.here())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", self.root().join("bin"))
            .env("FAKE_OUT", self.recorded())
            .stdin(Stdio::null());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ended {
        Ended::of(self.command(arguments))
    }

    /// Runs the program with the stand-in as its Nextflow; its option goes before any `--`.
    pub fn run_stand_in(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command_stand_in(arguments))
    }

    pub fn command_stand_in(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command.env("SCFOUNDRY_NEXTFLOW", stand_in());
        command
    }

    /// The JSON document that the program prints.
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).document()
    }

    /// The plan that `--dry-run` shows.
    pub fn plan(&self, arguments: &[&str]) -> Value {
        self.json(&[arguments, &["--dry-run"]].concat())
    }

    /// A file in the world, with folders as needed.
    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A shell script that can be run.
    pub fn script(&self, path: &str, text: &str) -> PathBuf {
        let path = self.write(path, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The run directories, sorted by path.
    pub fn runs(&self) -> Vec<PathBuf> {
        let mut runs = Vec::new();
        for task in entries(&self.here().join("runs")) {
            runs.extend(entries(&task));
        }
        runs.sort();
        runs
    }

    /// The only run directory.
    pub fn only_run(&self) -> PathBuf {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].clone()
    }

    /// The arguments that the stand-in got.
    pub fn argv(&self) -> Vec<String> {
        argv(&self.recorded())
    }

    /// Everything below the world, with sizes: equal before and after a command that must write nothing.
    pub fn listing(&self) -> Vec<(PathBuf, u64)> {
        let mut found = Vec::new();
        list(&self.root(), &mut found);
        found.sort();
        found
    }

    /// Fails unless the command is refused with this exit code and one error that holds all the words, and writes nothing.
    pub fn refuses(&self, arguments: &[&str], code: i32, words: &[&str]) -> Ended {
        let before = self.listing();
        let ended = self.run(arguments);
        ended.refused(code, words);
        assert_eq!(self.listing(), before, "{arguments:?} wrote something");
        ended
    }

    /// The text with what differs between machines and moments replaced.
    pub fn masked(&self, text: &str) -> String {
        let mut text = text.replace(self.root().to_str().unwrap(), "[WORLD]");
        text = text.replace(env!("CARGO_BIN_EXE_scfoundry"), "[SCFOUNDRY]");
        text = text.replace(cases().to_str().unwrap(), "[CASES]");
        text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]")
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder).into_iter().flatten();
    found.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

fn list(folder: &Path, found: &mut Vec<(PathBuf, u64)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        let size = if kind.is_file() { entry.metadata().unwrap().len() } else { 0 };
        found.push((entry.path(), size));
        if kind.is_dir() {
            list(&entry.path(), found);
        }
    }
}

/// The NUL-separated arguments that a stand-in recorded beside `record`.
pub fn argv(record: &Path) -> Vec<String> {
    let bytes = std::fs::read(record.with_extension("argv")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.strip_suffix('\0').unwrap().split('\0').map(str::to_owned).collect()
}

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn of(mut command: Command) -> Ended {
        Ended::from(command.output().unwrap())
    }

    pub fn from(output: Output) -> Ended {
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub fn succeeded(self) -> Ended {
        assert_eq!(self.code, Some(0), "{self:#?}");
        assert!(!self.stderr.contains("error:"), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn document(self) -> Value {
        let ended = self.succeeded();
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:#?}"))
    }

    /// Fails unless it ended with this code and one error that holds all the words, and said nothing on stdout.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert_eq!(self.stdout, "", "{self:#?}");
        assert_eq!(self.stderr.matches("error: ").count(), 1, "{self:#?}");
        assert!(self.stderr.starts_with("error: ") || self.stderr.contains("\nerror: "), "{self:#?}");
        for trouble in ["panicked", "backtrace", "RUST_", ".rs:"] {
            assert!(!self.stderr.contains(trouble), "{self:#?}");
        }
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {self:#?}");
        }
    }
}

/// The case files.
pub fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases")
}

/// The path of a case file as text.
pub fn case(name: &str) -> String {
    cases().join(name).to_str().unwrap().to_owned()
}

/// A data set of 80 cells with two batches and labels.
pub fn data() -> String {
    case("a06_csr_int32.h5ad")
}

/// The stand-in for Nextflow.
pub fn stand_in() -> String {
    case("c11_fake_nextflow.sh")
}

/// Waits until a condition holds, for a minute at most.
#[track_caller]
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The command lines of the living processes that work in a directory or below it.
pub fn processes_in(directory: &Path) -> Vec<String> {
    let inside = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten().filter(inside);
    all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok())
        .map(|line| line.replace('\0', " "))
        .collect()
}

/// The record of a run.
pub fn record(run: &Path) -> Value {
    read_json(&run.join("run.json"))
}

pub fn read_json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
