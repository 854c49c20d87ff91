//! A workspace whose tasks find the environment of the models, and tiny weights for the demo's genes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use tempfile::TempDir;

use crate::place::{Done, Place, demo, path};

/// The methods that embed each cell by itself and whose runners are in this build, with a model of each.
pub const MODELS: [(&str, &str); 11] = [
    ("c2s", "C2S-Pythia-410m-cell-type-prediction"),
    ("cellfm", "CellFM_80M_weight.ckpt"),
    ("geneformer", "Geneformer-V2-316M"),
    ("geneformer", "Geneformer-V1-10M"),
    ("langcell", "LangCell"),
    ("scbert", "panglao_pretrain.pth"),
    ("sccello", "scCello-zeroshot"),
    ("scfoundation", "models.ckpt"),
    ("scgpt", "scGPT_human"),
    ("scimilarity", "model_v1.1"),
    ("scvi", "scVI/Census2024-07-01-HomoSapiens"),
];

fn environment() -> PathBuf {
    std::env::var_os("SCFOUNDRY_TEST_MODELS")
        .expect("set SCFOUNDRY_TEST_MODELS to a directory that tests/models/environment.sh has made")
        .into()
}

/// What `tests/models/SCRIPT` prints, which must end well.
pub fn python(script: &str, words: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(script);
    let mut command = Command::new(environment().join("bin/python"));
    let done = Done::of(&command.arg(script).args(words).output().unwrap());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done.stdout
}

/// The directory of weights, made once for all tests.
pub fn weights() -> &'static str {
    static WEIGHTS: OnceLock<TempDir> = OnceLock::new();
    let folder = WEIGHTS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        python("tiny.py", &[demo().to_str().unwrap(), folder.path().to_str().unwrap()]);
        folder
    });
    folder.path().to_str().unwrap()
}

pub fn workspace() -> Place {
    let place = Place::new();
    place.run(&["init", ".", "--runtime", "none"]).expect(0);
    place
}

/// PATH with the models' Python in front, after the given directories, and without any nvidia-smi of the machine.
pub fn search_path(first: &[PathBuf]) -> OsString {
    let own = first.iter().cloned().chain([environment().join("bin")]);
    let others = std::env::split_paths(&path()).map(without_cards).collect::<Vec<_>>();
    std::env::join_paths(own.chain(others)).unwrap()
}

/// The directory itself, or one of links to all else that is in it.
fn without_cards(directory: PathBuf) -> PathBuf {
    static COPIES: Mutex<BTreeMap<PathBuf, TempDir>> = Mutex::new(BTreeMap::new());
    if !directory.join("nvidia-smi").exists() {
        return directory;
    }
    let mut copies = COPIES.lock().unwrap();
    let copy = copies.entry(directory.clone()).or_insert_with(|| {
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(&directory).unwrap().flatten() {
            if entry.file_name() != "nvidia-smi" {
                symlink(entry.path(), copy.path().join(entry.file_name())).unwrap();
            }
        }
        copy
    });
    copy.path().to_owned()
}

/// A command of the program with the models' Python in PATH and the tiny weights.
pub fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(arguments);
    command.args(["--weights-dir", weights()]).env("PATH", search_path(&[]));
    command
}

pub fn run(place: &Place, arguments: &[&str]) -> Done {
    Done::of(&command(place, arguments).output().unwrap())
}
