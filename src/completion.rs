//! What a good run was made from and what it made, so that the same is not computed a second time.
//!
//! A run stands for a later one when the same was decided, the inputs are as they were, and every output is, byte for byte,
//! what the run has put there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::plan::{DECIDED, Plan};
use crate::rundir::{Completion, InputState, OutputState, Record, RunDir};

/// Parameters that change no result, or are compared in another way.
const ASIDE: [&str; 3] = ["gpu_id", "inputs", DECIDED];

/// Arguments of the engine that change no result, and may have a value.
const WATCHING: [&str; 9] = [
    "-resume",
    "-with-trace",
    "-with-report",
    "-with-timeline",
    "-with-dag",
    "-ansi-log",
    "-w",
    "-work-dir",
    "-name",
];

/// The completion of a run by its plan; `outputs` in the plan's order.
pub fn of(plan: &Plan, outputs: Vec<OutputState>) -> Completion {
    let decisions = hexadecimal(Sha256::digest(decisions(plan).to_string()));
    Completion { decisions, inputs: inputs(plan), outputs }
}

/// The size and the hash of an output: a file's, or that of all files of a directory in the order of their names.
///
/// # Errors
/// Something in it cannot be read.
pub fn state(path: &Path) -> Result<OutputState> {
    let mut hasher = Sha256::new();
    let mut bytes = 0;
    for (name, file) in files(path)? {
        if path.is_dir() {
            // With lengths in front, no two directories give the hasher the same bytes.
            let name = name.as_os_str().as_encoded_bytes();
            hasher.update((name.len() as u64).to_le_bytes());
            hasher.update(name);
            hasher.update(size(&file)?.to_le_bytes());
        }
        let mut open = File::open(&file).map_err(Error::io("read", &file))?;
        bytes += io::copy(&mut open, &mut hasher).map_err(Error::io("read", &file))?;
    }
    Ok(OutputState { bytes, sha256: hexadecimal(hasher.finalize()) })
}

/// Why a good run does not stand for a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The same was decided: it is the inputs or the results that have changed.
    pub same_decisions: bool,
    /// One sentence, lower case, no full stop.
    pub sentence: String,
}

/// Why a good run does not stand for the plan; `None`: it does.
pub fn difference(plan: &Plan, run: &RunDir, record: &Record, completion: &Completion) -> Option<Difference> {
    if completion.decisions != of(plan, Vec::new()).decisions {
        return Some(Difference { same_decisions: false, sentence: other_decision(plan, run) });
    }
    let sentence = change(plan, record, completion)?;
    Some(Difference { same_decisions: true, sentence })
}

/// What has changed since a run for which the same was decided.
fn change(plan: &Plan, record: &Record, completion: &Completion) -> Option<String> {
    let places = || record.outputs.iter().zip(&plan.outputs);
    if record.outputs.len() != plan.outputs.len()
        || !places().all(|(old, new)| is_same_place(&old.path, &new.path))
    {
        let place = record.outputs.first().and_then(|output| output.path.parent()).unwrap_or(Path::new(""));
        return Some(format!("its results are in {}", place.display()));
    }
    if completion.inputs.len() != plan.inputs.len() || completion.outputs.len() != plan.outputs.len() {
        return Some("its record is not whole".to_owned());
    }
    let mut now = plan.inputs.iter().zip(inputs(plan)).zip(&completion.inputs);
    if let Some(((input, _), _)) = now.find(|((_, state), old)| state != *old) {
        return Some(format!("the input {} has changed", input.path.display()));
    }
    let mut results = plan.outputs.iter().map(|output| &output.path).zip(&completion.outputs);
    results.find_map(|(path, old)| changed(path, old))
}

/// Whether two paths lead to one place, which may have been reached by a symbolic link then or now.
fn is_same_place(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || real(one).is_some_and(|one| real(other) == Some(one))
}

/// What is wrong with a result, if anything is.
fn changed(path: &Path, old: &OutputState) -> Option<String> {
    if !path.exists() {
        return Some(format!("its result {} is missing", path.display()));
    }
    let sizes = files(path)
        .and_then(|files| files.iter().try_fold(0, |sum, (_, file)| Ok::<u64, Error>(sum + size(file)?)));
    let is_same = match sizes {
        Ok(bytes) if bytes == old.bytes => state(path).is_ok_and(|state| state == *old),
        _ => false,
    };
    (!is_same).then(|| format!("its result {} has changed", path.display()))
}

/// All that was decided and can change a result, in an order that is always the same.
fn decisions(plan: &Plan) -> Value {
    let parameters: BTreeMap<&String, &Value> =
        plan.parameters.iter().filter(|(name, _)| !ASIDE.contains(&name.as_str())).collect();
    let images: Vec<Value> =
        plan.stages.iter().map(|stage| json!([stage.process, stage.container])).collect();
    let weights: Vec<Value> = plan.weights.iter().map(|weight| json!([weight.path, weight.bytes])).collect();
    let configs: Vec<Value> =
        plan.configs.iter().map(|path| with_contents(&path.to_string_lossy())).collect();
    json!({
        "parameters": parameters,
        "inputs": described(plan.parameters.get("inputs")),
        "images": images,
        "weights": weights,
        "configurations": configs,
        "arguments": telling(&plan.nextflow_text).into_iter().map(|text| with_contents(text)).collect::<Vec<_>>(),
    })
}

/// The inputs as the pipeline sees them, without the stamps: the state of every input is compared by itself.
fn described(inputs: Option<&Value>) -> Value {
    let mut inputs = inputs.cloned().unwrap_or_default();
    for input in inputs.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        input.remove("stamp");
    }
    inputs
}

