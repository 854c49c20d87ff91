//! A workspace of a test, and the program run in it.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use scfoundry::h5ad::{H5ad, Slot};
use scfoundry::matrix::RowBlocks;
use scfoundry::nextflow::{Engine, Request, locate};
use scfoundry::ui::Ui;
use serde_json::Value;
use tempfile::TempDir;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_scfoundry");

/// A new directory that becomes a workspace with the first task run in it.
pub struct Place {
    _folder: TempDir,
    root: PathBuf,
}

/// How the program ended.
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Place {
        Place::named("place")
    }

    pub fn named(name: &str) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join(name);
        std::fs::create_dir(&root).unwrap();
        Place { _folder: folder, root }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    pub fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments);
        surround(&mut command, &self.root);
        command
    }

    /// Runs the program in the workspace.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Done {
        Done::of(&self.command(arguments).output().unwrap())
    }

    /// Runs the program, which must end well; gives its one JSON document.
    pub fn json<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Value {
        let done = Done::of(&self.command(arguments).arg("--json").output().unwrap());
        done.expect(0);
        serde_json::from_str(&done.stdout).unwrap()
    }

    /// All runs, newest first.
    pub fn runs(&self) -> Vec<Value> {
        self.json(&["runs", "--limit", "1000"])["runs"].as_array().unwrap().clone()
    }

    /// The directory of the newest run.
    pub fn newest(&self) -> PathBuf {
        self.runs()[0]["path"].as_str().unwrap().into()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Done {
    pub fn of(output: &Output) -> Done {
        Done {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    #[track_caller]
    pub fn expect(&self, code: i32) -> &Done {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self
    }

    /// The part of stderr from the error on; there must be exactly one.
    #[track_caller]
    pub fn error(&self) -> &str {
        let errors: Vec<usize> = self.stderr.match_indices("error: ").map(|(position, _)| position).collect();
        assert_eq!(errors.len(), 1, "{}", self.stderr);
        &self.stderr[errors[0]..]
    }
}

/// The environment of all tests: the shared cache, no Nextflow of the machine, no setting of the user.
pub fn surround(command: &mut Command, directory: &Path) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SCFOUNDRY_") {
            command.env_remove(name);
        }
    }
    command.current_dir(directory).env("SCFOUNDRY_CACHE", cache()).env("PATH", path());
    command.env("SCFOUNDRY_HISTORY", directory.join("history"));
    command.env("XDG_CONFIG_HOME", directory.join("no-config")).stdin(Stdio::null());
}

/// `$SCFOUNDRY_TEST_CACHE`, or a directory beside the build.
pub fn cache() -> PathBuf {
    let cache = std::env::var_os("SCFOUNDRY_TEST_CACHE").map(PathBuf::from);
    cache.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"))
}

/// PATH without any Nextflow of the machine.
pub fn path() -> OsString {
    let path = std::env::var_os("PATH").unwrap();
    let without = std::env::split_paths(&path).filter(|directory| !directory.join("nextflow").exists());
    std::env::join_paths(without).unwrap()
}

/// PATH with a directory in front.
pub fn path_with(directory: &Path) -> OsString {
    let path = path();
    let all = std::iter::once(directory.to_path_buf()).chain(std::env::split_paths(&path));
    std::env::join_paths(all).unwrap()
}

/// The managed engine as a command in `directory`.
pub fn nextflow<S: AsRef<OsStr>>(directory: &Path, arguments: &[S]) -> Command {
    let variables = std::env::vars_os().filter(|(name, _)| !name.to_string_lossy().starts_with("SCFOUNDRY_"));
    let own = [("SCFOUNDRY_CACHE".into(), cache().into()), ("PATH".into(), path())];
    let request = Request::new(None, None, variables.chain(own));
    let Engine { program, prefix, env, .. } = locate(&request, &Ui::default()).unwrap();
    let mut command = Command::new(program);
    surround(&mut command, directory);
    command.args(prefix).args(arguments).envs(env);
    command
}

pub fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(name)
}

pub fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/pbmc_700.h5ad")
}

/// The rows of a trace by column name.
pub fn trace(path: &Path) -> Vec<std::collections::BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
    let header = lines.next().unwrap();
    lines.map(|row| header.iter().cloned().zip(row).collect()).collect()
}

/// X of an embedding: dimensions, and values row by row.
pub fn embedding(path: &Path) -> (usize, Vec<f64>) {
    let file = H5ad::open(path).unwrap();
    let matrix = file.matrix(&Slot::X).unwrap();
    assert_eq!(matrix.dtype(), "float32");
    let (rows, dims) = matrix.shape();
    let mut values = vec![0.0; rows * dims];
    matrix
        .for_each_block(&mut |block| {
            for row in 0..block.rows() {
                let (columns, row_values) = block.row(row);
                for (column, value) in columns.iter().zip(row_values) {
                    values[(block.first_row + row) * dims + *column as usize] = *value;
                }
            }
            Ok(())
        })
        .unwrap();
    (dims, values)
}

/// Waits until a condition holds, for some seconds at most.
pub fn wait_for(seconds: u64, condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    true
}

/// The command lines of the living processes that work in a directory or below it.
pub fn processes_in(directory: &Path) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
        })
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}

#[track_caller]
pub fn assert_nobody_in(directory: &Path) {
    let gone = wait_for(15, || processes_in(directory).is_empty());
    assert!(gone, "left behind: {:#?}", processes_in(directory));
}
