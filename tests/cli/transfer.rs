//! What a transfer plans, and what it refuses before anything runs.

use serde_json::json;

use crate::world::{World, case, data};

/// A fitted classifier, made by the kernel.
fn fitted(world: &World, method: &str, classifier: &str) -> String {
    let folder = world.here().join("fitted");
    let blobs = case("b09_four_blobs.h5ad");
    let at = |name: &str| world.here().join(name);
    let specification = json!({
        "reference": blobs, "query": blobs, "fitted": null, "projection": null, "output": folder,
        "labels": at("labels.tsv"), "probabilities": at("probs.tsv"), "report": at("report.json"),
        "method": method, "model": if method == "scgpt" { json!("scGPT/scGPT_human") } else { json!(null) },
        "label_key": "cell_type", "classifier": classifier, "knn_k": 7,
    });
    let path = at("spec.json");
    std::fs::write(&path, specification.to_string()).unwrap();
    world.run(&["kernel", "classify", "--spec", path.to_str().unwrap()]).succeeded();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn a_fitted_model_decides_what_was_decided_then() {
    let world = World::with_workspace("docker");
    let model = fitted(&world, "scgpt", "knn");
    let line = ["transfer", "--fitted", &model, "--query", &data()];
    let plan = world.plan(&line)["plan"].clone();
    assert_eq!(plan["method"], "scgpt");
    let parameters = &plan["parameters"];
    assert_eq!(
        (&parameters["classifier"], &parameters["knn_k"], &parameters["label_key"], &parameters["model"]),
        (&json!("knn"), &json!(7), &json!("cell_type"), &json!("scGPT/scGPT_human"))
    );
    assert_eq!(parameters["fitted"]["path"], model.as_str());
    let processes: Vec<&str> =
        plan["stages"].as_array().unwrap().iter().map(|stage| stage["process"].as_str().unwrap()).collect();
    assert_eq!(processes, ["EMBED", "CLASSIFY"]);
    let outputs = plan["outputs"].as_array().unwrap();
    assert!(
        outputs.iter().all(|output| !output["path"].as_str().unwrap().contains("/models/")),
        "{outputs:?}"
    );

    let agreeing = ["--method", "scgpt", "--classifier", "knn", "--knn-k", "7", "--model", "scGPT_human"];
    assert_eq!(world.plan(&[&line[..], &agreeing].concat())["plan"]["parameters"], *parameters);
    let own = world.plan(&[&line[..], &["--label-key", "batch_id"]].concat());
    assert_eq!(
        own["plan"]["parameters"]["label_key"], "batch_id",
        "the query's labels may be in another column"
    );
    for (option, value, word) in [
        ("--method", "pca", "scgpt"),
        ("--classifier", "mlp", "knn"),
        ("--knn-k", "15", "7"),
        ("--model", "scGPT_CP", "scGPT/scGPT_human"),
    ] {
        let contradicting = [&line[..], &[option, value]].concat();
        world.refuses(&contradicting, 2, &[option, value, "contradicts", word, "meta.json"]);
    }
}

#[test]
fn what_is_no_fitted_model_is_refused_before_anything_runs() {
    let world = World::with_workspace("docker");
    let empty = world.here().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let empty = empty.to_str().unwrap();
    let data = data();
    world.refuses(
        &["transfer", "--fitted", empty, "--query", &data],
        3,
        &["empty is no fitted classifier", "meta.json"],
    );
    world.refuses(&["transfer", "--fitted", "nowhere", "--query", &data], 3, &["nowhere", "meta.json"]);
    let model = fitted(&world, "scgpt", "logreg");
    std::fs::remove_file(std::path::Path::new(&model).join("scale.npy")).unwrap();
    world.refuses(&["transfer", "--fitted", &model, "--query", &data], 3, &["scale.npy is missing"]);
    world.refuses(&["transfer", "--reference", &data, "--query", &data], 2, &["--method"]);
    let both = ["transfer", "--fitted", &model, "--query", &data, "--reference", &data];
    world.refuses(&both, 2, &["--reference", "--fitted"]);
}

#[test]
fn a_method_that_is_fitted_to_its_input_projects_the_query() {
    let world = World::with_workspace("docker");
    let data = data();
    let line = ["transfer", "--method", "pca", "--reference", &data, "--query", &data];
    let plan = world.plan(&line)["plan"].clone();
    let works: Vec<&str> = plan["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| stage["work"]["kernel"].as_str().unwrap())
        .collect();
    assert_eq!(works, ["pca", "pca-project", "classify"]);
    assert_eq!(plan["unavailable"], json!(null));
    // Reference and query are the same file: two embeddings of one name would be one.
    let mut paths: Vec<&str> =
        plan["outputs"].as_array().unwrap().iter().map(|output| output["path"].as_str().unwrap()).collect();
    let all = paths.len();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), all, "{paths:?}");
    let ended = world.run(&[&line[..], &["--knn-k", "5", "--dry-run"]].concat());
    assert!(ended.stderr.contains("--knn-k is not used by the classifier logreg"), "{}", ended.stderr);
    world.refuses(&[&line[..], &["--knn-k", "5", "--strict"]].concat(), 2, &["--knn-k is not used"]);
    let with_knn =
        world.run(&[&line[..], &["--classifier", "knn", "--knn-k", "5", "--strict", "--dry-run"]].concat());
    assert!(!with_knn.stderr.contains("--knn-k"), "{}", with_knn.stderr);
}
