//! What the container engines are told (cases D01, D03, D05, D08, C13, C14).

use serde_json::{Value, json};

use crate::world::{Ended, World, case, data};

/// What every task in a Docker container is told.
fn docker(world: &World) -> String {
    let own = "-u $(id -u):$(id -g) -e HOME=\"$NXF_TASK_WORKDIR\" -e MPLCONFIGDIR=\"$NXF_TASK_WORKDIR\" \
               -e NUMBA_CACHE_DIR=\"$NXF_TASK_WORKDIR\" --shm-size=16g";
    format!("{own} {}", mounts(world))
}

/// The weights, which no task may change, and the cache.
fn mounts(world: &World) -> String {
    let (weights, cache) = (world.here().join("data/model_weights"), world.here().join("cache"));
    let (weights, cache) = (weights.display(), cache.display());
    format!(
        "--mount type=bind,src={weights},dst={weights},readonly --mount type=bind,src={cache},dst={cache}"
    )
}

fn binds(world: &World) -> String {
    let (weights, cache) = (world.here().join("data/model_weights"), world.here().join("cache"));
    format!("-B {0}:{0}:ro -B {1}:{1}:rw", weights.display(), cache.display())
}

fn plan(world: &World, method: &str, more: &[&str]) -> Value {
    world.plan(&[&["embed", "--method", method, "--data", &data()], more].concat())
}

fn options(plan: &Value) -> &str {
    plan["plan"]["stages"][0]["container_options"].as_str().unwrap_or_default()
}

