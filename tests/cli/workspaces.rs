//! Workspaces: made, kept, made by the known Python command, with methods of one's own.

use serde_json::json;

use crate::world::{World, data};

#[test]
fn making_it_twice_keeps_everything() {
    let world = World::with_workspace("docker");
    let read = |name: &str| std::fs::read_to_string(world.here().join(name)).unwrap();
    world.write("here/nextflow.config", "// mine\n");
    world.write("here/scfoundry.toml", "# mine\n");
    let before = world.listing();
    let said = world.run(&["init", "--runtime", "apptainer"]).succeeded().stderr;
    assert!(said.contains("kept all files"), "{said}");
    assert_eq!(world.listing(), before);
    let marker = read(".scfoundry.json");
    world.run(&["init", "--runtime", "apptainer", "--force"]).succeeded();
    assert!(read("nextflow.config").contains("apptainer {"), "{}", read("nextflow.config"));
    assert_eq!(read("scfoundry.toml"), "# mine\n");
    assert_eq!(read(".scfoundry.json"), marker);
}

#[test]
fn a_nextflow_named_when_it_is_made_is_used() {
    let world = World::new();
    world.run(&["init", "--runtime", "none", "--nextflow", &crate::world::stand_in()]).succeeded();
    world.run(&["check", "--data", &data()]).succeeded();
    assert_eq!(world.runs().len(), 1);
}

#[test]
fn the_first_run_makes_one_and_says_so() {
    let world = World::new();
    let ended = world.run_stand_in(&["embed", "--method", "pca", "--data", &data()]).succeeded();
    assert!(ended.stderr.contains(&format!("made workspace {}", world.here().display())), "{ended:?}");
    assert!(world.here().join(".scfoundry.json").is_file());
    let again = world.run_stand_in(&["embed", "--method", "pca", "--data", &data()]).succeeded();
    assert!(!again.stderr.contains("made workspace"), "{again:?}");
}

/// The layout of the known Python command: few fields, no scfoundry.toml, no methods.
#[test]
fn one_of_the_known_python_command_keeps_working() {
    let world = World::new();
    world.write("here/.scfoundry.json", "{\"version\": \"0.2.1\"}\n");
    world.write(
        "here/nextflow.config",
        "params {\n    gpu_id = 1\n}\nsingularity {\n    enabled = true\n    autoMounts = true\n}\n",
    );
    world.write(
        "here/runs/embed/20250101-101500_scgpt_pbmc/run.json",
        "{\"task\": \"embed\", \"method\": \"scgpt\", \"input\": \"pbmc.h5ad\", \"workspace\": \"/w\", \
         \"started\": \"2025-01-01T10:15:00\", \"finished\": null, \"exit_code\": null, \"status\": \"interrupted\"}",
    );
    let runs = world.run(&["runs"]).succeeded().stdout;
    assert!(runs.contains("20250101-101500_scgpt_pbmc") && runs.contains("interrupted"), "{runs}");
    let info = world.json(&["info"]);
    assert_eq!((&info["runtime"], &info["exists"]), (&json!("singularity"), &json!(true)));
    let plan = world.plan(&["embed", "--method", "scgpt", "--data", &data()]);
    let stage = &plan["plan"]["stages"][0];
    assert_eq!(stage["before_script"], json!("export CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID"));
    assert!(!plan["nextflow_config"].as_str().unwrap().contains("autoMounts"));
    let before = std::fs::read_to_string(world.here().join("nextflow.config")).unwrap();
    world.run_stand_in(&["embed", "--method", "pca", "--data", &data()]).succeeded();
    assert_eq!(std::fs::read_to_string(world.here().join("nextflow.config")).unwrap(), before);
    let runs = world.json(&["runs"]);
    assert_eq!(runs["runs"][1]["method"], json!("scgpt"));
}

#[test]
fn a_method_of_ones_own_is_listed_and_planned() {
    let world = World::with_workspace("docker");
    world.write("here/methods/mine.py", "");
    world.write(
        "here/methods/mine.toml",
        "name = \"mine\"\ndescription = \"A method of my own\"\ncategory = \"zero-shot\"\ntasks = [\"embed\"]\n\
         image = \"me/mine:1\"\ngpu = true\ncost_class = 1\n[genes]\nids = \"symbols\"\n[input]\ncounts = true\n\
         [runner]\nkind = \"python\"\nentry = \"mine.py\"\n\
         [embed]\nbatch = { parameter = \"batch_size\", default = 5 }\n",
    );
    let listed = world.json(&["list", "methods"]);
    assert_eq!(listed["methods"].as_array().unwrap().len(), 23);
    assert!(world.run(&["list", "methods"]).succeeded().stdout.contains("\nmine "));
    let plan = world.plan(&["embed", "--method", "mine", "--data", &data()]);
    assert_eq!(plan["plan"]["stages"][0]["container"], json!("me/mine:1"));
    assert_eq!(plan["plan"]["parameters"]["batch_size"], json!(5));
    world.refuses(&["transfer", "--method", "mine", "--reference", &data()], 2, &["mine cannot transfer"]);
}
