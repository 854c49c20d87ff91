//! `doctor --container` where there is nothing to test.

use crate::world::{Ended, World};

#[test]
fn there_must_be_a_workspace_with_an_engine() {
    World::new().refuses(&["doctor", "--container"], 3, &["no workspace", "scfoundry init"]);
    let world = World::with_workspace("none");
    world.refuses(&["doctor", "--container"], 4, &["no container engine to test", "docker.enabled = true"]);
    world.refuses(&["doctor", "--image", "x"], 2, &["--container"]);
    let docker = World::with_workspace("docker");
    docker.refuses(&["doctor", "--container", "--method", "pca"], 2, &["pca runs without a container"]);
    docker.refuses(&["doctor", "--container", "--method", "scgtp"], 2, &["scgpt"]);
}

#[test]
fn an_image_that_is_not_here_is_not_pulled() {
    let world = World::with_workspace("docker");
    let record = world.root().join("asked");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >>{}\necho 'Error: No such image: x' >&2\nexit 1\n",
        record.display()
    );
    world.script("bin/docker", &script);
    let doctor = |more: &[&str]| -> Ended { world.run(&[&["doctor", "--container"], more].concat()) };
    let ended = doctor(&["--method", "scgpt"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stdout.contains("FAIL  image       housy17/scgpt:0.2.4 is not here"), "{ended:?}");
    assert!(ended.stdout.contains("-> docker pull housy17/scgpt:0.2.4\n"), "{ended:?}");
    let ended = doctor(&[]);
    assert!(ended.stdout.contains("no image of a method is here"), "{ended:?}");
    let asked = std::fs::read_to_string(record).unwrap();
    assert!(!asked.contains("pull") && !asked.contains("run "), "{asked}");
}

#[test]
fn an_engine_that_is_not_here_is_told() {
    let world = World::with_workspace("apptainer");
    let ended = world.run(&["doctor", "--container", "--method", "scgpt"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stdout.contains("FAIL  image       apptainer was not found in PATH"), "{ended:?}");
    world.script("bin/apptainer", "#!/bin/sh\nexit 1\n");
    let ended = world.run(&["doctor", "--container", "--method", "scgpt"]);
    assert!(ended.stdout.contains("housy17-scgpt-0.2.4.img docker://housy17/scgpt:0.2.4"), "{ended:?}");
}
