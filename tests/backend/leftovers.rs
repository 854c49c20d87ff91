//! What outlives a hard kill beside a real engine and a real cluster, and that it is ended.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use scfoundry::ui::Ui;

use crate::place::{Done, Place, assert_nobody_in, demo, wait_for};

const EMBED: [&str; 4] = ["embed", "--method", "pca", "--data"];

/// A workspace, and a program that a task waits in for ever.
fn workspace() -> Place {
    let place = Place::new();
    place.run(&["init", ".", "--runtime", "none"]).expect(0);
    place.script("tools/slow", "#!/bin/sh\nsleep 301\n");
    place
}

/// The main job with another configuration, in which it never ends.
fn start(place: &Place, settings: &str) -> Child {
    let slow = place.join("tools/slow");
    place.write("slow.config", &format!("env.SCFOUNDRY = '{}'\n{settings}\n", slow.display()));
    let mut command = place.command(&EMBED);
    command.arg(demo()).args(["--config", "slow.config"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The process of the engine.
fn engine(place: &Place) -> Pid {
    let run = place.newest();
    let is_engine = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == run)
            && std::fs::read_to_string(entry.path().join("cmdline"))
                .is_ok_and(|line| line.contains("nextflow.cli.Launcher"))
    };
    let found = std::fs::read_dir("/proc").unwrap().flatten().find(is_engine).expect("no engine");
    Pid::from_raw(found.file_name().to_str().unwrap().parse().unwrap()).unwrap()
}

/// As a power cut does it: neither sees the other die.
fn cut_power(place: &Place, mut child: Child) {
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    kill_process(engine(place), Signal::KILL).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The lines of a command's output that tell of the workspace.
fn told(place: &Place, program: &str, arguments: &[&str]) -> Vec<String> {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let root = place.root().to_str().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| line.contains(root)).map(str::to_owned).collect()
}

fn jobs(place: &Place) -> Vec<String> {
    told(place, "squeue", &["-h", "-t", "PENDING,RUNNING", "-o", "%F %Z"])
}

fn containers(engine: &str, place: &Place) -> Vec<String> {
    let running = Command::new(engine).args(["ps", "--all", "-q"]).output().unwrap();
    let ids = String::from_utf8(running.stdout).unwrap();
    let directory = |id: &str| {
        let inspect = ["inspect", "--format", "{{.Id}} {{.Config.WorkingDir}}", id];
        let output = Command::new(engine).args(inspect).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let root = place.root().to_str().unwrap();
    ids.split_whitespace().map(directory).filter(|line| line.contains(root)).collect()
}

fn resume(place: &Place) -> Done {
    let done = place.run(&[&EMBED[..], &[demo().to_str().unwrap(), "--resume"]].concat());
    done.expect(0);
    assert!(place.join("results/embeddings/pca/pbmc_700.h5ad").is_file());
    assert!(!done.stderr.contains("warning"), "{}", done.stderr);
    done
}

const SLURM: &str =
    "process.executor = 'slurm'\nexecutor { pollInterval = '1 sec'; queueStatInterval = '2 sec' }";

/// A job of the same user that works elsewhere, and so is nobody's leftover.
fn unrelated_job(directory: &Path) -> String {
    let arguments = ["--parsable", "--output", "/dev/null", "--wrap", "sleep 302", "--mem", "50", "--chdir"];
    let output = Command::new("sbatch").args(arguments).arg(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
#[ignore = "backend: kills everything while a job is on SLURM"]
fn backend_slurm_job_of_a_power_cut_is_cancelled_by_resume() {
    assert!(std::env::var_os("SLURM_CONF").is_some(), "set SLURM_CONF: tests/backends/slurm.sh up prints it");
    let place = workspace();
    std::fs::create_dir_all(place.join("other/work")).unwrap();
    let other = unrelated_job(&place.join("other/work"));
    let child = start(&place, SLURM);
    let submitted = || jobs(&place).iter().any(|line| line.contains("/runs/embed/"));
    assert!(wait_for(90, submitted), "no job");
    // The engine writes the number of a job down after the scheduler has it.
    let log = place.newest().join("nextflow.log");
    let logged =
        || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("[SLURM] submitted process"));
    assert!(wait_for(20, logged), "the engine does not know of its job");
    cut_power(&place, child);
    assert_eq!(place.runs()[0]["status"], "lost");
    assert!(submitted(), "the job does not outlive its engine");
    let done = resume(&place);
    assert!(done.stderr.contains("cancelled 1 job that a killed run had left"), "{}", done.stderr);
    let gone = wait_for(20, || jobs(&place).len() == 1);
    let left = jobs(&place);
    let _ = Command::new("scancel").arg(&other).status();
    assert!(gone && left[0].starts_with(&other), "{left:?}");
}

#[test]
#[ignore = "backend: kills the engine while a job is on SLURM, with a scheduler that has gone"]
fn backend_slurm_job_is_named_where_the_scheduler_is_silent() {
    assert!(std::env::var_os("SLURM_CONF").is_some(), "set SLURM_CONF: tests/backends/slurm.sh up prints it");
    let place = workspace();
    let child = start(&place, SLURM);
    assert!(wait_for(90, || !jobs(&place).is_empty()), "no job");
    let log = place.newest().join("nextflow.log");
    let logged =
        || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("[SLURM] submitted process"));
    assert!(wait_for(20, logged), "the engine does not know of its job");
    cut_power(&place, child);
    let number = jobs(&place)[0].split(' ').next().unwrap().to_owned();
    place.script("bin/squeue", "#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n");
    let mut clean = place.command(&["clean", "--failed"]);
    clean.env("PATH", crate::place::path_with(&place.join("bin")));
    let done = Done::of(&clean.output().unwrap());
    let cancelled = Command::new("scancel").arg(&number).status().unwrap();
    assert!(cancelled.success());
    done.expect(0);
    assert!(done.stderr.contains("Unable to contact slurm controller"), "{}", done.stderr);
    assert!(done.stderr.contains(&format!("`scancel {number}`")), "{}", done.stderr);
}

/// The main job in a container of the test's image.
fn contained(engine: &str, place: &Place) -> String {
    let variable = match engine {
        "podman" => "SCFOUNDRY_TEST_PODMAN_IMAGE",
        _ => "SCFOUNDRY_TEST_IMAGE",
    };
    let image = std::env::var(variable)
        .unwrap_or_else(|_| panic!("set {variable}: tests/backends/{engine}.sh up prints it"));
    let tools = place.join("tools").display().to_string();
    format!(
        "{engine}.enabled = true\nprocess {{ withName: 'EMBED' {{ container = '{image}'; \
         containerOptions = '-v {tools}:{tools} --network none' }} }}"
    )
}

#[test]
#[ignore = "backend: kills the engine while a container runs"]
fn backend_docker_container_of_a_killed_nextflow_is_ended() {
    let place = workspace();
    let child = start(&place, &contained("docker", &place));
    assert!(wait_for(90, || !containers("docker", &place).is_empty()), "no container");
    // What belongs to a living engine is nobody's leftover.
    scfoundry::launch::end_leftovers(&place.newest(), &Ui::default());
    assert_eq!(containers("docker", &place).len(), 1);
    kill_process(engine(&place), Signal::KILL).unwrap();
    let done = Done::of(&child.wait_with_output().unwrap());
    done.expect(1);
    assert!(done.stderr.contains("ended 1 container that a killed run had left"), "{}", done.stderr);
    assert_eq!(containers("docker", &place), Vec::<String>::new());
    assert_nobody_in(place.root());
    resume(&place);
}

/// A power cut while a container of the engine runs, then a removal of what has failed.
fn a_container_outlives_a_power_cut_until_it_is_cleaned(engine: &str) {
    let place = workspace();
    let child = start(&place, &contained(engine, &place));
    assert!(wait_for(90, || !containers(engine, &place).is_empty()), "no container");
    cut_power(&place, child);
    assert_eq!(containers(engine, &place).len(), 1, "the container does not outlive its engine");
    let done = place.run(&["clean", "--failed"]);
    done.expect(0);
    assert!(done.stderr.contains("ended 1 task that a killed run had left"), "{}", done.stderr);
    assert!(done.stderr.contains("ended 1 container that a killed run had left"), "{}", done.stderr);
    assert_eq!(containers(engine, &place), Vec::<String>::new());
    assert_nobody_in(place.root());
    assert!(!place.join("runs/embed").exists());
}

#[test]
#[ignore = "backend: kills everything while a container of Docker runs"]
fn backend_docker_container_of_a_power_cut_is_ended_by_clean() {
    a_container_outlives_a_power_cut_until_it_is_cleaned("docker");
}

#[test]
#[ignore = "backend: kills everything while a container of Podman runs"]
fn backend_podman_container_of_a_power_cut_is_ended_by_clean() {
    a_container_outlives_a_power_cut_until_it_is_cleaned("podman");
}
