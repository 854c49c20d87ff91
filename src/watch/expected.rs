//! How many tasks each process of a run will have, from the parameters that its pipeline was given.

use std::path::Path;

use serde_json::{Value, json};

use crate::plan::Feed;

/// The processes of the run in the order they work, each with the number of its tasks; nothing where `params.json` is not
/// that of a pipeline of ours.
pub(super) fn tasks(run: &Path) -> Vec<(String, usize)> {
    let read = std::fs::read(run.join("params.json"));
    let parameters: Option<Value> = read.ok().and_then(|text| serde_json::from_slice(&text).ok());
    parameters.and_then(|parameters| count(&parameters)).unwrap_or_default()
}

fn count(parameters: &Value) -> Option<Vec<(String, usize)>> {
    let inputs = parameters["inputs"].as_array()?;
    let tasks = |process: &str| match Feed::of(process) {
        Feed::Of(role) => inputs.iter().filter(|input| input["role"] == json!(role)).count(),
        Feed::Joined => 1,
        Feed::All => inputs.len(),
    };
    let processes = parameters["work"].as_object()?.keys();
    Some(processes.map(|process| (process.clone(), tasks(process))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(work: Value, roles: &[&str]) -> Vec<(String, usize)> {
        let inputs: Vec<Value> = roles.iter().map(|role| json!({ "role": role })).collect();
        count(&json!({ "work": work, "inputs": inputs })).unwrap()
    }

    fn named(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
        expected.iter().map(|(process, count)| ((*process).to_owned(), *count)).collect()
    }

    #[test]
    fn each_process_has_the_inputs_of_its_role() {
        assert_eq!(counted(json!({ "EMBED": {} }), &["data", "data"]), named(&[("EMBED", 2)]));
        assert_eq!(
            counted(json!({ "FIT": {}, "PROJECT": {}, "CLASSIFY": {} }), &["reference", "query", "query"]),
            named(&[("FIT", 1), ("PROJECT", 2), ("CLASSIFY", 2)])
        );
        assert_eq!(
            counted(json!({ "GEOMETRY": {}, "TABULATE": {} }), &["data", "embedding", "embedding"]),
            named(&[("GEOMETRY", 2), ("TABULATE", 1)])
        );
    }

    #[test]
    fn other_pipelines_have_no_number() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(tasks(folder.path()), []);
        std::fs::write(folder.path().join("params.json"), r#"{"inputs": "a.csv"}"#).unwrap();
        assert_eq!(tasks(folder.path()), []);
    }
}
