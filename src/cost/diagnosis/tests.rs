use std::fs;

use super::*;

/// A failed task with the given exit code whose `.command.err` holds the given text, as diagnosed.
fn diagnosed(exit: Option<i32>, error_log: &str, facts: &Facts) -> Option<Diagnosis> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(".command.err"), error_log).unwrap();
    let mut task = failed(exit);
    task.container = Some("housy17/scllms:latest".to_owned());
    diagnose(&task, Some(directory.path()), facts)
}

fn failed(exit: Option<i32>) -> TaskRecord {
    TaskRecord { exit, ..TaskRecord::new("1", "EMBED:SCGPT (a)", Status::Failed) }
}

fn docker() -> Facts {
    Facts { engine: Some("docker".to_owned()), gpu: true, ..Facts::default() }
}

#[test]
fn gpu_memory_advises_from_the_batch_size_in_use() {
    let log = "Traceback\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n";
    let hint = |facts: &Facts| diagnosed(Some(1), log, facts).unwrap().hint;
    let with = |size| Facts { batch_size: Some(size), ..docker() };
    assert_eq!(hint(&with(64)), "lower --batch-size, now 64: try --batch-size 32");
    assert_eq!(hint(&with(1)), "the batch size is 1 already: use a card with more memory");
    assert!(hint(&docker()).starts_with("lower --batch-size"));
    let fixed = Facts { ignores_batch_size: true, ..with(64) };
    assert!(hint(&fixed).starts_with("this method has no batch size"));
    assert_eq!(diagnosed(Some(1), log, &docker()).unwrap().what, "GPU memory ran out");
}

#[test]
fn gpu_memory_takes_the_batch_size_from_usage() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(".command.err"), "RuntimeError: CUDA error: out of memory").unwrap();
    Usage { batch_size_asked: Some(48), ..Usage::new("runner") }.write(directory.path()).unwrap();
    let diagnosis = diagnose(&failed(Some(1)), Some(directory.path()), &Facts::default()).unwrap();
    assert_eq!(diagnosis.hint, "lower --batch-size, now 48: try --batch-size 24");
}

