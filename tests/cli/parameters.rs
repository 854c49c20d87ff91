//! Options that become parameters of the pipeline, and values that would break a shell.

use std::collections::BTreeSet;

use serde_json::json;

use crate::world::{World, data, read_json};

const HOSTILE: [&str; 12] = [
    "it's",
    "$x ${HOME} `id`",
    "back\\slash",
    "two\nlines",
    "γδ T/NK 🧬",
    "say \"hi\"",
    "*.h5ad",
    "a;b|c&d",
    "<>(){}[]!#~%^",
    " spaces ",
    "true'",
    "\u{7f}\u{1}",
];

#[test]
fn an_unknown_option_becomes_a_parameter_with_a_warning() {
    let world = World::new();
    let line = ["embed", "--method", "pca", "--data", &data(), "--depth", "3", "--share=0.5", "--fast"];
    let ended = world.run_stand_in(&line).succeeded();
    assert_eq!(ended.stderr.matches("warning: ").count(), 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("--depth is not an option of `embed`"), "{}", ended.stderr);
    let parameters = read_json(&world.only_run().join("params.json"));
    assert_eq!(
        (&parameters["depth"], &parameters["share"], &parameters["fast"]),
        (&json!(3), &json!(0.5), &json!(true))
    );
    world.refuses(&[&line[..], &["--strict"]].concat(), 2, &["--depth"]);
}

#[test]
fn a_mistyped_parameter_is_guessed() {
    let world = World::new();
    let ended = world.run(&["embed", "--method", "pca", "--data", &data(), "--pca_n_comp", "3", "--dry-run"]);
    assert!(ended.stderr.contains("did you mean --pca_n_comps?"), "{}", ended.stderr);
}

#[test]
fn hostile_values_arrive_intact() {
    let world = World::new();
    let data = data();
    for value in HOSTILE {
        let line = ["check", "--data", &data, "--label-key", value, "--batch-key", value, "--note", value];
        world.run_stand_in(&line).succeeded();
    }
    let runs = world.runs();
    let read = |name: &str| -> BTreeSet<String> {
        let parameters = runs.iter().map(|run| read_json(&run.join("params.json")));
        parameters.map(|parameters| parameters[name].as_str().unwrap().to_owned()).collect()
    };
    let expected: BTreeSet<String> = HOSTILE.map(str::to_owned).into();
    for name in ["label_key", "batch_key", "note"] {
        assert_eq!(read(name), expected);
    }
}

#[test]
fn a_key_that_looks_like_a_number_stays_text() {
    let world = World::new();
    for key in ["5", "true", "1e3"] {
        let plan = world.plan(&["check", "--data", &data(), "--label-key", key]);
        assert_eq!(plan["plan"]["parameters"]["label_key"], json!(key));
    }
}

#[test]
fn hostile_file_names_arrive_intact() {
    let world = World::new();
    let folder = world.here().join("data sets [1] it's");
    std::fs::create_dir(&folder).unwrap();
    let mut names: Vec<String> =
        HOSTILE.iter().map(|name| format!("{}.h5ad", name.replace('/', "_"))).collect();
    names.push("-lead.h5ad".to_owned());
    names.push(".hidden.h5ad".to_owned());
    for name in &names {
        std::fs::copy(data(), folder.join(name)).unwrap();
    }
    let line = ["embed", "--method", "pca", "--data", folder.to_str().unwrap()];
    world.run_stand_in(&line).succeeded();
    let parameters = read_json(&world.only_run().join("params.json"));
    let inputs = parameters["inputs"].as_array().unwrap();
    let paths: BTreeSet<&str> = inputs.iter().map(|input| input["path"].as_str().unwrap()).collect();
    let expected: Vec<_> = names.iter().map(|name| folder.join(name)).collect();
    let expected: BTreeSet<&str> = expected.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(paths, expected);
    for input in inputs {
        let tag = input["tag"].as_str().unwrap();
        let harmless = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
        assert!(tag.chars().all(harmless), "{tag} would reach a shell");
        let path = std::path::Path::new(input["path"].as_str().unwrap());
        assert_eq!(input["id"].as_str(), path.file_stem().unwrap().to_str());
    }
    // Each of them can also be named alone; a pattern character in a name that exists is not a pattern.
    for name in &names {
        let path = folder.join(name);
        let plan = world.plan(&["embed", "--method", "pca", "--data", path.to_str().unwrap()]);
        assert_eq!(plan["plan"]["inputs"].as_array().unwrap().len(), 1, "{name}");
    }
}

#[test]
fn patterns_and_equal_names() {
    let world = World::new();
    for path in ["a/x.h5ad", "b/x.h5ad", "b/y.h5ad", "b/z.txt"] {
        let path = world.here().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(data(), path).unwrap();
    }
    let ids = |paths: &[&str]| -> Vec<String> {
        let plan = world.plan(&[&["embed", "--method", "pca", "--data"], paths].concat());
        let inputs = plan["plan"]["inputs"].as_array().unwrap().clone();
        inputs.iter().map(|input| input["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&["b/*.h5ad"]), ["x", "y"]);
    assert_eq!(ids(&["b"]), ["x", "y"]);
    assert_eq!(ids(&["a/?.h5ad", "b/x.h5ad"]), ["a_x", "b_x"]);
}

#[test]
fn a_model_is_named_whole_or_by_its_last_part_or_is_a_path() {
    let world = World::new();
    let model = |name: &str| {
        let plan = world.plan(&["embed", "--method", "scgpt", "--data", &data(), "--model", name]);
        plan["plan"]["parameters"]["model"].clone()
    };
    assert_eq!(model("scGPT_CP"), json!("scGPT/scGPT_CP"));
    assert_eq!(model("scGPT/scGPT_blood"), json!("scGPT/scGPT_blood"));
    std::fs::create_dir(world.here().join("mine")).unwrap();
    assert_eq!(model("mine"), json!(world.here().join("mine")));
}

#[test]
fn a_kernel_is_given_the_files_of_its_model() {
    let world = World::new();
    let data = data();
    let files = |more: &[&str]| {
        let line = [&["embed", "--data", &data, "--method"], more].concat();
        world.plan(&line)["plan"]["parameters"]["model_files"].clone()
    };
    let table = files(&["genept"])[0].as_str().unwrap().to_owned();
    assert!(
        table.ends_with("data/model_weights/GenePT/ada-002/GenePT_gene_embedding_ada_text.pickle"),
        "{table}"
    );
    let own = world.write("own.csv", "CD3E,1,2\n").display().to_string();
    assert_eq!(files(&["genept", "--model", &own]), json!([own]));
    assert!(files(&["pca"]).is_null());
}
