//! What a finetune plans, and what it refuses before anything runs.

use serde_json::{Value, json};

use crate::world::{World, data};

/// A directory as training leaves it, as far as a plan looks into it.
fn trained(world: &World, format: &str) -> String {
    let description = json!({
        "format": format, "method": "geneformer", "model": "Geneformer/Geneformer-V1-10M", "label_key": "cell_type",
    });
    for (name, text) in
        [("meta.json", description.to_string().as_str()), ("method.json", "{}"), ("weights.pt", "")]
    {
        world.write(&format!("here/trained/{name}"), text);
    }
    world.here().join("trained").to_str().unwrap().to_owned()
}

fn processes(plan: &Value) -> Vec<&str> {
    plan["stages"].as_array().unwrap().iter().map(|stage| stage["process"].as_str().unwrap()).collect()
}

#[test]
fn a_trained_model_decides_what_was_decided_then_and_needs_no_weights() {
    let world = World::with_workspace("docker");
    let model = trained(&world, "scfoundry_finetune/1");
    let line = ["finetune", "--fitted", &model, "--query", &data()];
    let plan = world.plan(&line)["plan"].clone();
    assert_eq!((&plan["method"], processes(&plan)), (&json!("geneformer"), vec!["PREDICT"]));
    assert_eq!(plan["parameters"]["model"], "Geneformer/Geneformer-V1-10M");
    assert_eq!(plan["parameters"]["fitted"]["path"], model.as_str());
    assert_eq!(plan["weights"], json!([]));
    let outputs = plan["outputs"].to_string();
    assert!(outputs.contains("_report.json") && !outputs.contains("finetuned_models"), "{outputs}");
    for (option, value, word) in
        [("--method", "scgpt", "geneformer"), ("--model", "Geneformer-V2-104M", "Geneformer-V1-10M")]
    {
        let contradicting = [&line[..], &[option, value]].concat();
        world.refuses(
            &contradicting,
            2,
            &[option, value, "contradicts the trained model", word, "meta.json"],
        );
    }
    for (option, value) in
        [("--epochs", "3"), ("--batch-size", "4"), ("--seed", "1"), ("--learning-rate", "1e-3")]
    {
        let idle = [&line[..], &[option, value]].concat();
        let ended = world.run(&[&idle[..], &["--dry-run"]].concat()).succeeded();
        let sentence = format!("{option} is not used with --fitted: nothing is trained");
        assert!(ended.stderr.contains(&sentence), "{}", ended.stderr);
        world.refuses(&[&idle[..], &["--strict"]].concat(), 2, &[&sentence]);
    }
}

#[test]
fn what_is_no_trained_model_is_refused_before_anything_runs() {
    let world = World::with_workspace("docker");
    let data = data();
    let refuses = |folder: &str, words: &[&str]| {
        world.refuses(&["finetune", "--fitted", folder, "--query", &data], 3, words);
    };
    refuses("nowhere", &["nowhere is no trained model", "meta.json"]);
    refuses(
        &trained(&world, "scfoundry_finetune/2"),
        &["trained is no trained model", "scfoundry_finetune/2"],
    );
    let model = trained(&world, "scfoundry_finetune/1");
    std::fs::remove_file(std::path::Path::new(&model).join("weights.pt")).unwrap();
    refuses(&model, &["weights.pt is missing"]);
    world.refuses(&["finetune", "--reference", &data, "--query", &data], 2, &["--method"]);
}

#[test]
fn without_a_query_it_is_only_trained() {
    let world = World::with_workspace("docker");
    let plan = world.plan(&["finetune", "--method", "geneformer", "--reference", &data()])["plan"].clone();
    assert_eq!(processes(&plan), ["TRAIN"]);
    assert_eq!(plan["outputs"].as_array().unwrap().len(), 1);
}

#[test]
fn numbers_that_training_cannot_take_are_refused() {
    let world = World::new();
    let data = data();
    for (option, value) in [
        ("--learning-rate", "0"),
        ("--learning-rate", "-1"),
        ("--learning-rate", "nan"),
        ("--seed", "-1"),
        ("--finetune_eval_size", "0"),
        ("--finetune_eval_size", "1"),
        ("--finetune_eval_size", "some"),
    ] {
        world.refuses(
            &["finetune", "--method", "geneformer", "--reference", &data, option, value],
            2,
            &[option],
        );
    }
}
