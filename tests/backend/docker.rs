//! On a real Docker engine: native tasks stay native, methods run in their image as they should, and what goes wrong is
//! explained.

use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::methods::Method;
use crate::place::{Done, Place, assert_nobody_in, demo, trace, wait_for};

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("set {name}: tests/backends/docker.sh up prints it"))
}

fn image() -> String {
    variable("SCFOUNDRY_TEST_IMAGE")
}

fn workspace() -> Place {
    variable("DOCKER_HOST");
    let place = Place::new();
    place.run(&["init", ".", "--runtime", "docker"]).expect(0);
    place
}

fn embed(place: &Place, method: &Method<'_>, more: &[&str]) -> Done {
    method.add_to(place);
    let data = demo();
    place.run(&[&["embed", "--method", method.name, "--data", data.to_str().unwrap()], more].concat())
}

/// The log of the newest run's only task.
fn log(place: &Place) -> String {
    let rows = trace(&place.newest().join("trace.txt"));
    assert_eq!(rows.len(), 1, "{rows:?}");
    std::fs::read_to_string(Path::new(&rows[0]["workdir"]).join(".command.log")).unwrap()
}

fn assert_all_of(directory: &Path, user: u32) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        assert_eq!(metadata.uid(), user, "{}", path.display());
        if metadata.is_dir() {
            assert_all_of(&path, user);
        }
    }
}

fn ourselves() -> u32 {
    rustix::process::getuid().as_raw()
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
    assert_all_of(place.root(), ourselves());
}

#[test]
#[ignore = "backend: a method in a Docker container"]
fn backend_docker_method_runs_in_its_image_and_is_measured() {
    let place = workspace();
    let image = image();
    let does = r#"
block = bytearray(64 << 20)
for at in range(0, len(block), 4096):
    block[at] = 1
time.sleep(2)
space = os.statvfs("/dev/shm")
open(os.path.join(os.environ["HOME"], "written"), "w").close()
print("seen", os.getuid(), space.f_blocks * space.f_frsize >> 30, os.path.exists("/.dockerenv"),
      os.path.isdir(spec["weights"]), os.access(spec["weights"], os.W_OK), os.access(spec["cache"], os.W_OK))
"#;
    let method = Method { image: &image, does, ..Method::default() };
    let done = embed(&place, &method, &["--keep-work"]);
    done.expect(0);
    let result = place.join("results/embeddings/mine/pbmc_700.h5ad");
    assert_eq!(done.stdout, format!("{}\n", result.display()));
    assert_eq!(std::fs::read(&result).unwrap(), std::fs::read(demo()).unwrap());
    assert!(
        log(&place).contains(&format!("seen {} 16 True True False True\n", ourselves())),
        "{}",
        log(&place)
    );
    assert_all_of(place.root(), ourselves());

    let row = &trace(&place.newest().join("trace.txt"))[0];
    assert_eq!((row["status"].as_str(), row["container"].as_str()), ("COMPLETED", image.as_str()));
    assert!(row["peak_rss"].parse::<u64>().unwrap() > 64 << 20, "{row:?}");
    let cost = place.json(&["cost"]);
    assert_eq!((&cost["tasks"][0]["cells"], &cost["tasks"][0]["batch_size_used"]), (&700.into(), &8.into()));
}

