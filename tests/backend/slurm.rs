//! The main job as a job of a SLURM cluster.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::methods::Method;
use crate::place::{Done, PROGRAM, Place, assert_nobody_in, case, demo, embedding, trace, wait_for};

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

/// The newest run's only process's submission script, from its first task.
fn submission(place: &Place) -> String {
    let rows = trace(&place.newest().join("trace.txt"));
    std::fs::read_to_string(std::path::Path::new(&rows[0]["workdir"]).join(".command.run")).unwrap()
}

fn embed(place: &Place, method: &Method<'_>, more: &[&str]) -> Done {
    method.add_to(place);
    let data = demo();
    let line = ["embed", "--method", method.name, "--profile", "slurm", "--data", data.to_str().unwrap()];
    place.run(&[&line[..], more].concat())
}

#[test]
#[ignore = "backend: a method with a GPU on SLURM"]
fn backend_slurm_gives_a_gpu_to_a_method_that_needs_one() {
    let place = workspace("");
    let does = r#"print("seen", os.environ.get("CUDA_VISIBLE_DEVICES"))"#;
    let method = Method { gpu: true, does, ..Method::default() };
    embed(&place, &method, &["--keep-work"]).expect(0);
    let script = submission(&place);
    for line in ["#SBATCH --gres=gpu:1\n", "#SBATCH -t 01:00:00\n", "#SBATCH --mem 16455M\n"] {
        assert!(script.contains(line), "{line}: {script}");
    }
    let rows = trace(&place.newest().join("trace.txt"));
    let log =
        std::fs::read_to_string(std::path::Path::new(&rows[0]["workdir"]).join(".command.log")).unwrap();
    assert!(log.contains("seen 0\n"), "{log}");
    assert!(place.json(&["cost"])["totals"]["gpu_hours"].as_f64().unwrap() > 0.0);

    let cpu = Method { gpu: false, does: r#"assert "CUDA_VISIBLE_DEVICES" not in os.environ"#, ..method };
    embed(&place, &cpu, &["--keep-work"]).expect(0);
    assert!(!submission(&place).contains("--gres"), "{}", submission(&place));
}

#[test]
#[ignore = "backend: a job killed for memory on SLURM, tried again with more"]
fn backend_slurm_memory_is_raised_after_a_kill() {
    let place = workspace("");
    let profile = "[resources]\ncpus = 1\nmemory_gb = 0.15\nmemory_gb_per_100k_cells = 0\nhours = 0.5\nhours_per_100k_cells = 0\n";
    // As the kernel does in the memory group of a job: it kills the program, and the shell around it tells.
    let does = r#"
if int(os.environ["SLURM_MEM_PER_NODE"]) < 500:
    os.kill(os.getpid(), 9)
"#;
    let done = embed(&place, &Method { profile, does, ..Method::default() }, &[]);
    done.expect(0);
    let rows = trace(&place.newest().join("trace.txt"));
    let told: Vec<[&str; 3]> =
        rows.iter().map(|row| ["status", "exit", "memory"].map(|name| row[name].as_str())).collect();
    assert_eq!(
        told,
        [["FAILED", "137", "161061273"], ["FAILED", "137", "322122546"], ["COMPLETED", "0", "644245092"]]
    );
    assert!(done.stderr.contains("2 tasks failed") && done.stderr.contains("wasted"), "{}", done.stderr);
}

/// This cluster finds out by sampling, and kills the whole job: it leaves no exit code, but a line in its log.
#[test]
#[ignore = "backend: a job over its memory on SLURM"]
fn backend_slurm_memory_kill_is_explained() {
    let place = workspace("process.memory = '100 MB'");
    let does = r#"
block = bytearray(400 << 20)
for at in range(0, len(block), 4096):
    block[at] = 1
time.sleep(60)
"#;
    let done = embed(&place, &Method { does, ..Method::default() }, &[]);
    done.expect(1);
    for part in ["killed for memory", "100.0 MiB asked for", "process.memory", "--resume"] {
        assert!(done.error().contains(part), "{part}: {}", done.stderr);
    }
}

#[test]
#[ignore = "backend: a job over its time on SLURM"]
fn backend_slurm_time_limit_is_explained() {
    let place = workspace("process.time = '1 min'");
    let done = embed(&place, &Method { does: "time.sleep(300)", ..Method::default() }, &[]);
    done.expect(1);
    for part in ["exit 140", "the time limit of 1m", "process.time", "--resume"] {
        assert!(done.error().contains(part), "{part}: {}", done.stderr);
    }
    assert!(jobs(&place).is_empty(), "{:?}", jobs(&place));
}

#[test]
#[ignore = "backend: a job that somebody cancels on SLURM"]
fn backend_slurm_cancelled_job_is_explained() {
    let place = workspace("");
    Method { does: "time.sleep(300)", ..Method::default() }.add_to(&place);
    let mut command = place.command(&["embed", "--method", "mine", "--profile", "slurm", "--data"]);
    let child = command.arg(demo()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(wait_for(90, || !jobs(&place).is_empty()), "no job");
    let job = jobs(&place)[0].split(' ').next().unwrap().to_owned();
    // Before it begins, or at once thereafter: it leaves no exit code.
    assert!(Command::new("scancel").args(["--signal=KILL", "--full", &job]).status().unwrap().success());
    Command::new("scancel").arg(&job).status().unwrap();
    let done = Done::of(&child.wait_with_output().unwrap());
    done.expect(1);
    assert!(
        done.error().contains("cancelled") || done.error().contains("stopped from outside"),
        "{}",
        done.stderr
    );
}

#[test]
#[ignore = "backend: job arrays on SLURM"]
fn backend_slurm_tasks_go_as_arrays() {
    let place = workspace("profiles { slurm { process.array = 3 } }");
    let mut line = vec!["embed".to_owned(), "--method=pca".into(), "--profile=slurm".into(), "--data".into()];
    for name in ["a06_csr_int32.h5ad", "a06_csc_int64.h5ad", "a06_dense.h5ad"] {
        line.push(case(name).to_str().unwrap().to_owned());
    }
    let done = place.run(&line);
    done.expect(0);
    assert_eq!(done.stdout.lines().count(), 3, "{}", done.stdout);
    let rows = trace(&place.newest().join("trace.txt"));
    let jobs: Vec<&str> = rows.iter().map(|row| row["native_id"].split('_').next().unwrap()).collect();
    assert!(jobs.len() == 3 && jobs.iter().all(|job| *job == jobs[0]), "{rows:?}");
}

#[test]
#[ignore = "backend: 20 runs at once on SLURM"]
fn backend_slurm_twenty_runs_at_once() {
    let place = workspace("process.cpus = 1\nprocess.memory = '500 MB'");
    let data = case("a06_csr_int32.h5ad");
    let start = |number: usize| {
        let mut command =
            place.command(&["embed", "--method", "pca", "--profile", "slurm", "--quiet", "--data"]);
        command.arg(&data).arg("--outdir").arg(place.join(format!("out/{number}")));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..20).map(start).collect();
    let ended: Vec<Done> =
        children.into_iter().map(|child| Done::of(&child.wait_with_output().unwrap())).collect();
    for done in &ended {
        done.expect(0);
    }
    let runs = place.runs();
    assert_eq!(runs.len(), 20);
    assert!(runs.iter().all(|run| run["status"] == "ok"), "{runs:?}");
    let result =
        |number: usize| std::fs::read(place.join(format!("out/{number}/embeddings/pca/a06_csr_int32.h5ad")));
    let first = result(0).unwrap();
    assert!((1..20).all(|number| result(number).unwrap() == first));
    assert!(jobs(&place).is_empty());
}
