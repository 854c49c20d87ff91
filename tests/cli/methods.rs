//! Every method in every task it can do, and the tasks that need none: all are planned and rendered.

use serde_json::{Value, json};

use crate::world::{World, case, data};

pub const RUNTIMES: [&str; 5] = ["docker", "podman", "apptainer", "singularity", "none"];

/// Name, whether it needs a GPU, and tasks of the built-in methods.
pub fn methods(world: &World) -> Vec<(String, bool, Vec<String>)> {
    let listed = world.json(&["list", "methods"]);
    let described = |method: &Value| {
        let tasks = method["tasks"].as_array().unwrap().iter().map(|task| task.as_str().unwrap().to_owned());
        (method["name"].as_str().unwrap().to_owned(), method["gpu"].as_bool().unwrap(), tasks.collect())
    };
    listed["methods"].as_array().unwrap().iter().map(described).collect()
}

/// The command line of a task by a method.
fn line<'a>(task: &'a str, method: &'a str, data: &'a str) -> Vec<&'a str> {
    match task {
        "embed" => vec!["embed", "--method", method, "--data", data],
        task => vec![task, "--method", method, "--reference", data, "--query", data],
    }
}

#[test]
fn every_method_in_every_task_it_can_do_in_every_runtime() {
    let data = data();
    let mut rendered = 0;
    for runtime in RUNTIMES {
        let world = World::with_workspace(runtime);
        for (method, gpu, tasks) in methods(&world) {
            for task in &tasks {
                check(&world, runtime, &line(task, &method, &data), gpu);
                rendered += 1;
            }
        }
    }
    assert_eq!(rendered, 5 * 49);
}

fn check(world: &World, runtime: &str, line: &[&str], gpu: bool) {
    let document = world.plan(line);
    let plan = &document["plan"];
    let text = document["nextflow_config"].as_str().unwrap();
    assert_eq!(plan["runtime"], json!(runtime), "{line:?}");
    assert_eq!(plan["warnings"], json!([]), "{line:?}");
    assert!(!plan["outputs"].as_array().unwrap().is_empty(), "{line:?}");
    for stage in plan["stages"].as_array().unwrap() {
        let native = stage["work"].get("kernel").is_some();
        assert_eq!(stage["gpu"], json!(gpu && !native), "{line:?}");
        assert_eq!(stage["container"].is_null(), native, "{line:?}");
        assert!(text.contains(&format!("withName: '{}'", stage["process"].as_str().unwrap())), "{line:?}");
    }
    assert_balanced(text);
    let flags = ["--gpus", "--nv", "nvidia.com/gpu", "CUDA_VISIBLE_DEVICES="];
    let flagged = flags.iter().any(|flag| text.contains(flag));
    assert_eq!(flagged, gpu, "{runtime} {line:?}\n{text}");
}

/// Braces outside strings pair up, and every string ends on its line.
fn assert_balanced(text: &str) {
    let mut depth = 0;
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let mut quote: Option<char> = None;
        let mut characters = line.chars();
        while let Some(character) = characters.next() {
            match (character, quote) {
                ('\\', Some(_)) => drop(characters.next()),
                ('\'' | '"', None) => quote = Some(character),
                (_, Some(open)) if character == open => quote = None,
                ('{', None) => depth += 1,
                ('}', None) => depth -= 1,
                _ => {}
            }
        }
        assert!(quote.is_none(), "a string without an end: {line}");
    }
    assert_eq!(depth, 0, "{text}");
}

#[test]
fn every_task_without_a_method_is_native() {
    let data = data();
    let embedding = case("b09_four_blobs.h5ad");
    let lines = [
        vec!["check", "--data", &data],
        vec!["check", "--data", &data, "--method", "scgpt"],
        vec!["benchmark", "--embedding", &embedding, "--batch-key", "batch_id", "--metrics", "all"],
        vec!["geometry", "--embedding", &embedding, "--data", &data],
    ];
    for runtime in RUNTIMES {
        let world = World::with_workspace(runtime);
        for line in &lines {
            check(&world, runtime, line, false);
            let stages = &world.plan(line)["plan"]["stages"];
            assert!(stages.as_array().unwrap().iter().all(|stage| stage["work"]["kernel"].is_string()));
        }
    }
}