/// Puts the test image into the registry under this name, and nowhere else.
fn push(name: &str) -> String {
    let name = format!("{}/{name}", variable("SCFOUNDRY_TEST_REGISTRY"));
    for words in [vec!["tag", &image(), &name], vec!["push", &name], vec!["rmi", &name]] {
        let done = Command::new("docker").args(&words).output().unwrap();
        assert!(done.status.success(), "docker {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    name
}

#[test]
#[ignore = "backend: an image that Docker pulls from a registry"]
fn backend_docker_tells_of_an_image_before_it_is_pulled() {
    let place = workspace();
    let name = push("scfoundry-pulled:1");
    let method = Method { image: &name, ..Method::default() };
    let told = format!("image {name} is not here: docker will pull it (about ");
    let done = embed(&place, &method, &[]);
    let note = done.expect(0).stderr.lines().find_map(|line| line.strip_prefix(&told)).unwrap_or_default();
    let mebibytes: f64 = note.strip_suffix(" MiB)").and_then(|size| size.parse().ok()).unwrap_or_default();
    // The layers are compressed: less than Docker says of the image once it is here.
    let unpacked =
        Command::new("docker").args(["image", "inspect", "--format", "{{.Size}}", &name]).output().unwrap();
    let unpacked: f64 = String::from_utf8(unpacked.stdout).unwrap().trim().parse().unwrap();
    assert!(mebibytes > 5.0 && mebibytes < unpacked / 1048576.0, "{}", done.stderr);
    let again = embed(&place, &method, &["--outdir", "again"]);
    assert!(!again.expect(0).stderr.contains("is not here"), "{}", again.stderr);
    let _ = Command::new("docker").args(["rmi", &name]).output().unwrap();
}

#[test]
#[ignore = "backend: an image for which the disk is too small"]
fn backend_docker_refuses_an_image_for_which_there_is_no_room() {
    let place = workspace();
    let name = push("scfoundry-large:1");
    // A client of Docker's whose images are on a disk that is full.
    let full = place.join("full");
    std::fs::create_dir(&full).unwrap();
    let mounted =
        |words: &[&str]| Command::new(words[0]).args(&words[1..]).arg(&full).status().unwrap().success();
    assert!(mounted(&["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs"]));
    place.write(
        "bin/docker",
        &format!(
            "#!/bin/bash\n[[ $1 == info ]] && {{ printf '%s\\t%s\\n' {} \"$(hostname)\"; exit; }}\nexec {} \"$@\"\n",
            full.display(),
            which::which("docker").unwrap().display()
        ),
    );
    let method = Method { image: &name, ..Method::default() };
    method.add_to(&place);
    let client = place.join("bin/docker");
    let _ = Command::new("chmod").arg("+x").arg(&client).status().unwrap();
    let path = format!("{}:{}", place.join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = place.command(&["embed", "--method", "mine", "--data", demo().to_str().unwrap()]);
    let done = Done::of(&command.env("PATH", path).output().unwrap());
    assert!(mounted(&["umount"]));
    done.expect(4);
    assert!(
        done.stderr.contains("not enough disk space in ") && done.stderr.contains("(images "),
        "{}",
        done.stderr
    );
    assert!(!place.join("runs/embed").exists(), "{}", done.stderr);
}

#[test]
#[ignore = "backend: resumes a method in a Docker container, after its script was changed"]
fn backend_docker_resumption_knows_the_script() {
    let place = workspace();
    let image = image();
    let mut method = Method { image: &image, ..Method::default() };
    embed(&place, &method, &["--keep-work"]).expect(0);
    std::fs::remove_dir_all(place.join("results")).unwrap();
    let again = embed(&place, &method, &["--resume", "--keep-work"]);
    assert!(again.expect(0).stderr.contains("reused from"), "{}", again.stderr);
    std::fs::remove_dir_all(place.join("results")).unwrap();
    method.does = "print('changed')";
    let changed = embed(&place, &method, &["--resume", "--keep-work"]);
    assert!(!changed.expect(0).stderr.contains("reused from"), "{}", changed.stderr);
}

#[test]
#[ignore = "backend: inputs and places with odd names in a Docker container"]
fn backend_docker_reads_links_and_odd_names() {
    variable("DOCKER_HOST");
    let place = Place::named("it's γδ, (1) & 2");
    place.run(&["init", ".", "--runtime", "docker"]).expect(0);
    let image = image();
    Method { image: &image, ..Method::default() }.add_to(&place);
    let link = place.join("a'b \"x\" (y).h5ad");
    symlink(demo(), &link).unwrap();
    place.run(&["embed", "--method", "mine", "--data", link.to_str().unwrap()]).expect(0);
    assert!(place.join("results/embeddings/mine/a'b \"x\" (y).h5ad").is_file());
}

/// Case C13.
#[test]
#[ignore = "backend: a Docker container of a user who is not root"]
fn backend_docker_files_belong_to_the_user() {
    let place = workspace();
    let image = image();
    Method { image: &image, ..Method::default() }.add_to(&place);
    let user = 54_321;
    let socket = variable("DOCKER_HOST").replace("unix://", "");
    let group = std::fs::metadata(&socket).unwrap().gid();
    let parent = place.root().parent().unwrap();
    let owned = Command::new("chown").args(["-R", &format!("{user}:{user}")]).arg(parent).status().unwrap();
    assert!(owned.success());
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}"), format!("--groups={group}")]);
    let inside = place.command(&["embed", "--method", "mine", "--data", demo().to_str().unwrap()]);
    command.arg(inside.get_program()).args(inside.get_args());
    crate::place::surround(&mut command, place.root());
    command.env("HOME", place.root());
    Done::of(&command.output().unwrap()).expect(0);
    assert_all_of(place.root(), user);
}

#[test]
#[ignore = "backend: a Docker container over its memory"]
fn backend_docker_memory_kill_is_explained() {
    let place = workspace();
    let image = image();
    let does = "block = bytearray(300 << 20)\nfor at in range(0, len(block), 4096):\n    block[at] = 1";
    place.write("small.config", "process.memory = '64 MB'\n");
    let method = Method { image: &image, does, ..Method::default() };
    let done = embed(&place, &method, &["--config", "small.config"]);
    done.expect(1);
    for part in [
        "exit 137",
        "killed for memory",
        "64.0 MiB asked for",
        "process.memory",
        "--config small.config --resume",
    ] {
        assert!(done.error().contains(part), "{part}: {}", done.stderr);
    }
    assert_eq!(done.stdout, "");
}

#[test]
#[ignore = "backend: an image that is not there"]
fn backend_docker_missing_image_is_explained() {
    let place = workspace();
    let done = embed(&place, &Method { image: "scfoundry-test:absent", ..Method::default() }, &[]);
    done.expect(1);
    for part in ["scfoundry-test:absent", "cannot be had", "docker pull scfoundry-test:absent"] {
        assert!(done.error().contains(part), "{part}: {}", done.stderr);
    }
}

#[test]
#[ignore = "backend: a GPU asked of Docker on a machine without one"]
fn backend_docker_gpu_on_a_machine_without_is_explained() {
    let place = workspace();
    let image = image();
    let method = Method { image: &image, gpu: true, ..Method::default() };
    let done = embed(&place, &method, &["--gpu", "0"]);
    done.expect(1);
    for part in ["exit 125", "NVIDIA Container Toolkit", "--gpu none"] {
        assert!(done.error().contains(part), "{part}: {}", done.stderr);
    }
    embed(&place, &method, &["--gpu", "none"]).expect(0);
}

/// Case C07.
#[test]
#[ignore = "backend: an image without ps"]
fn backend_docker_image_without_ps_is_explained() {
    let place = workspace();
    let image = variable("SCFOUNDRY_TEST_IMAGE_WITHOUT_PS");
    let method = Method { image: &image, ..Method::default() };
    let done = embed(&place, &method, &[]);
    done.expect(1);
    for part in ["lacks procps", "trace.enabled = false"] {
        assert!(done.error().contains(part), "{part}: {}", done.stderr);
    }
    // The way out that it names.
    let file = place.write("unmeasured.config", "trace.enabled = false\n");
    embed(&place, &method, &["--", "-c", file.to_str().unwrap()]).expect(0);
    assert!(place.join("results/embeddings/mine/pbmc_700.h5ad").is_file());
}

#[test]
#[ignore = "backend: a Docker container with too little shared memory"]
fn backend_docker_bus_error_is_explained() {
    let place = workspace();
    let own = std::fs::read_to_string(place.join("nextflow.config")).unwrap();
    place.write("nextflow.config", &(own + "docker.runOptions = '--shm-size=1m'\n"));
    let image = image();
    let does = r#"
import mmap
with open("/dev/shm/x", "w+b") as file:
    file.truncate(8 << 20)
    shared = mmap.mmap(file.fileno(), 8 << 20)
    for at in range(0, 8 << 20, 4096):
        shared[at] = 1
"#;
    let done = embed(&place, &Method { image: &image, does, ..Method::default() }, &[]);
    done.expect(1);
    for part in ["exit 135", "/dev/shm", "--shm-size"] {
        assert!(done.error().contains(part), "{part}: {}", done.stderr);
    }
}

#[test]
#[ignore = "backend: interrupts a Docker container"]
fn backend_docker_interrupt_ends_the_container() {
    let place = workspace();
    let image = image();
    Method { image: &image, does: "time.sleep(300)", ..Method::default() }.add_to(&place);
    let mut command = place.command(&["embed", "--method", "mine", "--data", demo().to_str().unwrap()]);
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    assert!(wait_for(90, || !containers(&place).is_empty()), "no container");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = Done::of(&child.wait_with_output().unwrap());
    done.expect(130);
    assert!(done.error().contains("--resume"), "{}", done.stderr);
    assert!(wait_for(20, || containers(&place).is_empty()), "{:?}", containers(&place));
    assert_nobody_in(place.root());
}

/// The working directories of the engine's containers that are in the workspace.
fn containers(place: &Place) -> Vec<String> {
    let docker = |words: &[&str]| {
        let output = Command::new("docker").args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let ids = docker(&["ps", "--quiet"]);
    let directory = |id: &str| docker(&["inspect", "--format", "{{.Config.WorkingDir}}", id]);
    let root = place.root().to_str().unwrap();
    ids.lines().map(directory).filter(|directory| directory.starts_with(root)).collect()
}
