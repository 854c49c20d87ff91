//! Engines that are missing, unsuitable or cannot be brought: exit 4, with the line to type.

use std::process::Command;

use crate::world::{Ended, World, data, stand_in};

/// A PATH with more in it: the folder `more` of the world comes first.
fn with_path(world: &World, command: &mut Command) {
    let root = world.root();
    command.env("PATH", std::env::join_paths([root.join("more"), root.join("bin")]).unwrap());
}

fn java(world: &World, version: &str) {
    world.script("more/java", &format!("#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n"));
}

fn embed(world: &World) -> Command {
    world.command(&["embed", "--method", "pca", "--data", &data()])
}

#[test]
fn no_engine_and_nothing_to_bring_one_with() {
    let world = World::new();
    let ended = world.refuses(
        &["embed", "--method", "pca", "--data", &data()],
        4,
        &["Nextflow is missing", "apt-get install maven", "--nextflow"],
    );
    assert!(!world.here().join("runs").exists(), "{ended:?}");
    let nowhere = world.refuses(&["check", "--data", &data(), "--quiet"], 4, &["Nextflow is missing"]);
    assert!(nowhere.stderr.starts_with("error: "));
}

#[test]
fn an_engine_that_cannot_be_fetched_leaves_nothing() {
    let world = World::new();
    java(&world, "17.0.9");
    world.script(
        "more/mvn",
        "#!/bin/sh\necho '[ERROR] Could not transfer artifact x: repo.invalid: Unknown host' >&2\nexit 1\n",
    );
    let mut command = embed(&world);
    with_path(&world, &mut command);
    let ended = Ended::of(command);
    ended.refused(4, &["Nextflow", "mvn", "Unknown host"]);
    assert_eq!(std::fs::read_dir(world.here()).unwrap().count(), 0, "{ended:?}");
    let engine = world.home().join(".cache/scfoundry/engine");
    let names = std::fs::read_dir(engine).unwrap().map(|entry| entry.unwrap().file_name());
    let half = names.filter(|name| !["lock", "home"].iter().any(|known| name == known)).count();
    assert_eq!(half, 0);
}

#[test]
fn an_old_java_is_named() {
    let world = World::new();
    java(&world, "11.0.22");
    let launcher = world.script("launcher/nextflow", "#!/usr/bin/env bash\nNXF_VER=${NXF_VER:-'25.04.2'}\n");
    let mut command = embed(&world);
    with_path(&world, &mut command);
    command.arg("--nextflow").arg(launcher);
    Ended::of(command).refused(4, &["Java 11.0.22", "17", "hint: "]);
    assert!(world.runs().is_empty());
}

#[test]
fn an_old_nextflow_is_named() {
    let world = World::new();
    java(&world, "17.0.9");
    world.script("more/nextflow", "#!/usr/bin/env bash\nNXF_VER=${NXF_VER:-'22.10.1'}\n");
    let mut command = embed(&world);
    with_path(&world, &mut command);
    Ended::of(command).refused(4, &["nextflow 22.10.1", "too old", "NXF_VER"]);
    assert!(world.runs().is_empty());
}

#[test]
fn a_named_engine_must_be_a_program() {
    let world = World::new();
    world.write("here/plain", "text");
    let embed = |path: &str| {
        let data = data();
        let line = ["embed", "--method", "pca", "--data", &data, "--nextflow", path];
        world.refuses(&line, 4, &["--nextflow", path])
    };
    assert!(embed("none").stderr.contains("does not exist"));
    assert!(embed("plain").stderr.contains("chmod +x"));
    let mut command = world.command(&["check", "--data", &data()]);
    command.env("SCFOUNDRY_NEXTFLOW", "/none/nextflow");
    Ended::of(command).refused(4, &["/none/nextflow", "$SCFOUNDRY_NEXTFLOW"]);
    world.run(&["init", "--runtime", "none", "--nextflow", "/none/engine"]).succeeded();
    world.refuses(&["check", "--data", &data()], 4, &["/none/engine", "scfoundry.toml", "does not exist"]);
}

