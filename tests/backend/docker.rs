//! Beside a real Docker engine: native tasks stay native, and a container's flags do what they are for.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::place::{Done, Place, demo, nextflow};

/// The image of the test in place of the method's, and no network.
const PIPELINE: &str = r#"
process EMBED {
    output: path 'seen'
    script: '''
    touch "$HOME/written"
    echo "user=$(id -u):$(id -g) shm=$(df -k --output=size /dev/shm | tail -n 1 | tr -d ' ') box=$(test -f /.dockerenv && echo yes)" > seen
    '''
}
workflow { EMBED().view { file -> "seen ${file.text.trim()}" } }
"#;

fn workspace() -> Place {
    assert!(
        std::env::var_os("DOCKER_HOST").is_some(),
        "set DOCKER_HOST: tests/backends/docker.sh up prints it"
    );
    let place = Place::new();
    place.run(&["init", ".", "--runtime", "docker"]).expect(0);
    place
}

fn assert_all_ours(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        assert_eq!(metadata.uid(), rustix::process::getuid().as_raw(), "{}", path.display());
        if metadata.is_dir() {
            assert_all_ours(&path);
        }
    }
}

#[test]
#[ignore = "backend: the main job beside Docker"]
fn backend_docker_leaves_the_native_task_alone() {
    let place = workspace();
    let doctor = Done::of(&place.command(&["doctor"]).output().unwrap());
    let told = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(told.lines().any(|line| line.contains("docker") && line.contains("ok")), "{told}");
    place.run(&["embed", "--method", "pca", "--data", demo().to_str().unwrap()]).expect(0);
    assert!(place.join("results/embeddings/pca/pbmc_700.h5ad").is_file());
    assert_all_ours(place.root());
}

#[test]
#[ignore = "backend: a task in a Docker container"]
fn backend_docker_container_is_ours_with_home_and_shared_memory() {
    let image = std::env::var("SCFOUNDRY_TEST_IMAGE")
        .expect("set SCFOUNDRY_TEST_IMAGE: tests/backends/docker.sh up prints it");
    let place = workspace();
    let data = demo();
    let plan = place.json(&[
        "embed",
        "--method",
        "scgpt",
        "--gpu",
        "none",
        "--dry-run",
        "--data",
        data.to_str().unwrap(),
    ]);
    place.write("run/nextflow.config", plan["nextflow_config"].as_str().unwrap());
    place.write("run/own.config", &format!("process {{ withName: 'EMBED' {{ container = '{image}' }} }}\n"));
    place.write("run/main.nf", PIPELINE);
    let words = ["-c", "own.config", "run", "main.nf", "-ansi-log", "false"];
    let output = nextflow(&place.join("run"), &words).env("SCFOUNDRY", "/bin/true").output().unwrap();
    let done = Done::of(&output);
    done.expect(0);
    let user = format!("user={}:{}", rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    for part in [user.as_str(), "shm=2097152", "box=yes"] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert_all_ours(place.root());
}
