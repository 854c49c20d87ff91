//! The main job as a job of a SLURM cluster.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Done, PROGRAM, Place, assert_nobody_in, demo, embedding, trace, wait_for};

const EMBED: [&str; 4] = ["embed", "--method", "pca", "--data"];

/// A workspace whose engine asks the cluster often, so that a test does not wait for it.
fn workspace(settings: &str) -> Place {
    assert!(std::env::var_os("SLURM_CONF").is_some(), "set SLURM_CONF: tests/backends/slurm.sh up prints it");
    let place = Place::new();
    place.run(&["init", ".", "--runtime", "none"]).expect(0);
    let own = std::fs::read_to_string(place.join("nextflow.config")).unwrap();
    let often =
        "executor { pollInterval = '1 sec'; queueStatInterval = '2 sec'; exitReadTimeout = '10 sec' }";
    place.write("nextflow.config", &format!("{own}\n{often}\n{settings}\n"));
    place
}

fn on_cluster(place: &Place) -> Command {
    let mut command = place.command(&EMBED);
    command.arg(demo()).args(["--profile", "slurm"]);
    command
}

/// The cluster's jobs whose task directory is in the workspace.
fn jobs(place: &Place) -> Vec<String> {
    let output = Command::new("squeue").args(["-h", "-o", "%i %Z"]).output().unwrap();
    assert!(output.status.success());
    let root = place.root().to_str().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|line| line.contains(root))
        .map(str::to_owned)
        .collect()
}

#[test]
#[ignore = "backend: a job on SLURM"]
fn backend_slurm_job_gives_the_local_result() {
    let place = workspace("process.cpus = 2");
    let program = format!(
        "#!/bin/sh\necho \"$RAYON_NUM_THREADS\" >'{}'\nexec {PROGRAM} \"$@\"\n",
        place.join("threads").display()
    );
    let wrapper = place.script("wrapper", &program);
    place.write("wrapper.config", &format!("env.SCFOUNDRY = '{}'\n", wrapper.display()));
    let done = Done::of(&on_cluster(&place).args(["--config", "wrapper.config"]).output().unwrap());
    done.expect(0);
    let result = place.join("results/embeddings/pca/pbmc_700.h5ad");
    assert_eq!(done.stdout, format!("{}\n", result.display()));
    assert!(done.stderr.contains("EMBED (pbmc_700)"), "{}", done.stderr);
    assert_eq!(std::fs::read_to_string(place.join("threads")).unwrap(), "2\n");
    let rows = trace(&place.newest().join("trace.txt"));
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0]["status"].as_str(), rows[0]["cpus"].as_str()), ("COMPLETED", "2"));
    assert!(rows[0]["native_id"].parse::<u32>().is_ok(), "{rows:?}");
    assert!(rows[0]["peak_rss"].parse::<u64>().unwrap() > 1_000_000, "{rows:?}");

    let local = Place::new();
    local.run(&[&EMBED[..], &[demo().to_str().unwrap()]].concat()).expect(0);
    let expected = local.join("results/embeddings/pca/pbmc_700.h5ad");
    assert_eq!(embedding(&result), embedding(&expected), "another result than the local one");
}

#[test]
#[ignore = "backend: a job that SLURM refuses"]
fn backend_slurm_refused_job_is_one_error() {
    let place = workspace("process.queue = 'nope'");
    let mut child = on_cluster(&place).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ended = wait_for(90, || processes_gone(&child));
    if !ended {
        child.kill().unwrap();
    }
    let done = Done::of(&child.wait_with_output().unwrap());
    assert!(ended, "the run stalls: {}", done.stderr);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("invalid partition specified: nope"), "{}", done.stderr);
    assert_eq!(done.stdout, "");
    assert_eq!(place.runs()[0]["status"], "failed");
}

/// Whether a child has ended, without taking its status.
fn processes_gone(child: &std::process::Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    stat.rsplit(") ").next().unwrap().starts_with('Z')
}

#[test]
#[ignore = "backend: interrupts a job on SLURM"]
fn backend_slurm_interrupt_cancels_the_jobs() {
    let place = workspace("");
    let wrapper = place.script("slow", &format!("#!/bin/sh\nsleep 301\nexec {PROGRAM} \"$@\"\n"));
    place.write("slow.config", &format!("env.SCFOUNDRY = '{}'\n", wrapper.display()));
    let mut command = on_cluster(&place);
    command.args(["--config", "slow.config"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    assert!(wait_for(90, || !jobs(&place).is_empty()), "no job");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = Done::of(&child.wait_with_output().unwrap());
    done.expect(130);
    assert!(wait_for(20, || jobs(&place).is_empty()), "{:?}", jobs(&place));
    assert_nobody_in(place.root());
}
