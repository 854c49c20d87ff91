//! Every method with every task in every runtime: the real engine reads what we write, and reads it as it was meant.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use scfoundry::method::{Catalogue, Task};
use scfoundry::render;
use serde_json::{Value, json};

use crate::place::{Done, Place, case, demo, nextflow, surround};

const RUNTIMES: [&str; 5] = ["docker", "podman", "apptainer", "singularity", "none"];

/// The command line of a task, without its name.
fn words(task: Task, method: &str, file: &str) -> Vec<String> {
    let inputs: &[&str] = match task {
        Task::Embed | Task::Check => &["--data"],
        Task::Transfer | Task::Finetune => &["--reference", "--query"],
        Task::Benchmark => &["--embedding"],
        Task::Geometry => &["--embedding", "--data"],
    };
    let mut words =
        vec![task.name().to_owned(), "--method".to_owned(), method.to_owned(), "--dry-run".to_owned()];
    words.extend(inputs.iter().flat_map(|input| [(*input).to_owned(), file.to_owned()]));
    words
}

/// What `nextflow config -flat` prints, by name; text without its quotes and escapes.
fn flat(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (name, value) = line.split_once(" = ").unwrap_or_else(|| panic!("no setting: {line}"));
        let value = match value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')) {
            Some(inner) => unescape(inner),
            None => value.to_owned(),
        };
        values.insert(name.to_owned(), value);
    }
    values
}

fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let next = if character == '\\' { characters.next().unwrap() } else { character };
        plain.push(if character == '\\' && next == 'n' { '\n' } else { next });
    }
    plain
}

/// What the engine must find for a plan, by name below `profiles.<case>.`; null for a setting that must not be there.
fn expected(document: &Value) -> Vec<(String, Value)> {
    let plan = &document["plan"];
    let work = format!("{}/work", document["run"].as_str().unwrap());
    let mut settings = vec![("workDir".to_owned(), json!(work)), ("trace.raw".to_owned(), json!("true"))];
    for stage in plan["stages"].as_array().unwrap() {
        let process = format!("process.'withName:{}'", stage["process"].as_str().unwrap());
        let native = stage["work"].get("kernel").is_some();
        let container = if native { json!("null") } else { stage["container"].clone() };
        settings.push((
            format!("{process}.container"),
            if container.is_null() { json!("null") } else { container },
        ));
        settings.push((format!("{process}.containerOptions"), stage["container_options"].clone()));
        // With the sampler behind it: what that does is shown by running it.
        if !native && stage["gpu"] == false {
            settings.push((format!("{process}.beforeScript"), stage["before_script"].clone()));
        }
        settings
            .push((format!("{process}.maxForks"), stage["max_forks"].as_u64().map(|n| n.to_string()).into()));
    }
    for setting in plan["engine_settings"].as_array().unwrap() {
        let value = match &setting[1] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        settings.push((setting[0].as_str().unwrap().to_owned(), json!(value)));
    }
    settings
}

#[test]
#[ignore = "engine: reads all configurations at once"]
fn engine_reads_every_configuration_as_it_was_meant() {
    let place = Place::named("it's (a) & b γδ 🧬");
    let catalogue = Catalogue::builtin().unwrap();
    // Small: it is opened for every plan.
    let data = case("a06_csr_int32.h5ad");
    let mut documents = Vec::new();
    for runtime in RUNTIMES {
        place.run(&["init", ".", "--force", "--runtime", runtime]).expect(0);
        for task in Task::ALL {
            for profile in catalogue.iter().filter(|profile| match task.is_done_by_a_method() {
                true => profile.supports(task),
                // For the others it is only a label.
                false => profile.name == "scgpt",
            }) {
                for gpu in ["0", "0,1"] {
                    let mut words = words(task, &profile.name, data.to_str().unwrap());
                    words.extend(["--gpu".to_owned(), gpu.to_owned()]);
                    documents.push(place.json(&words));
                }
            }
        }
    }
    assert!(documents.len() > 300, "{}", documents.len());

    // One JVM for all: each is a profile of one configuration.
    let mut all = String::from("profiles {\n");
    for (number, document) in documents.iter().enumerate() {
        // The workspace's own has profiles too, and is read by every real run.
        let text = document["nextflow_config"].as_str().unwrap();
        let alone: String =
            text.split_inclusive('\n').filter(|line| !line.starts_with("includeConfig ")).collect();
        assert_eq!(text.lines().count(), alone.lines().count() + 1);
        place.write(&format!("read/{number}.config"), &alone);
        writeln!(all, "    c{number} {{ includeConfig '{number}.config' }}").unwrap();
    }
    place.write("read/nextflow.config", &(all + "}\n"));
    let output = nextflow(&place.join("read"), &["config", "-flat", "-show-profiles"]).output().unwrap();
    let done = Done::of(&output);
    let settings = flat(&done.expect(0).stdout);
    for (number, document) in documents.iter().enumerate() {
        for (name, value) in expected(document) {
            let found = settings.get(&format!("profiles.c{number}.{name}"));
            assert_eq!(
                found.map(String::as_str),
                value.as_str(),
                "{name} of {}",
                document["nextflow_config"]
            );
        }
    }
}

