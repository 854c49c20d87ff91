//! `--batch-size` reaches every method that has batches, and is never swallowed (case D07).

use serde_json::json;

use crate::methods::methods;
use crate::world::{World, data};

/// Methods without batches.
const WITHOUT: [&str; 9] = [
    "cellama",
    "genept",
    "harmony",
    "novae",
    "pca",
    "scfoundation",
    "scvi_denovo",
    "seurat_cca",
    "seurat_rpca",
];

#[test]
fn eight_is_in_the_parameters_or_a_warning_says_that_it_is_not_used() {
    let world = World::with_workspace("docker");
    let mut without = Vec::new();
    for (method, ..) in methods(&world) {
        let data = data();
        let line = ["embed", "--method", &method, "--data", &data, "--batch-size", "8", "--dry-run"];
        let strict = world.run(&[&line[..], &["--strict"]].concat());
        let ended = world.run(&[&line[..], &["--json"]].concat());
        let warned = ended.stderr.clone();
        let plan = ended.document()["plan"].clone();
        let name = if method == "scgpt_integrated" { "integration_batch_size" } else { "batch_size" };
        if plan["parameters"][name] == json!(8) {
            assert_eq!(warned, "", "{method}");
            assert!(plan["parameters"]["read"].as_array().unwrap().contains(&json!(name)), "{method}");
            strict.succeeded();
        } else {
            assert!(plan["parameters"].get(name).is_none(), "{method}");
            assert_eq!(warned.matches("warning: ").count(), 1, "{method}: {warned}");
            assert!(
                warned.contains(&format!("{method} has no batch size; --batch-size is not used")),
                "{warned}"
            );
            strict.refused(2, &["--batch-size", &method]);
            without.push(method);
        }
    }
    without.sort();
    assert_eq!(without, WITHOUT);
}

#[test]
fn numbers_that_are_no_batch_size_are_refused() {
    let world = World::new();
    for command in ["embed", "transfer", "finetune"] {
        for value in ["0", "-1", "1.5", "abc", ""] {
            let data = data();
            let inputs = if command == "embed" {
                vec!["--data", &data]
            } else {
                vec!["--reference", &data, "--query", &data]
            };
            let line =
                [vec![command, "--method", "scgpt", "--batch-size", value, "--dry-run"], inputs].concat();
            world.refuses(&line, 2, &["--batch-size", "whole number of at least 1"]);
        }
    }
    world.refuses(
        &["embed", "--method", "scgpt_integrated", "--data", &data(), "--integration_batch_size", "0"],
        2,
        &["--integration_batch_size", "whole number of at least 1"],
    );
}

#[test]
fn training_and_prediction_have_their_own() {
    let world = World::with_workspace("docker");
    let data = data();
    let line = |method| ["finetune", "--method", method, "--reference", &data, "--query", &data];
    let more = ["--batch-size", "8", "--predict_batch_size", "9", "--epochs", "2"];
    let plan = world.plan(&[&line("scgpt")[..], &more].concat());
    let parameters = &plan["plan"]["parameters"];
    let found = ["batch_size", "predict_batch_size", "epochs"].map(|name| parameters[name].as_i64());
    assert_eq!(found, [Some(8), Some(9), Some(2)]);
    let ended = world.run(&[&line("cellplm")[..], &more, &["--dry-run"]].concat()).succeeded();
    for option in ["--batch-size", "--predict_batch_size"] {
        assert!(ended.stderr.contains(option), "{}", ended.stderr);
    }
}
