//! The sampler of GPU tasks, on a stand-in for nvidia-smi that plays a recorded load.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::{Done, Place, demo, path_with, processes_in, wait_for};

const LOAD: &str = "4 0 25\n4 0 25\n2100 80 120\n7168 100 250\n5000 60 200\n";

/// A workspace with a method that uses a GPU and does `does` in Python before it gives back its input.
fn place(does: &str) -> Place {
    let place = Place::new();
    place.run(&["init", "--runtime", "none"]).expect(0);
    place.write(
        "methods/mine.toml",
        "name = \"mine\"\ndescription = \"Gives back its input\"\ncategory = \"zero-shot\"\ntasks = [\"embed\"]\n\
         image = \"none:0\"\ngpu = true\ncost_class = 1\n[genes]\nids = \"any\"\n[input]\ncounts = true\n\
         [runner]\nkind = \"python\"\nentry = \"mine.py\"\n[embed]\nbatch = { parameter = \"batch_size\", default = 8 }\n",
    );
    let script = format!(
        "import json, os, shutil, sys, time\nspec = json.load(open(sys.argv[sys.argv.index(\"--spec\") + 1]))\n{does}\n\
         shutil.copy(spec[\"data\"], spec[\"output\"])\n\
         json.dump({{\"kind\": \"runner\", \"cells\": 700, \"device\": \"card\"}}, open(\"usage.json\", \"w\"))\n"
    );
    place.write("methods/mine.py", &script);
    place.write("load.txt", LOAD);
    place
}

fn embed(place: &Place, mode: &str) -> Command {
    let arguments = ["embed", "--method", "mine", "--gpu", "0", "--keep-work", "--data"];
    let mut command = place.command(&arguments);
    command.arg(demo()).env("SMI_LOAD", place.join("load.txt")).env("SMI_MODE", mode);
    command.env("PATH", path_with(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smi")));
    command
}

fn run(place: &Place, mode: &str) -> Done {
    Done::of(&embed(place, mode).output().unwrap())
}

fn samplers(place: &Place) -> Vec<String> {
    let ours = |line: &String| {
        line.contains("gpu-sampler.sh") || line.contains("nvidia-smi") || line.contains("sleep 86399")
    };
    processes_in(place.root()).into_iter().filter(ours).collect()
}

#[track_caller]
fn no_sampler_stays(place: &Place) {
    assert!(wait_for(4, || samplers(place).is_empty()), "{:#?}", samplers(place));
}

fn task_directory(place: &Place) -> PathBuf {
    let only = |path: PathBuf| {
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap()
    };
    only(only(place.newest().join("work")))
}

fn task(place: &Place) -> Value {
    place.json(&["cost"])["tasks"][0].clone()
}

#[test]
#[ignore = "engine: a GPU task with a recorded load"]
fn engine_the_peak_of_a_recorded_load_is_sampled() {
    let place = place("time.sleep(6)");
    let before = fs::read_to_string(place.join("nextflow.config")).unwrap();
    place.write("nextflow.config", &format!("{before}\nprocess.beforeScript = 'echo mine > own.txt'\n"));
    run(&place, "ok").expect(0);
    no_sampler_stays(&place);
    let task = task(&place);
    assert_eq!(task["peak_gpu_source"], "sampled", "{task:#}");
    assert_eq!((task["peak_gpu_bytes"].as_u64(), task["gpus"].as_u64()), (Some(7168 << 20), Some(1)));
    assert!(task["gpu_utilization_percent"].as_f64().unwrap() > 0.0);
    assert!(task["gpu_joules"].as_f64().unwrap() > 100.0);
    let directory = task_directory(&place);
    let complaints = fs::read_to_string(directory.join(".gpu.err"));
    assert!(complaints.is_err(), "a list of complaints was left: {complaints:?}");
    assert_eq!(fs::read_to_string(directory.join("own.txt")).unwrap(), "mine\n");
    let text = place.run(&["cost", "--detail"]).stdout;
    assert!(text.contains("7.0 GiB") && text.contains("sampled") && text.contains("GPU busy"), "{text}");
}

#[test]
#[ignore = "engine: GPU tasks whose nvidia-smi is of no use"]
fn engine_a_useless_nvidia_smi_harms_no_task() {
    for (mode, complaint) in [("nodriver", "couldn't communicate"), ("hang", ""), ("dies", "Unknown Error")] {
        let place = place("time.sleep(5)");
        run(&place, mode).expect(0);
        no_sampler_stays(&place);
        let said = fs::read_to_string(task_directory(&place).join(".gpu.err")).unwrap_or_default();
        assert!(said.contains(complaint), "{mode}: {said}");
        let task = task(&place);
        assert_eq!(task["peak_gpu_bytes"].is_null(), mode != "dies", "{mode}: {task:#}");
    }
}

#[test]
#[ignore = "engine: a GPU task that fails on a card that others use"]
fn engine_a_failed_task_on_a_shared_card_is_sampled_too() {
    let place = place("time.sleep(3)\nsys.exit(7)");
    let mut command = embed(&place, "ok");
    // A program that is older than the task.
    command.env("SMI_PROCESS", std::process::id().to_string());
    Done::of(&command.output().unwrap()).expect(1);
    no_sampler_stays(&place);
    let task = task(&place);
    assert_eq!((&task["status"], &task["peak_gpu_source"]), (&"FAILED".into(), &"shared".into()), "{task:#}");
}

/// Kills a process in the middle of a GPU task and sees that the sampler goes with the task.
fn killed(victim: impl Fn(&Place, &std::process::Child) -> Option<Pid>) {
    let place = place("time.sleep(302)");
    let mut child = embed(&place, "ok").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = || samplers(&place).iter().any(|line| line.contains("-l 1"));
    assert!(wait_for(120, begun), "no sampler within two minutes: {:#?}", processes_in(place.root()));
    let victim = victim(&place, &child).expect("the process to kill");
    kill_process(victim, Signal::KILL).unwrap();
    child.wait().unwrap();
    no_sampler_stays(&place);
}

fn find(command: &str, place: &Place) -> Option<Pid> {
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let number: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let inside = fs::read_link(entry.path().join("cwd")).ok()?.starts_with(place.root());
        (inside && String::from_utf8_lossy(&line).replace('\0', " ").contains(command))
            .then(|| Pid::from_raw(number))?
    })
}

#[test]
#[ignore = "engine: kills Nextflow under a GPU task"]
fn engine_no_sampler_outlives_a_killed_nextflow() {
    killed(|place, _| find("nextflow.cli.Launcher", place));
}

#[test]
#[ignore = "engine: kills the shell of a GPU task"]
fn engine_no_sampler_outlives_a_killed_task() {
    killed(|place, _| find("bash .command.run", place).or_else(|| find(".command.run", place)));
}

#[test]
#[ignore = "engine: kills the program over a GPU task"]
fn engine_no_sampler_outlives_a_killed_program() {
    killed(|_, child| Some(Pid::from_child(child)));
}
