//! `doctor --container` beside a real Docker engine.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::place::{Done, Place};

fn workspace() -> Place {
    let place = Place::new();
    place.run(&["init", ".", "--runtime", "docker"]).expect(0);
    place
}

fn image(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("set {variable}: tests/backends/docker.sh up prints it"))
}

/// Level and text of each check.
fn checks(done: &Done) -> BTreeMap<String, (String, String)> {
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    let text = |check: &Value, name: &str| check[name].as_str().unwrap_or_default().to_owned();
    let all = document["checks"].as_array().unwrap().iter();
    all.map(|check| {
        let found = format!("{} {}", text(check, "found"), text(check, "mend"));
        (text(check, "name"), (text(check, "level"), found))
    })
    .collect()
}

fn assert_nothing_left(place: &Place) {
    let left: Vec<_> = std::fs::read_dir(place.join("cache")).unwrap().flatten().collect();
    assert_eq!(left.iter().map(|entry| entry.file_name()).collect::<Vec<_>>(), [".shared"]);
    assert!(std::fs::read_dir(place.join("runs")).unwrap().next().is_none());
}

#[test]
#[ignore = "backend: doctor runs a task in a Docker container"]
fn backend_doctor_proves_the_runtime_with_a_task() {
    let place = workspace();
    let image = image("SCFOUNDRY_TEST_IMAGE");
    let done = place.run(&["doctor", "--container", "--json", "--image", &image]);
    done.expect(0);
    let checks = checks(&done);
    let user = format!("{}:{}", rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    for (name, words) in [
        ("image", image.as_str()),
        ("task", "ran through Nextflow"),
        ("user", user.as_str()),
        ("work", "can write"),
        ("home", "/work/"),
        ("/dev/shm", " GiB"),
        ("ps inside", "/ps"),
        ("files", "belong to you"),
    ] {
        let (level, found) = &checks[name];
        assert!(level == "ok" && found.contains(words), "{name}: {level} {found}");
    }
    assert_eq!(checks["gpu inside"].0, "note");
    assert_nothing_left(&place);
}

#[test]
#[ignore = "backend: doctor asks Docker for a GPU where there is none"]
fn backend_doctor_explains_a_task_that_does_not_start() {
    let place = workspace();
    let image = image("SCFOUNDRY_TEST_IMAGE");
    let done = place.run(&["doctor", "--container", "--json", "--image", &image, "--gpu", "0"]);
    done.expect(4);
    let (level, found) = &checks(&done)["task"];
    assert!(level == "fail" && found.contains("cannot give a task a GPU"), "{found}");
    assert!(done.error().contains("not ready: task"), "{}", done.stderr);
    assert_nothing_left(&place);
}

#[test]
#[ignore = "backend: doctor tests the container of another user"]
fn backend_doctor_sees_whose_files_a_task_leaves() {
    let place = workspace();
    let own = std::fs::read_to_string(place.join("nextflow.config")).unwrap();
    // Somebody else, who may write everywhere.
    let other = "docker.runOptions = '--user 12345:12345 --cap-add DAC_OVERRIDE'\n";
    place.write("nextflow.config", &format!("{own}\nprocess.beforeScript = 'chmod 777 .'\n{other}"));
    let image = image("SCFOUNDRY_TEST_IMAGE");
    let done = place.run(&["doctor", "--container", "--json", "--image", &image]);
    done.expect(4);
    let checks = checks(&done);
    assert!(checks["files"].0 == "fail" && checks["files"].1.contains("user 12345"), "{:?}", checks["files"]);
    assert!(checks["user"].0 == "note" && checks["user"].1.contains("12345:12345 inside"));
}

#[test]
#[ignore = "backend: doctor looks for images in Docker"]
fn backend_doctor_pulls_no_image() {
    let place = workspace();
    for arguments in [&["--image", "nobody/nothing:1"][..], &["--method", "scgpt"]] {
        let done = place.run(&[&["doctor", "--container"], arguments].concat());
        done.expect(4);
        let line = done.stdout.lines().find(|line| line.starts_with("FAIL  image")).unwrap();
        assert!(line.contains("is not here") && done.stdout.contains("-> docker pull "), "{}", done.stdout);
    }
    assert_nothing_left(&place);
}
