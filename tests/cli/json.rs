//! `--json` of every command that has it.

use serde_json::{Value, json};

use crate::world::{World, case, data};

#[test]
fn init_then_info() {
    let world = World::new();
    let made = world.json(&["init", "--runtime", "podman"]);
    assert_eq!((&made["created"], &made["runtime"]), (&json!(true), &json!("podman")));
    assert_eq!(made["workspace"], json!(world.here()));
    assert_eq!(world.json(&["init", "--runtime", "docker"])["created"], json!(false));
    let info = world.json(&["info"]);
    assert_eq!((&info["runtime"], &info["executor"]), (&json!("podman"), &json!("local")));
    assert_eq!((&info["methods"], &info["exists"]), (&json!(22), &json!(true)));
    assert_eq!(info["nextflow"]["origin"], json!("managed"));
}

#[test]
fn doctor_tells_and_fails_without_an_engine() {
    let world = World::new();
    let ended = world.run(&["doctor", "--json"]);
    assert_eq!(ended.code, Some(4));
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let level = |name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap()["level"].clone()
    };
    assert_eq!(report["ok"], json!(false));
    assert_eq!((level("nextflow"), level("bash"), level("ps")), (json!("fail"), json!("ok"), json!("ok")));

    let mut command = world.command(&["doctor", "--json"]);
    command.env("SCFOUNDRY_NEXTFLOW", crate::world::stand_in());
    let report = crate::world::Ended::of(command).document();
    assert_eq!(report["ok"], json!(true));
}

#[test]
fn the_lists() {
    let world = World::new();
    let methods = world.json(&["list", "methods"]);
    assert_eq!(methods["methods"].as_array().unwrap().len(), 22);
    for method in methods["methods"].as_array().unwrap() {
        assert!(method["name"].is_string() && method["gpu"].is_boolean() && method["tasks"].is_array());
    }
    let finetune = world.json(&["list", "methods", "--task", "finetune"]);
    assert_eq!(finetune["methods"].as_array().unwrap().len(), 9);
    let tasks = world.json(&["list", "tasks"]);
    let embed = &tasks["tasks"].as_array().unwrap()[0];
    assert_eq!((&embed["task"], &embed["methods"]), (&json!("embed"), &json!(22)));
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 6);
}

#[test]
fn plans_and_downloads() {
    let world = World::new();
    let plan = world.plan(&["embed", "--method", "pca", "--data", &data()]);
    assert_eq!(plan["plan"]["inputs"][0]["cells"], json!(80));
    assert_eq!(plan["command"][0], json!("run"));
    assert!(plan["nextflow_config"].as_str().unwrap().contains("withName: 'EMBED'"));
    let weights = world.json(&["download", "--method", "scgpt", "--model", "scGPT_CP", "--dry-run"]);
    assert_eq!(weights["model"]["name"], json!("scGPT/scGPT_CP"));
    assert_eq!(weights["weights_dir"], json!(world.here().join("data/model_weights")));
    assert!(!world.here().join("data").exists());
}

#[test]
fn runs_and_costs() {
    let world = World::with_workspace("none");
    assert_eq!(world.json(&["runs"])["runs"], json!([]));
    let ended = world.run_stand_in(&["embed", "--method", "pca", "--data", &data(), "--json"]);
    let document = ended.document();
    assert_eq!((&document["status"], &document["exit_code"]), (&json!("ok"), &json!(0)));
    let runs = world.json(&["runs"]);
    assert_eq!(runs["runs"][0]["path"], document["run"]);
    assert_eq!(runs["runs"][0]["status"], json!("ok"));
    assert_eq!(world.json(&["runs", "--task", "check"])["runs"], json!([]));
    let cost = world.json(&["cost", &case("c03_trace_cached_duplicates.txt")]);
    assert!(cost["tasks"].as_array().unwrap().len() == 4, "{cost}");
}