#[test]
#[ignore = "engine: previews the pipeline of every task"]
fn engine_previews_every_pipeline() {
    let place = Place::named("it's γδ");
    place.run(&["init", ".", "--runtime", "docker"]).expect(0);
    let file = place.join("a'b (x).h5ad");
    std::fs::copy(case("a06_csr_int32.h5ad"), &file).unwrap();
    let shapes = [
        (Task::Embed, "scgpt"),
        (Task::Embed, "seurat_cca"),
        (Task::Transfer, "geneformer"),
        (Task::Transfer, "pca"),
        (Task::Finetune, "scgpt"),
        (Task::Check, "scgpt"),
        (Task::Benchmark, "scgpt"),
        (Task::Geometry, "scgpt"),
    ];
    for (task, method) in shapes {
        let document = place.json(&words(task, method, file.to_str().unwrap()));
        let folder = format!("preview/{task}-{method}");
        place.write(&format!("{folder}/nextflow.config"), document["nextflow_config"].as_str().unwrap());
        place.write(&format!("{folder}/params.json"), &render::ascii_json(&document["plan"]["parameters"]));
        for (path, text) in render::pipeline(task) {
            place.write(&format!("{folder}/{path}"), text);
        }
        let directory = place.join(&folder);
        let arguments =
            ["run", "pipeline/main.nf", "-preview", "-params-file", "params.json", "-ansi-log", "false"];
        let mut command = nextflow(&directory, &arguments);
        let output = command.args(["-with-dag", "dag.dot"]).output().unwrap();
        let done = Done::of(&output);
        assert_eq!(done.code, Some(0), "{task} {method}: {}{}", done.stdout, done.stderr);
        assert!(
            !format!("{}{}", done.stdout, done.stderr).contains("WARN"),
            "{}{}",
            done.stdout,
            done.stderr
        );
        let graph = std::fs::read_to_string(directory.join("dag.dot")).unwrap();
        for stage in document["plan"]["stages"].as_array().unwrap() {
            assert!(graph.contains(stage["process"].as_str().unwrap()), "{graph}");
        }
    }
}

#[test]
#[ignore = "engine: reads the configuration of a workspace with a hostile name"]
fn engine_reads_the_workspace_through_the_run() {
    let place = Place::named("it's (a) & b γδ");
    place.run(&["init", ".", "--runtime", "docker", "--gpu-id", "0,1"]).expect(0);
    let document = place.json(&words(Task::Embed, "scgpt", demo().to_str().unwrap()));
    place.write("read/nextflow.config", document["nextflow_config"].as_str().unwrap());
    let mut command = nextflow(&place.join("read"), &["config", "-flat", "-profile", "slurm"]);
    surround(&mut command, &place.join("read"));
    command.env("LC_ALL", "C.UTF-8");
    let done = Done::of(&command.output().unwrap());
    let settings = flat(&done.expect(0).stdout);
    assert_eq!(settings["docker.enabled"], "true");
    assert_eq!(settings["process.executor"], "slurm");
    assert_eq!(settings["params.gpu_id"], "0,1");
    assert_eq!(settings["env.SCFOUNDRY"], crate::place::PROGRAM);
    assert!(Path::new(&settings["workDir"]).starts_with(place.root()), "{}", settings["workDir"]);
}