/// Case F03.
#[test]
fn a_scheduler_whose_command_is_not_here() {
    let world = World::with_workspace("docker");
    let data = data();
    let embed = ["embed", "--method", "pca", "--data", &data, "--nextflow", &stand_in()];
    world.refuses(&[&embed[..], &["--profile", "slurm"]].concat(), 4, &["sbatch was not found in PATH"]);
    world.run(&embed).succeeded();
    std::fs::remove_dir_all(world.here().join("runs")).unwrap();
    let config = world.here().join("nextflow.config");
    std::fs::write(&config, "process {\n  executor = 'lsf'\n}\n").unwrap();
    world.refuses(&embed, 4, &["bsub was not found in PATH", "lsf"]);

    world.script("more/sbatch", "#!/bin/sh\n");
    std::fs::write(&config, "process.executor = 'slurm'\ndocker.enabled = true\n").unwrap();
    let mut command = world.command(&["embed", "--method", "scgpt", "--data", &data, "--dry-run", "--json"]);
    with_path(&world, &mut command);
    let plan = Ended::of(command).document();
    assert_eq!(plan["plan"]["executor"], "slurm");
    // The scheduler gives out the cards: no number is ours to choose.
    let options = plan["plan"]["stages"][0]["container_options"].as_str().unwrap();
    assert!(options.ends_with("--gpus all -e CUDA_VISIBLE_DEVICES"), "{options}");
}

#[test]
fn the_exit_code_of_the_engine_comes_back() {
    for (given, expected) in [("0", 0), ("1", 1), ("7", 7), ("42", 42)] {
        let world = World::new();
        let data = data();
        let mut command = world.command_stand_in(&["embed", "--method", "pca", "--data", &data]);
        command.env("FAKE_RC", given);
        let ended = Ended::of(command);
        assert_eq!(ended.code, Some(expected), "{ended:?}");
        let record = crate::world::record(&world.only_run());
        assert_eq!(record["exit_code"], expected);
        assert_eq!(record["status"], if expected == 0 { "ok" } else { "failed" });
        if expected != 0 {
            ended.refused(expected, &["Nextflow failed", "nextflow.log"]);
        }
    }
}

#[test]
#[ignore = "engine: mounts a file system of its own, which needs root or user namespaces"]
fn engine_full_disk_is_said_and_nothing_is_half_written() {
    let world = World::new();
    // Room enough by bytes, but for a few files only.
    let script = "mount -t tmpfs -o size=1m,nr_inodes=14 tmpfs \"$1\" && cd \"$1\" && shift && \"$@\"; code=$?; \
                  find . -type f -size +0 | sort >&3; exit $code";
    let listing = world.root().join("listing");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command.arg(format!("exec 3>{}; {script}", listing.display())).arg("sh").arg(world.here());
    command.arg(env!("CARGO_BIN_EXE_scfoundry")).args(["embed", "--method", "pca", "--data"]).arg(data());
    command.env("SCFOUNDRY_NEXTFLOW", stand_in()).env("FAKE_OUT", world.recorded()).env("HOME", world.home());
    let ended = Ended::of(command);
    ended.refused(4, &["cannot ", "No space left on device", "free some space"]);
    let left = std::fs::read_to_string(listing).unwrap();
    assert!(!left.contains(".scfoundry-") && !left.contains("run.json"), "{left}");
    assert!(!world.recorded().with_extension("argv").exists());
}

#[test]
fn a_container_engine_that_is_not_here() {
    let world = World::with_workspace("docker");
    world.write("here/methods/own.toml", &own_method());
    world.write("here/methods/own.py", "");
    let data = data();
    let embed = ["embed", "--method", "own", "--data", &data, "--nextflow", &stand_in()];
    world.refuses(&embed, 4, &["docker was not found in PATH", "nextflow.config", "doctor"]);
    world.script("bin/docker", "#!/bin/sh\nexit 1\n");
    world.refuses(&embed, 4, &["the docker daemon does not answer"]);
    world.script("bin/docker", "#!/bin/sh\nexit 0\n");
    world.run(&embed).succeeded();
    std::fs::remove_file(world.here().join("methods/own.py")).unwrap();
    world.refuses(&embed, 3, &["method \"own\" has no runner", "own.py", "runner.entry"]);
    // Native work needs none.
    std::fs::remove_file(world.root().join("bin/docker")).unwrap();
    world.run(&["embed", "--method", "pca", "--data", &data, "--nextflow", &stand_in()]).succeeded();
}

/// A method of the user's own.
fn own_method() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/methods/seurat_cca.toml");
    let profile = std::fs::read_to_string(path).unwrap();
    let own = profile.replace("name = \"seurat_cca\"", "name = \"own\"");
    own.replace("kind = \"r\"", "kind = \"python\"")
        .replace("seurat_cca.R", "own.py")
        .replace("seurat.R", "own.py")
}
