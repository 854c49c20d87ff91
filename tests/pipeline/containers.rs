//! What container engines are told, by real Nextflow with our configuration, to stand-ins that write their arguments down.

use std::path::{Path, PathBuf};

use crate::place::{Done, Place, case, demo, nextflow, path_with};

const PIPELINE: &str = r#"
process EMBED {
    output: path 'seen'
    script: 'echo "${CUDA_VISIBLE_DEVICES:-unset}" > seen'
}
workflow { EMBED().view { file -> "seen ${file.text.trim()}" } }
"#;

/// Writes down its arguments, each with a NUL after it, then runs the command that follows the image.
const STAND_IN: &str = r#"#!/bin/bash
if [ "$1" = pull ]; then
    for word; do [[ $word == *.img* ]] && touch "$word"; done
    exit 0
fi
[ "$1" = run ] || [ "$1" = exec ] || exit 0
printf '%s\0' "$@" >RECORD
# What the engine passes into a container by these names, the program in it sees without them.
export CUDA_VISIBLE_DEVICES="${APPTAINERENV_CUDA_VISIBLE_DEVICES:-${SINGULARITYENV_CUDA_VISIBLE_DEVICES:-}}"
while (($#)); do
    word=$1
    shift
    if [[ $word == housy17/* || $word == satijalab/* || $word == *.img ]]; then exec "$@"; fi
done
exit 125
"#;

/// Runs a task of the method's configuration; gives the arguments of the container engine and what the task saw.
fn told(runtime: &str, method: &str, gpu: &str) -> (Vec<String>, String) {
    let place = Place::new();
    place.run(&["init", ".", "--runtime", runtime]).expect(0);
    let plan = place.json(&[
        "embed",
        "--method",
        method,
        "--gpu",
        gpu,
        "--dry-run",
        "--data",
        demo().to_str().unwrap(),
    ]);
    let record = place.join("record");
    place.script(&format!("bin/{runtime}"), &STAND_IN.replace("RECORD", record.to_str().unwrap()));
    place.write("run/nextflow.config", plan["nextflow_config"].as_str().unwrap());
    place.write("run/main.nf", PIPELINE);
    let mut command = nextflow(&place.join("run"), &["run", "main.nf", "-ansi-log", "false"]);
    command.env("PATH", path_with(&place.join("bin"))).env("SCFOUNDRY", "/bin/true");
    let output = command.output().unwrap();
    let done = Done::of(&output);
    assert_eq!(done.code, Some(0), "{runtime} {method}: {}{}", done.stdout, done.stderr);
    let seen = done.stdout.lines().find_map(|line| line.strip_prefix("seen ")).unwrap().to_owned();
    (arguments(&record), seen)
}

fn arguments(record: &Path) -> Vec<String> {
    let Ok(bytes) = std::fs::read(record) else { return Vec::new() };
    let text = String::from_utf8(bytes).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// The one value after each occurrence of a flag.
fn values<'a>(arguments: &'a [String], flag: &str) -> Vec<&'a str> {
    arguments.windows(2).filter(|pair| pair[0] == flag).map(|pair| pair[1].as_str()).collect()
}

#[test]
#[ignore = "engine: starts tasks in a stand-in for docker"]
fn engine_docker_is_told_cards_user_and_memory() {
    let user = format!("{}:{}", rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    for (gpu, device) in [("0", "device=0"), ("0,1", "\"device=0,1\"")] {
        let (words, _) = told("docker", "scgpt", gpu);
        assert_eq!(values(&words, "--gpus"), [device], "{words:?}");
        assert_eq!(values(&words, "-u"), [user.as_str()], "{words:?}");
        assert!(words.iter().any(|word| word == "--shm-size=16g"), "{words:?}");
        let home = words.iter().find_map(|word| word.strip_prefix("HOME=")).unwrap();
        assert!(Path::new(home).is_absolute() && home.contains("/work/"), "{words:?}");
        assert!(words.iter().any(|word| word == "housy17/scgpt:0.2.4"), "{words:?}");
    }
}

#[test]
#[ignore = "engine: starts tasks that need no GPU in a stand-in for docker, or natively"]
fn engine_docker_is_told_of_no_card_by_tasks_without_gpu() {
    let (words, _) = told("docker", "seurat_cca", "0");
    assert!(words.iter().any(|word| word.starts_with("satijalab/seurat")), "{words:?}");
    assert!(!words.iter().any(|word| word.starts_with("--gpus") || word.contains("device=")), "{words:?}");
    assert_eq!(values(&words, "-u").len(), 1, "{words:?}");
    // Native work has no container, although docker is on.
    assert_eq!(told("docker", "pca", "0").0, Vec::<String>::new());
}

/// Cases D01, D03, D05 and C13, row by row: what `docker` is told by the script that Nextflow writes.
#[test]
#[ignore = "engine: starts tasks in a stand-in for docker, a row of the table each"]
fn engine_docker_holds_to_every_row_of_the_table() {
    let table = std::fs::read_to_string(case("d_gpu_flags.tsv")).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 5);
    for row in rows {
        let [command, "docker", must, must_not] = row[..] else { panic!("{row:?}") };
        let (method, gpu) = match command {
            "(no --gpu) --method pca" => ("pca", None),
            "--gpu 0 benchmark" => ("seurat_cca", Some("0")),
            other => ("scgpt", other.strip_prefix("--gpu ")),
        };
        let (words, _) = told("docker", method, gpu.unwrap_or("0"));
        let gpus = values(&words, "--gpus");
        match must {
            text if text.contains("exactly \"device=0,1\"") => {
                assert_eq!(gpus, ["\"device=0,1\""], "{words:?}")
            }
            text if text.contains("device=0 ") => assert_eq!(gpus, ["device=0"], "{words:?}"),
            text if text.contains("together") => {
                assert!(gpus.len() == 1 && values(&words, "-u").len() == 1, "{words:?}");
                assert!(words.iter().any(|word| word.starts_with("--shm-size=")), "{words:?}");
            }
            text if text.contains("no --gpu") || text.contains("no GPU flag") => {
                assert!(gpus.is_empty() && !words.iter().any(|word| word.contains("device=")), "{words:?}");
            }
            other => panic!("a row that is not understood: {other}"),
        }
        assert!(!gpus.contains(&"all") && !gpus.contains(&"device=0,1"), "{must_not}: {words:?}");
    }
}

#[test]
#[ignore = "engine: starts tasks in a stand-in for podman"]
fn engine_podman_is_told_every_card() {
    let (words, _) = told("podman", "scgpt", "0,1");
    assert_eq!(values(&words, "--device"), ["nvidia.com/gpu=0", "nvidia.com/gpu=1"], "{words:?}");
    assert!(words.iter().any(|word| word == "--shm-size=16g"), "{words:?}");
    assert!(!words.iter().any(|word| word.starts_with("--gpus")), "{words:?}");
}

#[test]
#[ignore = "engine: starts tasks in stand-ins for apptainer and singularity"]
fn engine_apptainer_and_singularity_see_only_the_chosen_cards() {
    for runtime in ["apptainer", "singularity"] {
        let (words, seen) = told(runtime, "scgpt", "0,1");
        assert!(words.iter().any(|word| word == "--nv"), "{words:?}");
        assert_eq!(seen, "0,1", "{words:?}");
        let image = words.iter().find(|word| word.ends_with(".img")).map(PathBuf::from).unwrap();
        assert!(image.to_string_lossy().contains("scgpt"), "{words:?}");
    }
    let (words, seen) = told("apptainer", "seurat_cca", "0");
    assert!(!words.iter().any(|word| word == "--nv"), "{words:?}");
    assert_eq!(seen, "unset");
}
