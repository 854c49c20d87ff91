//! What a line of a log tells: the table of known signs.

use super::{Case, Diagnosis, quoted};

/// One known kind of failure.
struct Sign {
    /// Any of these tells it; each is a list of words that must all be in one line, in lower case.
    words: &'static [&'static [&'static str]],
    /// Exit codes without which the line is harmless; empty: any.
    exits: &'static [i32],
    explain: fn(&Case<'_>, &str) -> Diagnosis,
}

/// Specific signs stand before general ones: of two in the same line the first wins.
const SIGNS: &[Sign] = &[
    Sign {
        words: &[
            &["cuda out of memory"],
            &["cuda error: out of memory"],
            &["cuda_error_out_of_memory"],
            &["hip out of memory"],
            &["cublas_status_alloc_failed"],
            &["resource_exhausted", "out of memory"],
            &["oom when allocating tensor"],
            &["outofmemoryerror", "device"],
        ],
        exits: &[],
        explain: |case, _| case.out_of_gpu_memory(),
    },
    Sign {
        words: &[&["unresolvable cdi devices"]],
        exits: &[],
        explain: |_, _| {
            Diagnosis::new(
                "podman cannot give a task a GPU: this machine has no description of its cards for containers",
                "with an NVIDIA driver: \"nvidia-ctk cdi generate --output /etc/cdi/nvidia.yaml\"; without a GPU use --gpu none",
            )
        },
    },
    Sign {
        words: &[&["could not select device driver"], &["nvidia-container-cli"]],
        exits: &[],
        explain: |_, _| {
            Diagnosis::new(
                "the container engine cannot give a task a GPU: no NVIDIA driver, or no NVIDIA Container Toolkit",
                "run \"scfoundry doctor\"; without a GPU use --gpu none",
            )
        },
    },
    Sign {
        words: &[
            &["found no nvidia driver"],
            &["no cuda gpus are available"],
            &["libcuda.so", "cannot open shared object"],
            &["cuda driver version is insufficient"],
            &["could not find any nv files on this host"],
            &["torch not compiled with cuda"],
        ],
        exits: &[],
        explain: |case, _| no_gpu_inside(case),
    },
    Sign {
        words: &[&["command 'ps' required by nextflow"]],
        exits: &[],
        explain: |case, _| {
            Diagnosis::new(
                format!("{} lacks procps: Nextflow needs its \"ps\" to measure a task", case.image()),
                "add procps to the image, or run without measuring: write \"trace.enabled = false\" into a file and add \
                 -- -c FILE",
            )
        },
    },
    Sign {
        words: &[&["bus error"], &["insufficient shared memory"]],
        exits: &[],
        explain: |case, _| no_shared_memory(case),
    },
    Sign {
        words: &[&["no space left on device"], &["disk quota exceeded"]],
        exits: &[],
        explain: |_, line| {
            Diagnosis::new(
                format!("the disk is full: {}", quoted(line)),
                "free some space (old runs keep their files under runs/*/work), then resume the run",
            )
        },
    },
    Sign {
        words: &[&["unable to acquire lock on session"]],
        exits: &[],
        explain: |_, _| {
            Diagnosis::new(
                "another Nextflow holds this run's session: two cannot go on from the same work",
                "wait for it or stop it; \"scfoundry runs\" shows what is running",
            )
        },
    },
    Sign {
        words: &[
            &["failed to pull", "status : 143"],
            &["failed to pull", "timeout"],
            &["status : 143", "pull"],
            &["pull", "timed out"],
            &["pull", "timeout"],
        ],
        exits: &[],
        explain: |case, _| {
            let engine = if case.engine().is_empty() { "apptainer" } else { case.engine() };
            Diagnosis::new(
                format!("{} took longer to pull than is allowed, and was stopped", case.image()),
                format!(
                    "raise \"{engine}.pullTimeout\" in the workspace's nextflow.config, or pull it by hand into the image cache"
                ),
            )
        },
    },
    Sign {
        words: &[
            &["due to time limit"],
            &["exceeded its time limit"],
            &["job killed", "walltime"],
            &["term_runlimit"],
        ],
        exits: &[],
        explain: |case, _| case.out_of_time("by the scheduler"),
    },
    Sign {
        words: &[&["permission denied", "docker daemon"], &["permission denied", "docker.sock"]],
        exits: &[],
        explain: |_, _| {
            Diagnosis::new(
                "this user may not talk to the docker daemon",
                "join the group \"docker\", or choose another runtime such as apptainer",
            )
        },
    },
    Sign {
        words: &[&["cannot connect to the docker daemon"], &["is the docker daemon running"]],
        exits: &[],
        explain: |_, _| {
            Diagnosis::new("the docker daemon does not answer", "start it, or choose another runtime")
        },
    },
    Sign {
        words: &[&["short-name", "did not resolve"]],
        exits: &[],
        explain: |case, _| {
            Diagnosis::new(
                format!("{} is not here, and podman knows no registry to look for it in", case.image()),
                "set \"podman.registry\" in the workspace's nextflow.config, or \"unqualified-search-registries\" in podman's registries.conf",
            )
        },
    },
    Sign {
        words: &[&["unable to find image"]],
        // Docker says so before each good pull as well.
        exits: &[125],
        explain: no_image,
    },
    Sign {
        words: &[
            &["no such image"],
            &["image not known"],
            &["pull access denied"],
            &["manifest unknown"],
            &["manifest for", "not found"],
            &["failed to pull"],
            &["unable to pull"],
            &["could not open image"],
            &["initializing source", "docker://"],
        ],
        exits: &[],
        explain: no_image,
    },
    Sign {
        words: &[&["sbatch", "not found"], &["cannot run program", "sbatch"]],
        exits: &[],
        explain: |_, _| {
            Diagnosis::new(
                "sbatch is not on this machine: SLURM jobs are submitted from a login node",
                "run there, or set \"process.executor = 'local'\" in the workspace's nextflow.config",
            )
        },
    },
    Sign {
        words: &[
            &["unsupportedclassversionerror"],
            &["unsupported class file major version"],
            &["requires java"],
            &["cannot find java or it's a wrong version"],
        ],
        exits: &[],
        explain: |_, _| {
            Diagnosis::new(
                "Java is too old: Nextflow needs Java 17 or newer",
                "set JAVA_HOME to a newer one; \"scfoundry doctor\" shows which is used",
            )
        },
    },
    Sign {
        words: &[
            &["memoryerror"],
            &["std::bad_alloc"],
            &["cannot allocate memory"],
            &["unable to allocate", "for an array"],
            &["cannot allocate vector of size"],
            &["java.lang.outofmemoryerror"],
        ],
        exits: &[],
        explain: |case, _| case.out_of_memory(),
    },
    Sign {
        words: &[&["permission denied"], &["permissionerror"]],
        exits: &[],
        explain: |_, line| {
            Diagnosis::new(
                format!("a file may not be used: {}", quoted(line)),
                "check who owns it and its mode; files written by a container may belong to root",
            )
        },
    },
];

/// The diagnosis by the last line of a log that shows a known sign: earlier troubles may have been overcome.
pub(super) fn find(log: &str, case: &Case<'_>) -> Option<Diagnosis> {
    log.lines().rev().find_map(|line| {
        let lower = line.to_lowercase();
        let sign = SIGNS.iter().find(|sign| sign.fits(&lower, case.exit()))?;
        Some((sign.explain)(case, line))
    })
}

impl Sign {
    fn fits(&self, lower: &str, exit: Option<i32>) -> bool {
        let exit_fits = self.exits.is_empty() || exit.is_none_or(|code| self.exits.contains(&code));
        exit_fits && self.words.iter().any(|words| words.iter().all(|word| lower.contains(word)))
    }
}

fn no_gpu_inside(case: &Case<'_>) -> Diagnosis {
    let what = "the task sees no GPU";
    let hint = match case.engine() {
        _ if !case.facts.gpu => "the run was given none: name one, as in --gpu 0",
        "apptainer" | "singularity" => {
            "the container needs the option --nv and a host with an NVIDIA driver; \"scfoundry doctor\" tests both"
        }
        "docker" | "podman" => {
            "the host needs an NVIDIA driver and the NVIDIA Container Toolkit; \"scfoundry doctor\" tests both"
        }
        _ => "the machine needs an NVIDIA driver; \"scfoundry doctor\" tests it",
    };
    Diagnosis::new(what, hint)
}

pub(super) fn no_shared_memory(case: &Case<'_>) -> Diagnosis {
    let hint = match case.engine() {
        "docker" | "podman" => "raise \"--shm-size\" in the engine's runOptions in nextflow.config",
        _ => "enlarge /dev/shm on that machine, or use fewer data-loading workers",
    };
    Diagnosis::new("shared memory (/dev/shm) is too small: the task ended with a bus error", hint)
}

fn no_image(case: &Case<'_>, line: &str) -> Diagnosis {
    let fetch = match (case.engine(), case.task.and_then(|task| task.container.as_deref())) {
        (engine @ ("docker" | "podman"), Some(image)) => {
            format!("check its name and the network, then \"{engine} pull {image}\"")
        }
        _ => "check its name and the network, or fetch it by hand first".to_owned(),
    };
    Diagnosis::new(format!("{} cannot be had: {}", case.image(), quoted(line)), fetch)
}