#[test]
fn each_known_line_has_its_own_explanation() {
    let cases: [(i32, &str, &str); 23] = [
        (
            125,
            "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].",
            "cannot give a task a GPU",
        ),
        (
            126,
            "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=0",
            "podman cannot give",
        ),
        (125, "Error: short-name \"a/b:1\" did not resolve to an alias", "no registry to look"),
        (125, "Error: initializing source docker://x:1: pinging container registry", "cannot be had"),
        (1, "RuntimeError: Found no NVIDIA driver on your system.", "sees no GPU"),
        (1, "ImportError: libcuda.so.1: cannot open shared object file: No such file", "sees no GPU"),
        (1, "Command 'ps' required by nextflow to collect task metrics cannot be found", "lacks procps"),
        (1, "RuntimeError: DataLoader worker (pid 12) is killed by signal: Bus error.", "/dev/shm"),
        (1, "OSError: [Errno 28] No space left on device", "the disk is full"),
        (1, "OSError: [Errno 122] Disk quota exceeded: 'x'", "the disk is full"),
        (125, "Unable to find image 'housy17/scllms:latest' locally", "cannot be had"),
        (125, "docker: Error response from daemon: No such image: housy17/scllms:latest", "cannot be had"),
        (
            1,
            "docker: Got permission denied while trying to connect to the Docker daemon socket",
            "docker daemon",
        ),
        (1, "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "does not answer"),
        (127, ".command.run: line 9: sbatch: command not found", "sbatch is not on this machine"),
        (1, "java.lang.UnsupportedClassVersionError: nextflow/cli/Launcher", "Java is too old"),
        (1, "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 30. GiB for an array", "more RAM"),
        (1, "PermissionError: [Errno 13] Permission denied: '/data/a.h5ad'", "/data/a.h5ad"),
        (1, "ERROR ~ Unable to acquire lock on session with ID 1-2-3", "session"),
        (
            1,
            "ERROR ~ Failed to pull singularity image\\n  command: singularity pull x\\n  status : 143",
            "longer to pull",
        ),
        (
            1,
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-12-02T10:00:00 DUE TO TIME LIMIT ***",
            "time limit",
        ),
        (1, "TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "time limit"),
        (127, ".command.sh: line 2: Rscript: command not found", "Rscript: command not found"),
    ];
    for (exit, line, expected) in cases {
        let log = format!("loading\n{line}\nRun 'docker run --help' for more information\n");
        let diagnosis =
            diagnosed(Some(exit), &log, &docker()).unwrap_or_else(|| panic!("no diagnosis: {line}"));
        assert!(diagnosis.what.contains(expected), "{line}\n{diagnosis:?}");
        assert!(
            !diagnosis.hint.is_empty() && !diagnosis.what.ends_with('.') && !diagnosis.hint.ends_with('.')
        );
    }
}

#[test]
fn an_image_that_was_pulled_is_not_blamed() {
    let log = "Unable to find image 'x' locally\nlatest: Pulling from x\nValueError: bad label\n";
    assert_eq!(diagnosed(Some(1), log, &docker()), None);
}

#[test]
fn the_last_trouble_counts() {
    let log = "CUDA out of memory, batch halved to 32\nOSError: [Errno 28] No space left on device\n";
    assert!(diagnosed(Some(1), log, &docker()).unwrap().what.starts_with("the disk is full"));
}

#[test]
fn a_missing_gpu_is_explained_by_engine() {
    let log = "RuntimeError: No CUDA GPUs are available";
    let hint = |engine: &str, gpu| {
        let facts = Facts { engine: Some(engine.to_owned()), gpu, ..Facts::default() };
        diagnosed(Some(1), log, &facts).unwrap().hint
    };
    assert!(hint("apptainer", true).contains("--nv"));
    assert!(hint("docker", true).contains("Container Toolkit"));
    assert!(hint("docker", false).contains("--gpu 0"));
}

#[test]
fn exit_codes_tell_where_logs_do_not() {
    let what = |exit| diagnosed(exit, "working\n", &Facts::default()).map(|diagnosis| diagnosis.what);
    for (code, expected) in [
        (137, "killed for memory"),
        (140, "time limit"),
        (143, "time limit"),
        (125, "container did not start"),
        (126, "may not be executed"),
        (127, "a command is missing"),
        (135, "/dev/shm"),
        (139, "segmentation fault"),
        (0, "without the files"),
    ] {
        assert!(what(Some(code)).unwrap().contains(expected), "{code}");
    }
    assert!(what(None).unwrap().contains("without an exit code"));
    assert_eq!(what(Some(1)), None);
}

#[test]
fn memory_and_time_limits_are_named_with_their_numbers() {
    let mut task = failed(Some(137));
    task.peak_rss_bytes = Some(62 << 30);
    task.memory_bytes = Some(64 << 30);
    let what = diagnose(&task, None, &Facts::default()).unwrap().what;
    assert!(what.ends_with("(peak 62.0 GiB, 64.0 GiB asked for)"), "{what}");
    task.exit = Some(140);
    task.time_ms = Some(3_600_000);
    let what = diagnose(&task, None, &Facts::default()).unwrap().what;
    assert_eq!(what, "stopped from outside (exit 140): the time limit of 1h 00m, or cancelled");
}

#[test]
fn a_complete_task_is_diagnosed_for_a_memory_kill_only() {
    let directory = tempfile::tempdir().unwrap();
    let task = TaskRecord { exit: Some(0), ..TaskRecord::new("1", "EMBED:UCE (big)", Status::Completed) };
    let log = directory.path().join(".command.log");
    fs::write(&log, "CUDA out of memory, batch halved to 32\n").unwrap();
    assert_eq!(diagnose(&task, Some(directory.path()), &Facts::default()), None);
    fs::write(&log, "slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch.\n").unwrap();
    let diagnosis = diagnose(&task, Some(directory.path()), &Facts::default()).unwrap();
    assert!(diagnosis.what.starts_with("killed for memory"));
}

#[test]
fn the_engines_own_log_is_understood_too() {
    let text = "ERROR: Nextflow requires Java 17 to 24\n";
    assert!(diagnose_log(text, &Facts::default()).unwrap().what.starts_with("Java is too old"));
    assert_eq!(diagnose_log("all is well", &Facts::default()), None);
}
