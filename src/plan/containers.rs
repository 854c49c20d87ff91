//! What a container engine must be told, so that a task sees its GPU, its files belong to the user and nothing else changes.
//!
//! All of it goes to the processes that need it, by `containerOptions`: a setting for the whole engine would reach CPU
//! tasks too, and a `runOptions` of the user would replace it or be replaced.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::resources::{Gpus, Runtime};
use crate::workspace::Config;

/// The surroundings of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Surroundings {
    /// Added to the engine's command line; Bash, evaluated where the task starts.
    pub container_options: Option<String>,
    /// Bash that runs outside the container, before it.
    pub before_script: Option<String>,
}

/// What [`surroundings`] has to know.
pub struct Place<'a> {
    pub runtime: Runtime,
    pub config: &'a Config,
    pub gpus: &'a Gpus,
    /// A scheduler chooses the GPU.
    pub scheduled: bool,
}

/// Flags for a process that runs in a container (or, without one, in an environment of its own).
pub fn surroundings(place: &Place<'_>, gpu: bool) -> Surroundings {
    let wanted = gpu;
    // `--gpu none`: a flag without a number would be refused, or would mean all cards.
    let gpu = wanted && (place.scheduled || !place.gpus.is_empty());
    match place.runtime {
        Runtime::Docker => Surroundings { container_options: Some(docker(place, gpu)), before_script: None },
        Runtime::Podman => Surroundings { container_options: Some(podman(place, gpu)), before_script: None },
        Runtime::Apptainer | Runtime::Singularity => Surroundings {
            container_options: gpu.then(|| "--nv".to_owned()),
            before_script: visible_devices(place, wanted),
        },
        Runtime::None => {
            Surroundings { container_options: None, before_script: visible_devices(place, wanted) }
        }
    }
}

/// Docker and Podman give a container 64 MB of shared memory, too little for data loaders.
const SHARED_MEMORY: &str = "--shm-size=2g";

fn docker(place: &Place<'_>, gpu: bool) -> String {
    let given = place.config.get("docker.runOptions").unwrap_or_default();
    let words: Vec<&str> = given.split_whitespace().collect();
    let has = |flags: &[&str]| words.iter().any(|word| flags.iter().any(|flag| word.starts_with(flag)));
    let mut options = Vec::new();
    if !has(&["-u", "--user"]) {
        options.push("-u $(id -u):$(id -g)".to_owned());
    }
    // The user above has no home in the image.
    options.push("-e HOME=\"$NXF_TASK_WORKDIR\"".to_owned());
    options.push("-e MPLCONFIGDIR=\"$NXF_TASK_WORKDIR\"".to_owned());
    options.push("-e NUMBA_CACHE_DIR=\"$NXF_TASK_WORKDIR\"".to_owned());
    if !has(&["--shm-size", "--ipc"]) {
        options.push(SHARED_MEMORY.to_owned());
    }
    if gpu && !has(&["--gpus"]) {
        options.push(match (place.scheduled, place.gpus.0.as_slice()) {
            (true, _) => "--gpus all -e CUDA_VISIBLE_DEVICES".to_owned(),
            (false, [one]) => format!("--gpus device={one}"),
            // Docker reads the commas of an unquoted value as further settings.
            (false, _) => format!("--gpus '\"device={}\"'", place.gpus),
        });
    }
    options.join(" ")
}

fn podman(place: &Place<'_>, gpu: bool) -> String {
    let mut options = vec![SHARED_MEMORY.to_owned()];
    if gpu && place.scheduled {
        options.push("--device nvidia.com/gpu=all -e CUDA_VISIBLE_DEVICES".to_owned());
    } else if gpu {
        // Podman accepts Docker's --gpus and ignores it.
        options.extend(place.gpus.0.iter().map(|number| format!("--device nvidia.com/gpu={number}")));
    }
    options.join(" ")
}

fn visible_devices(place: &Place<'_>, gpu: bool) -> Option<String> {
    (gpu && !place.scheduled).then(|| format!("export CUDA_VISIBLE_DEVICES={}", place.gpus))
}

/// Settings of the engine itself that neither the workspace's configuration nor the environment has made.
///
/// A pull converts a multi-gigabyte image, which takes more than the 20 minutes that Nextflow allows.
pub fn engine_settings(
    place: &Place<'_>,
    cache: &Path,
    has_variable: impl Fn(&str) -> bool,
) -> Vec<(String, Value)> {
    let (Runtime::Apptainer | Runtime::Singularity) = place.runtime else { return Vec::new() };
    let engine = place.runtime.name();
    let images = cache.join("images").to_string_lossy().into_owned();
    let cache_variable = format!("NXF_{}_CACHEDIR", engine.to_uppercase());
    let mut settings = vec![
        ("autoMounts", json!(true)),
        ("pullTimeout", json!("6 h")),
        // Nextflow starts the container with an empty environment.
        ("envWhitelist", json!("CUDA_VISIBLE_DEVICES")),
    ];
    if !has_variable(&cache_variable) {
        settings.push(("cacheDir", json!(images)));
    }
    settings
        .into_iter()
        .map(|(name, value)| (format!("{engine}.{name}"), value))
        .filter(|(name, _)| !place.config.has(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(runtime: Runtime, gpus: &[u32], gpu: bool) -> Surroundings {
        let place =
            Place { runtime, config: &Config::default(), gpus: &Gpus(gpus.to_vec()), scheduled: false };
        surroundings(&place, gpu)
    }

    #[test]
    fn several_cards_keep_their_quotes() {
        let both = options(Runtime::Docker, &[0, 1], true).container_options.unwrap();
        assert!(both.ends_with("--shm-size=2g --gpus '\"device=0,1\"'"), "{both}");
        let one = options(Runtime::Docker, &[0], true).container_options.unwrap();
        assert!(one.starts_with("-u $(id -u):$(id -g) ") && one.ends_with(" --gpus device=0"), "{one}");
    }

    #[test]
    fn cpu_tasks_get_no_gpu_flag() {
        for runtime in
            [Runtime::Docker, Runtime::Podman, Runtime::Apptainer, Runtime::Singularity, Runtime::None]
        {
            let text = format!("{:?}", options(runtime, &[0], false));
            assert!(!text.contains("gpu") && !text.contains("--nv") && !text.contains("CUDA"), "{text}");
        }
    }

    #[test]
    fn no_card_means_no_gpu_flag() {
        for runtime in [Runtime::Docker, Runtime::Podman, Runtime::Apptainer] {
            let task = options(runtime, &[], true);
            let flags = task.container_options.unwrap_or_default();
            assert!(!flags.contains("gpu") && !flags.contains("--nv"), "{flags}");
        }
        // Without a container nothing else hides the cards.
        let script = options(Runtime::None, &[], true).before_script;
        assert_eq!(script.as_deref(), Some("export CUDA_VISIBLE_DEVICES="));
    }

    #[test]
    fn apptainer_sees_only_the_chosen_cards() {
        let task = options(Runtime::Apptainer, &[1], true);
        assert_eq!(task.container_options.as_deref(), Some("--nv"));
        assert_eq!(task.before_script.as_deref(), Some("export CUDA_VISIBLE_DEVICES=1"));
    }
}
