//! What a workspace says of a SLURM cluster, and what tasks ask it for.

use serde_json::{Value, json};

use crate::world::{World, case, data};

const SINFO: &str =
    "#!/bin/sh\necho 'short*|1:00:00|21694|2|(null)'\necho 'long|7-00:00:00|512000+|64|gpu:a100:4'\n";

/// A machine from which jobs can be submitted.
fn login_node() -> World {
    let world = World::new();
    world.script("bin/sbatch", "#!/bin/sh\nexit 1\n");
    world.script("bin/sinfo", SINFO);
    world
}

fn config(world: &World) -> String {
    std::fs::read_to_string(world.here().join("nextflow.config")).unwrap()
}

fn append(world: &World, text: &str) {
    world.write("here/nextflow.config", &(config(world) + text));
}

fn embed<'a>(method: &'a str, data: &'a str) -> [&'a str; 5] {
    ["embed", "--method", method, "--data", data]
}

fn stage(world: &World, method: &str, more: &[&str]) -> Value {
    world.plan(&[&embed(method, &data()), more].concat())["plan"]["stages"][0].clone()
}

fn rendered(world: &World, line: &[&str]) -> String {
    world.plan(line)["nextflow_config"].as_str().unwrap().to_owned()
}

#[test]
fn init_writes_what_the_cluster_says_and_what_was_typed() {
    let world = login_node();
    world.run(&["init", "--profile", "slurm", "--runtime", "none"]).succeeded();
    let text = config(&world);
    for line in [
        "process.executor = 'slurm'\n",
        "// process.queue = 'gpu'\n",
        "process.resourceLimits = ['time': '1h', 'memory': '21694 MB', 'cpus': 2]\n",
        "params.gres = 'gpu:1'\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let settings = std::fs::read_to_string(world.here().join("scfoundry.toml")).unwrap();
    assert!(settings.starts_with("profile = \"slurm\"\n"), "{settings}");

    let typed = "--queue long --account lab --time 8h --memory 64gb --gres gpu:a100:1 --array-size 50 --poll-interval 30s";
    let line: Vec<&str> =
        ["init", "--force", "--runtime", "none"].into_iter().chain(typed.split(' ')).collect();
    world.run(&line).succeeded();
    let text = config(&world);
    for line in [
        "process.queue = 'long'\n",
        "executor.account = 'lab'\n",
        "process.resourceLimits = ['time': '8 h', 'memory': '64 GB', 'cpus': 64]\n",
        "params.gres = 'gpu:a100:1'\n",
        "process.array = 50\n",
        "executor.pollInterval = '30 s'\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let again = ["init", "--queue", "short"];
    world.refuses(&again, 2, &["nextflow.config", "--force"]);
    world.refuses(&["init", "--force", "--queue", "gpu"], 3, &["no partition \"gpu\"", "short, long"]);
    world.refuses(&["init", "--force", "--time", "8"], 2, &["--time", "8h"]);
    world.refuses(&["init", "--force", "--array-size", "0"], 2, &["--array-size"]);
    assert_eq!(config(&world), text);
}

#[test]
fn a_cluster_that_does_not_answer_is_no_obstacle() {
    let world = World::new();
    world.script("bin/sinfo", "#!/bin/sh\nexit 1\n");
    world.run(&["init", "--profile", "slurm", "--queue", "any"]).succeeded();
    let text = config(&world);
    assert!(
        text.contains("process.queue = 'any'\n") && text.contains("// process.resourceLimits = "),
        "{text}"
    );
}

#[test]
fn the_profile_of_the_settings_is_used_unless_another_is_named() {
    let world = login_node();
    world.run(&["init", "--profile", "slurm"]).succeeded();
    let data = data();
    let executor = |more: &[&str]| {
        let plan = world.plan(&[&embed("pca", &data), more].concat());
        let words = plan["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let words: Vec<&str> = words.collect();
        let profiles = words.iter().filter(|word| **word == "-profile").count();
        (plan["plan"]["executor"].as_str().unwrap().to_owned(), profiles)
    };
    assert_eq!(executor(&[]), ("slurm".to_owned(), 1));
    assert_eq!(executor(&["--profile", "local"]), ("local".to_owned(), 1));
    // After `--` it is Nextflow's own, and understood all the same.
    let mut line = embed("pca", &data).to_vec();
    line.extend(["--dry-run", "--json", "--", "-profile", "local"]);
    let plan = world.run(&line).document();
    assert_eq!(plan["plan"]["executor"], "local");
    let effective = world.run(&["info", "--effective"]).succeeded().stdout.clone();
    assert!(effective.contains("slurm") && effective.contains("scfoundry.toml"), "{effective}");
}

#[test]
fn tasks_ask_for_what_their_method_needs() {
    let world = login_node();
    world.run(&["init", "--profile", "slurm", "--runtime", "apptainer"]).succeeded();
    let model = stage(&world, "scgpt", &[]);
    assert_eq!(model["cluster_options"], "--gres=gpu:1");
    // 16 GB, and 10 GB for 100,000 cells.
    let cells = world.plan(&embed("scgpt", &data()))["plan"]["inputs"][0]["cells"].as_u64().unwrap();
    let bytes = (16u64 << 30) + (10u64 << 30) * cells / 100_000;
    assert_eq!(model["memory_bytes"], json!({ "largest": bytes }));
    assert_eq!(model["cpus"], 4);
    // The scheduler says which card.
    assert!(
        model["before_script"].is_null() && model["container_options"].as_str().unwrap().starts_with("--nv ")
    );
    assert!(model["max_forks"].is_null());
    let native = stage(&world, "pca", &[]);
    assert!(
        native["cluster_options"].is_null() && native["memory_bytes"]["largest"].as_u64() < Some(4 << 30)
    );
    assert_eq!(stage(&world, "scgpt", &["--gpu", "none"])["cluster_options"], Value::Null);
    let text = rendered(&world, &embed("scgpt", &data()));
    for line in [
        "errorStrategy = 'finish'\n",
        "errorStrategy = { task.exitStatus in [137, 140] && task.attempt < 3 ? 'retry' : 'finish' }\n",
        "maxRetries = 2\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(
        text.contains(&format!("memory = {{ \"${{{bytes}L * 2 ** (task.attempt - 1)}} B\" }}\n")),
        "{text}"
    );
    let files = ["a06_csr_int32.h5ad", "b09_four_blobs.h5ad"].map(case);
    let text = rendered(&world, &["embed", "--method", "scgpt", "--data", &files[0], &files[1]]);
    assert!(
        text.contains("memory = { \"${['a06_csr_int32': 17") && text.contains("][task.tag] * 2 ** "),
        "{text}"
    );
    let local = stage(&world, "scgpt", &["--profile", "local"]);
    assert!(local["memory_bytes"].is_null() && local["cluster_options"].is_null());
}

#[test]
fn what_the_user_asks_for_stays_and_is_added_to() {
    let world = login_node();
    world.run(&["init", "--profile", "slurm", "--runtime", "none", "--array-size", "9"]).succeeded();
    // One request for all jobs of an array: that of the largest input.
    let files = ["a06_csr_int32.h5ad", "b09_four_blobs.h5ad"].map(case);
    let text = rendered(&world, &["embed", "--method", "scgpt", "--data", &files[0], &files[1]]);
    assert!(text.contains("memory = { \"${17") && !text.contains("task.tag"), "{text}");

    append(&world, "process {\n  clusterOptions = '--account=x'\n  memory = '5 GB'\n}\n");
    let own = stage(&world, "scgpt", &[]);
    assert_eq!(own["cluster_options"], "--account=x --gres=gpu:1");
    assert!(own["memory_bytes"].is_null() && own["time_seconds"]["largest"].as_u64() > Some(0));
    let text = rendered(&world, &embed("scgpt", &data()));
    assert!(text.contains("errorStrategy = { task.exitStatus == 140 && "), "{text}");

    let extra = world.write(
        "here/extra.config",
        "process.clusterOptions = '--gres=gpu:h100:2'\nprocess.errorStrategy = 'terminate'\n",
    );
    let extra = extra.to_str().unwrap();
    for given in [&["--config", extra][..], &["--", "-c", extra]] {
        let data = data();
        let mut line = embed("scgpt", &data).to_vec();
        line.extend(["--dry-run", "--json"]);
        line.extend(given);
        let plan = world.run(&line).document();
        assert!(plan["plan"]["stages"][0]["cluster_options"].is_null(), "{given:?}");
        assert!(!plan["nextflow_config"].as_str().unwrap().contains("errorStrategy"), "{given:?}");
    }
    append(&world, "process { withName: 'EMBED' { time = '3h'; cpus = 7 } }\n");
    let own = stage(&world, "scgpt", &[]);
    assert!(own["time_seconds"].is_null() && own["cpus"].is_null());

    append(&world, "process.clusterOptions = { \"--account=${task.process}\" }\n");
    let data = data();
    let line = [&embed("scgpt", &data)[..], &["--dry-run"]].concat();
    world.refuses(&line, 3, &["process.clusterOptions", "--gres=gpu:1"]);
    assert!(stage(&world, "pca", &[])["cluster_options"].is_null());
}

#[test]
fn clusters_that_we_do_not_know_are_left_to_the_user() {
    let world = World::with_workspace("none");
    world.script("bin/bsub", "#!/bin/sh\n");
    append(&world, "process.executor = 'lsf'\n");
    let plan = world.plan(&embed("scgpt", &data()));
    assert!(plan["plan"]["warnings"][0].as_str().unwrap().contains("\"lsf\""), "{plan}");
    assert!(plan["plan"]["stages"][0]["cluster_options"].is_null());
    append(&world, "process.clusterOptions = '-gpu num=1'\n");
    assert_eq!(world.plan(&embed("scgpt", &data()))["plan"]["warnings"], json!([]));
    append(&world, "process.executor = 'awsbatch'\n");
    assert_eq!(stage(&world, "scgpt", &[])["accelerator"], 1);
}