/// The arguments of the engine that may change a result: all but those that only watch it.
fn telling(arguments: &[String]) -> Vec<&String> {
    let mut telling = Vec::new();
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        if WATCHING.contains(&argument.as_str()) {
            rest.next_if(|value| !value.starts_with('-'));
        } else {
            telling.push(argument);
        }
    }
    telling
}

/// An argument; of a file its hash too, since a file of parameters or settings decides by what it holds.
fn with_contents(argument: &str) -> Value {
    let path = Path::new(argument);
    let hash = path.is_absolute() && path.is_file();
    json!([argument, hash.then(|| state(path).ok()).flatten().map(|state| state.sha256)])
}

/// What else was decided then: told by the parameters that the run has written down.
fn other_decision(plan: &Plan, run: &RunDir) -> String {
    let written = fs::read(run.join("params.json")).ok();
    let old: Map<String, Value> =
        written.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let new = &plan.parameters;
    let mut names = new.keys().chain(old.keys()).filter(|name| !ASIDE.contains(&name.as_str()));
    let value = |all: &Map<String, Value>, name: &str| all.get(name).cloned().unwrap_or_default();
    match names.find(|name| value(new, name) != value(&old, name)) {
        Some(name) if name == "scfoundry" => {
            format!("scfoundry {} made it", shown(&value(&old, name)).unwrap_or_default())
        }
        Some(name) if name == "fitted" => "the fitted model was another, or has changed".to_owned(),
        Some(name) => match (shown(&value(new, name)), shown(&value(&old, name))) {
            (Some(new), Some(old)) => format!("{name} was {old} and is {new}"),
            _ => format!("{name} was another"),
        },
        None if described(new.get("inputs")) != described(old.get("inputs")) => {
            "the inputs are named in another way".to_owned()
        }
        None => "the images, the weights, `--config` or the arguments after `--` were others".to_owned(),
    }
}

/// A value of one word.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("not set".to_owned()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
        other => Some(other.to_string()),
    }
}

fn inputs(plan: &Plan) -> Vec<InputState> {
    let state =
        |input: &crate::plan::Input| InputState { bytes: input.bytes, modified_ns: input.modified_ns };
    plan.inputs.iter().map(state).collect()
}

/// The files of a directory by their names in it, sorted; of a file itself.
fn files(path: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let mut found = Vec::new();
    collect(path, Path::new(""), &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(path: &Path, name: &Path, found: &mut Vec<(PathBuf, PathBuf)>) -> Result<()> {
    if !path.is_dir() {
        found.push((name.to_owned(), path.to_owned()));
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(Error::io("list", path))? {
        let entry = entry.map_err(Error::io("list", path))?;
        collect(&entry.path(), &name.join(entry.file_name()), found)?;
    }
    Ok(())
}

fn size(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path).map_err(Error::io("read", path))?.len())
}

fn hexadecimal(digest: impl IntoIterator<Item = u8>) -> String {
    digest.into_iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(path: &Path) -> String {
        state(path).unwrap().sha256
    }

    #[test]
    fn a_file_has_the_hash_that_every_tool_gives_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(state(&path).unwrap(), OutputState { bytes: 3, sha256: expected.to_owned() });
        assert!(state(&folder.path().join("y")).unwrap_err().message.starts_with("cannot read"));
    }

    #[test]
    fn a_directory_has_that_of_its_files_with_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let model = |name: &str, files: &[(&str, &str)]| {
            let root = folder.path().join(name);
            for (file, text) in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            root
        };
        let one = model("one", &[("a", "1"), ("deep/b", "23")]);
        let same = model("same", &[("deep/b", "23"), ("a", "1")]);
        assert_eq!(state(&one).unwrap(), state(&same).unwrap());
        assert_eq!(state(&one).unwrap().bytes, 3);
        let others = [
            model("byte", &[("a", "1"), ("deep/b", "24")]),
            model("moved", &[("a", "12"), ("deep/b", "3")]),
            model("renamed", &[("a", "1"), ("deep/c", "23")]),
            model("fewer", &[("a", "1")]),
            model("joined", &[("a", "123"), ("deep/b", "")]),
        ];
        for other in others {
            assert_ne!(hash(&one), hash(&other), "{}", other.display());
        }
    }

    #[test]
    fn a_result_is_as_it_was_or_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "abc").unwrap();
        let old = state(&path).unwrap();
        assert_eq!(changed(&path, &old), None);
        for text in ["abd", "abcd", ""] {
            fs::write(&path, text).unwrap();
            assert!(changed(&path, &old).unwrap().ends_with("x has changed"), "{text}");
        }
        fs::remove_file(&path).unwrap();
        assert!(changed(&path, &old).unwrap().ends_with("x is missing"));
    }

    #[test]
    fn a_file_among_the_arguments_decides_by_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("params.json");
        let argument = path.to_str().unwrap().to_owned();
        let told = |text: &str| {
            fs::write(&path, text).unwrap();
            with_contents(&argument)
        };
        assert_eq!(told("{}"), told("{}"));
        assert_ne!(told("{}"), told("[]"));
        assert_eq!(with_contents("30"), json!(["30", null]));
    }

    #[test]
    fn only_arguments_that_may_change_a_result_tell() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let line =
            words("-resume abc -with-report r.html --pca_n_comps 30 -with-trace -stub-run -ansi-log true");
        assert_eq!(telling(&line), ["--pca_n_comps", "30", "-stub-run"]);
    }
}