/// The options as the shell of a task splits them.
fn words(options: &str) -> Vec<String> {
    let script = format!("id() {{ echo 7; }}; printf '%s\\n' {options}");
    let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn docker_gets_the_cards_as_one_word_with_its_quotes() {
    let world = World::with_workspace("docker");
    for (gpu, flag, value) in [
        ("0", "device=0", "device=0"),
        ("3", "device=3", "device=3"),
        ("0,1", "'\"device=0,1\"'", "\"device=0,1\""),
    ] {
        let plan = plan(&world, "scgpt", &["--gpu", gpu]);
        assert_eq!(options(&plan), format!("{} --gpus {flag}", docker(&world)));
        let words = words(options(&plan));
        let position = words.iter().position(|word| word == "--gpus").unwrap();
        assert_eq!(words[position + 1], value);
        assert_eq!(&words[..2], ["-u", "7:7"]);
        // The same in Groovy's single quotes: the dollar signs reach the shell.
        let quoted = options(&plan).replace('\'', "\\'");
        let line = format!("containerOptions = '{quoted}'\n");
        assert!(plan["nextflow_config"].as_str().unwrap().contains(&line), "{plan}");
    }
}

#[test]
fn tasks_that_need_no_gpu_get_no_flag() {
    let world = World::with_workspace("docker");
    for method in ["seurat_cca", "seurat_rpca"] {
        let plan = plan(&world, method, &["--gpu", "0"]);
        assert_eq!(options(&plan), docker(&world));
        assert!(plan["plan"]["warnings"][0].as_str().unwrap().contains("GPU 0 is not used"));
        assert!(plan["plan"]["stages"][0]["max_forks"].is_null());
    }
    let native = plan(&world, "pca", &["--gpu", "0"]);
    assert_eq!(options(&native), "");
    let text = native["nextflow_config"].as_str().unwrap();
    assert!(text.contains("container = null\n") && !text.contains("containerOptions"), "{text}");
    let embedding = case("b09_four_blobs.h5ad");
    for line in [
        &["check", "--data", &data()][..],
        &["benchmark", "--embedding", &embedding],
        &["geometry", "--embedding", &embedding, "--data", &data()],
    ] {
        let plan = world.plan(&[line, &["--gpu", "0"]].concat());
        assert!(!plan["nextflow_config"].as_str().unwrap().contains("--gpus"), "{line:?}");
    }
}

#[test]
fn gpu_none_hides_the_cards() {
    for runtime in ["docker", "podman", "apptainer", "singularity", "none"] {
        let world = World::with_workspace(runtime);
        let expected = match runtime {
            "docker" => docker(&world),
            "podman" => format!("--shm-size=16g {}", mounts(&world)),
            "none" => String::new(),
            _ => binds(&world),
        };
        let plan = plan(&world, "scgpt", &["--gpu", "none"]);
        assert_eq!(options(&plan), expected, "{runtime}");
        assert_eq!(plan["plan"]["warnings"], json!([]));
    }
    let world = World::with_workspace("docker");
    assert_eq!(plan(&world, "pca", &["--gpu", "none"])["plan"]["warnings"], json!([]));
}

#[test]
fn the_other_engines_have_words_of_their_own() {
    let world = World::with_workspace("podman");
    let podman = plan(&world, "scgpt", &["--gpu", "0,2"]);
    let cards = "--device nvidia.com/gpu=0 --device nvidia.com/gpu=2";
    assert_eq!(options(&podman), format!("--shm-size=16g {} {cards}", mounts(&world)));
    for runtime in ["apptainer", "singularity"] {
        let world = World::with_workspace(runtime);
        let plan = plan(&world, "scgpt", &["--gpu", "1"]);
        assert_eq!(options(&plan), format!("--nv {}", binds(&world)));
        assert_eq!(
            plan["plan"]["stages"][0]["before_script"],
            json!("export CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID")
        );
    }
    let bare = plan(&World::with_workspace("none"), "scgpt", &["--gpu", "1"]);
    assert_eq!(options(&bare), "");
    assert_eq!(
        bare["plan"]["stages"][0]["before_script"],
        json!("export CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID")
    );
}

#[test]
fn run_options_of_the_user_stay_theirs() {
    let world = World::with_workspace("docker");
    let own = "docker.runOptions = '--user 5:5 --ipc=host -v /scratch:/scratch'\n";
    let config = world.here().join("nextflow.config");
    let text = std::fs::read_to_string(&config).unwrap() + own;
    std::fs::write(&config, &text).unwrap();
    let plan = plan(&world, "scgpt", &[]);
    let flags = options(&plan);
    assert!(!flags.contains("-u ") && !flags.contains("--shm-size"), "{flags}");
    assert!(flags.ends_with("--gpus device=0"), "{flags}");
    assert!(!plan["nextflow_config"].as_str().unwrap().contains("runOptions"));
    assert_eq!(std::fs::read_to_string(&config).unwrap(), text);
}

#[test]
fn image_pulls_have_hours_and_a_place() {
    for (runtime, variable) in
        [("apptainer", "NXF_APPTAINER_CACHEDIR"), ("singularity", "NXF_SINGULARITY_CACHEDIR")]
    {
        let world = World::with_workspace(runtime);
        let images = world.here().join("cache/images");
        let place = |folder: &std::path::Path| format!("{runtime}.cacheDir = '{}'\n", folder.display());
        let text = plan(&world, "scgpt", &[])["nextflow_config"].as_str().unwrap().to_owned();
        assert!(text.contains(&format!("{runtime}.pullTimeout = '6 h'\n")), "{text}");
        assert!(text.contains(&place(&images)), "{text}");
        assert!(!text.contains("docker."), "{text}");

        let elsewhere = world.root().join("elsewhere");
        let chosen = plan(&world, "scgpt", &["--cache-dir", elsewhere.to_str().unwrap()]);
        assert!(chosen["nextflow_config"].as_str().unwrap().contains(&place(&elsewhere.join("images"))));

        let mut command =
            world.command(&["embed", "--method", "scgpt", "--data", &data(), "--dry-run", "--json"]);
        command.env(variable, "/images");
        let text = Ended::of(command).document()["nextflow_config"].as_str().unwrap().to_owned();
        assert!(!text.contains("cacheDir") && text.contains("pullTimeout"), "{text}");

        let config = world.here().join("nextflow.config");
        let own = std::fs::read_to_string(&config).unwrap() + &format!("{runtime}.pullTimeout = '9 h'\n");
        std::fs::write(&config, own).unwrap();
        let text = plan(&world, "scgpt", &[])["nextflow_config"].as_str().unwrap().to_owned();
        assert!(!text.contains("pullTimeout") && text.contains("cacheDir"), "{text}");
    }
}

#[test]
fn as_many_gpu_tasks_at_once_as_cards() {
    let world = World::with_workspace("docker");
    let files = ["a06_csr_int32.h5ad", "a06_csc_int64.h5ad", "a06_dense.h5ad"].map(case);
    let line = ["embed", "--method", "scgpt", "--data", &files[0], &files[1], &files[2]];
    for (gpu, forks) in [("0", 1), ("0,1", 2), ("none", 1)] {
        let text = world.plan(&[&line[..], &["--gpu", gpu]].concat())["nextflow_config"].to_string();
        assert!(text.contains(&format!("maxForks = {forks}\\n")), "{text}");
    }
    let pca = world.plan(&["embed", "--method", "pca", "--data", &files[0], &files[1], &files[2]]);
    assert!(!pca["nextflow_config"].as_str().unwrap().contains("maxForks"));
    assert_eq!(pca["plan"]["outputs"].as_array().unwrap().len(), 3);
}

#[test]
fn the_cards_of_the_workspace_are_used_unless_others_are_named() {
    let world = World::new();
    world.run(&["init", "--runtime", "docker", "--gpu-id", "2"]).succeeded();
    assert!(options(&plan(&world, "scgpt", &[])).ends_with("--gpus device=2"));
    assert!(options(&plan(&world, "scgpt", &["--gpu", "1"])).ends_with("--gpus device=1"));
}
