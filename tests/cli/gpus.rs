//! Cards: who has them, which a run takes, and for whom it waits (cases D01, D03, D08).

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cards::Cards;
use crate::world::{Ended, World, case, data, read_json, record, stand_in, wait_until};

const METHOD: &str = r#"
name = "mine"
description = "Uses a GPU"
category = "zero-shot"
tasks = ["embed"]
image = "none:0"
gpu = true
cost_class = 1

[genes]
ids = "any"

[input]
counts = true

[runner]
kind = "python"
entry = "mine.py"

[embed]
"#;

/// A workspace with a method that uses a GPU, and so many idle cards.
fn world(runtime: &str, count: usize) -> (World, Cards) {
    let world = World::with_workspace(runtime);
    world.write("here/methods/mine.toml", METHOD);
    world.write("here/methods/mine.py", "");
    let cards = Cards::install(&world.root().join("bin"), world.root().join("cards"), count);
    (world, cards)
}

fn command(world: &World, more: &[&str]) -> Command {
    let data = data();
    let mut command = world.command(&[&["embed", "--method", "mine", "--data", &data], more].concat());
    command.env("SCFOUNDRY_NEXTFLOW", stand_in()).env("SCFOUNDRY_LEASE_DIR", world.root().join("leases"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(world: &World, more: &[&str]) -> Ended {
    Ended::of(command(world, more))
}

/// Starts a run whose engine works for a minute, and waits until it does.
fn busy(world: &World, gpu: &str) -> Child {
    let before = world.runs().len();
    let mut command = command(world, &["--gpu", gpu, "--run-name", &format!("on-{gpu}")]);
    let child = command.env("FAKE_SLEEP", "60").spawn().unwrap();
    wait_until("a run has begun", || world.runs().len() > before);
    // The card's file has the run's name first, and its directory a moment later.
    let run = world.here().join("runs/embed").join(format!("on-{gpu}")).display().to_string();
    wait_until("its card says so", || leases(world).iter().any(|text| text.contains(&run)));
    child
}

fn leases(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.root().join("leases")).unwrap();
    entries.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok()).collect()
}

/// Starts a run whose messages go to a file, and waits until it says that it waits.
fn waiting(world: &World, more: &[&str]) -> Child {
    let log = world.root().join("log");
    let child = command(world, more).stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    wait_until("it waits", || said(world).contains("waiting for"));
    child
}

fn said(world: &World) -> String {
    std::fs::read_to_string(world.root().join("log")).unwrap()
}

fn stop(mut child: Child, signal: Signal) {
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait().unwrap();
}

/// The cards of the newest run that is of this name.
fn taken(world: &World, name: &str) -> Vec<u64> {
    let run = world.here().join("runs/embed").join(name);
    let cards = record(&run)["cards"].as_array().unwrap().clone();
    let numbers: Vec<u64> = cards.iter().map(|card| card["index"].as_u64().unwrap()).collect();
    let text = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    assert_eq!(read_json(&run.join("params.json"))["gpu_id"], json!(text));
    let config = std::fs::read_to_string(run.join("nextflow.config")).unwrap();
    assert!(config.contains(&format!("CUDA_VISIBLE_DEVICES={text}")), "{config}");
    numbers
}

fn gpus(world: &World, more: &[&str]) -> Command {
    let mut command = world.command(&[&["gpus"], more].concat());
    command.env("SCFOUNDRY_LEASE_DIR", world.root().join("leases"));
    command
}

/// A process that is nobody's task.
struct Stranger(Child);

impl Stranger {
    fn on(cards: &Cards, card: u32, mebibytes: u32) -> Stranger {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        cards.set(&format!("{card}/pids/{}", child.id()), &mebibytes.to_string());
        Stranger(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn cards_are_listed_with_who_has_them() {
    let (world, cards) = world("none", 4);
    let stranger = Stranger::on(&cards, 1, 2000);
    cards.set("2/mig", "");
    let holder = busy(&world, "3");
    let text = Ended::of(gpus(&world, &[])).succeeded().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].contains("NVIDIA Example") && lines[1].contains(" free "), "{text}");
    assert!(lines[2].contains(&format!("in use   pid {} python3 (", stranger.pid())), "{text}");
    assert!(lines[3].contains("divided into parts (MIG)"), "{text}");
    assert!(lines[4].contains(&format!("held     run on-3 (pid {}, ", holder.id())), "{text}");

    let mut command = gpus(&world, &["--json"]);
    command.env("CUDA_VISIBLE_DEVICES", "1,3");
    let found = Ended::of(command).document();
    let column = |name: &str| -> Vec<Value> {
        found["gpus"].as_array().unwrap().iter().map(|card| card[name].clone()).collect()
    };
    assert_eq!(column("standing"), [json!("hidden"), json!("in use"), json!("hidden"), json!("held")]);
    assert_eq!(column("used_bytes")[1], json!(2001 * 1024 * 1024));
    assert_eq!(column("holder")[3]["pid"], json!(holder.id()));
    assert_eq!(column("holder")[3]["run"], json!(world.here().join("runs/embed/on-3")));
    stop(holder, Signal::TERM);
    assert!(Ended::of(gpus(&world, &[])).succeeded().stdout.lines().last().unwrap().contains(" free "));
}

#[test]
fn no_card_to_be_seen_is_told() {
    let (world, cards) = world("none", 1);
    for (mode, reason) in [
        ("nodriver", "couldn't communicate with the NVIDIA driver"),
        ("nodevices", "No devices were found"),
        ("garbage", "says what cannot be read: ?? not csv at all"),
    ] {
        cards.set("mode", mode);
        Ended::of(gpus(&world, &[])).refused(4, &["no NVIDIA GPU is to be seen here", reason]);
    }
    cards.set("mode", "old");
    assert!(Ended::of(gpus(&world, &[])).succeeded().stdout.contains(" free "));
    std::fs::remove_file(world.root().join("bin/nvidia-smi")).unwrap();
    Ended::of(gpus(&world, &[])).refused(4, &["nvidia-smi was not found in PATH"]);
    let ended = Ended::of(gpus(&world, &["--json"]));
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &document["gpus"]), (Some(4), &json!([])));
    assert_eq!(document["problem"], json!("nvidia-smi was not found in PATH"));
}

#[test]
fn auto_takes_the_free_card_with_most_memory() {
    let (world, cards) = world("none", 4);
    cards.set("0/used", "900");
    cards.set("2/used", "1100");
    let _stranger = Stranger::on(&cards, 3, 10);
    let ended = run(&world, &["--gpu", "auto", "--run-name", "a"]).succeeded();
    assert!(ended.stderr.contains("GPU 1: NVIDIA Example, 8.0 GiB free\n"), "{ended:?}");
    assert_eq!(taken(&world, "a"), [1]);
    let uuid = "GPU-00000000-0000-0000-0000-000000000001";
    assert_eq!(
        record(&world.only_run())["cards"][0],
        json!({"index": 1, "uuid": uuid, "name": "NVIDIA Example"})
    );
    let holder = busy(&world, "1");
    run(&world, &["--gpu", "auto", "--run-name", "b"]).succeeded();
    assert_eq!(taken(&world, "b"), [0]);
    stop(holder, Signal::TERM);
    run(&world, &["--gpu", "GPU-00000000-0000-0000-0000-000000000002,0", "--run-name", "c"]).succeeded();
    assert_eq!(taken(&world, "c"), [2, 0]);
    // The workspace's choice is as good as a typed one.
    let config = world.here().join("nextflow.config");
    let text = std::fs::read_to_string(&config).unwrap().replace("gpu_id = '0'", "gpu_id = 'auto'");
    std::fs::write(&config, text).unwrap();
    run(&world, &["--run-name", "d"]).succeeded();
    assert_eq!(taken(&world, "d"), [1]);
}

#[test]
fn a_killed_holder_frees_its_card_at_once() {
    let (world, _cards) = world("none", 1);
    for gpu in ["auto", "0"] {
        let holder = busy(&world, "0");
        let runs = world.runs().len();
        let name = format!("next-{gpu}");
        let next = waiting(&world, &["--gpu", gpu, "--run-name", &name]);
        let (pid, line) = (holder.id(), said(&world));
        assert!(line.contains("held by run on-0") && line.contains(&format!("(pid {pid}, ")), "{line}");
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!((world.runs().len(), said(&world).lines().count()), (runs, 1), "{}", said(&world));
        stop(holder, Signal::KILL);
        let freed = Instant::now();
        wait_until("the next one has it", || world.runs().len() > runs);
        assert!(freed.elapsed() < Duration::from_secs(5), "{:?}", freed.elapsed());
        let ended = Ended::from(next.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", said(&world));
        assert_eq!(taken(&world, &name), [0]);
    }
}

#[test]
fn waiting_can_be_stopped_and_leaves_nothing() {
    let (world, cards) = world("none", 1);
    let stranger = Stranger::on(&cards, 0, 10);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let child = waiting(&world, &["--gpu", "auto"]);
        let line = format!("waiting for a free GPU: 0 is in use by pid {} python3 (", stranger.pid());
        assert!(said(&world).contains(&line), "{}", said(&world));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(code));
        assert!(said(&world).contains("error: stopped while waiting for a GPU"), "{}", said(&world));
        assert_eq!(world.runs().len(), 0);
    }
    // It goes on when the stranger has gone.
    let child = waiting(&world, &["--gpu", "auto", "--run-name", "after"]);
    drop(stranger);
    assert_eq!(Ended::from(child.wait_with_output().unwrap()).code, Some(0), "{}", said(&world));
    assert_eq!(taken(&world, "after"), [0]);
}

#[test]
fn a_named_card_that_strangers_use_is_taken_with_a_warning() {
    let (world, cards) = world("none", 2);
    let stranger = Stranger::on(&cards, 1, 3072);
    let ended = run(&world, &["--gpu", "1", "--run-name", "a"]).succeeded();
    let warning = format!(
        "warning: GPU 1 is in use by others too, as it was named it is taken: pid {}",
        stranger.pid()
    );
    assert!(ended.stderr.contains(&warning) && ended.stderr.contains("3.0 GiB)"), "{ended:?}");
    assert_eq!(taken(&world, "a"), [1]);
    let quiet = run(&world, &["--gpu", "0"]).succeeded();
    assert!(!quiet.stderr.contains("GPU"), "{quiet:?}");
}

#[test]
fn several_cards_are_taken_all_or_none() {
    let (world, _cards) = world("none", 3);
    let holder = busy(&world, "1");
    let both = waiting(&world, &["--gpu", "1,0", "--run-name", "both"]);
    assert!(said(&world).contains("waiting for GPU 1, which is held by run on-1"), "{}", said(&world));
    // It holds neither meanwhile.
    run(&world, &["--gpu", "0", "--run-name", "zero"]).succeeded();
    stop(holder, Signal::TERM);
    assert_eq!(Ended::from(both.wait_with_output().unwrap()).code, Some(0), "{}", said(&world));
    assert_eq!(taken(&world, "both"), [1, 0]);
    // Two that want the same cards in another order both get them.
    let pair =
        ["1,2", "2,1"].map(|gpu| command(&world, &["--gpu", gpu]).env("FAKE_SLEEP", "1").spawn().unwrap());
    for child in pair {
        assert_eq!(Ended::from(child.wait_with_output().unwrap()).code, Some(0));
    }
}

#[test]
fn without_nvidia_smi_numbers_go_on_and_auto_does_not() {
    let (world, cards) = world("docker", 1);
    world.script("bin/docker", "#!/bin/sh\nexit 0\n");
    cards.set("mode", "nodevices");
    let ended = run(&world, &["--gpu", "5", "--run-name", "a"]).succeeded();
    let note =
        "GPU 5 is passed on as it is, since no card is to be seen: nvidia-smi fails: No devices were found\n";
    assert!(ended.stderr.contains(note), "{ended:?}");
    assert_eq!(record(&world.only_run())["cards"][0]["index"], json!(5));
    assert!(!world.root().join("leases").exists());
    let words = ["there is no GPU for mine", "No devices were found", "--gpu none"];
    run(&world, &["--gpu", "auto"]).refused(4, &words);
    run(&world, &["--gpu", "GPU-1234"]).refused(4, &["GPU GPU-1234 cannot be found", "by its number"]);
    // By itself a method can do without, if slowly; the cards are hidden from it.
    world.run(&["init", "--runtime", "none", "--force"]).succeeded();
    let ended = run(&world, &["--gpu", "auto", "--run-name", "b"]).succeeded();
    assert!(ended.stderr.contains("warning: there is no GPU for mine, which may be very slow"), "{ended:?}");
    assert_eq!(taken(&world, "b"), [0; 0]);
    // A tool that answers nonsense may hide cards: they are reserved by number.
    cards.set("mode", "garbage");
    let ended = run(&world, &["--gpu", "0", "--run-name", "c"]).succeeded();
    assert!(ended.stderr.contains("since no card is to be seen: nvidia-smi says what"), "{ended:?}");
    assert!(world.root().join("leases/index-0").exists());
    std::fs::remove_file(world.root().join("bin/nvidia-smi")).unwrap();
    let ended = run(&world, &["--gpu", "0"]).succeeded();
    assert!(
        ended.stderr.contains("since no card is to be seen: nvidia-smi was not found in PATH"),
        "{ended:?}"
    );
}

#[test]
fn nothing_is_taken_where_nothing_computes_on_a_card() {
    let (world, cards) = world("none", 2);
    let embed = |method: &str, more: &[&str]| {
        let data = data();
        let mut command = world.command(&[&["embed", "--method", method, "--data", &data], more].concat());
        command.env("SCFOUNDRY_NEXTFLOW", stand_in()).env("SCFOUNDRY_LEASE_DIR", world.root().join("leases"));
        Ended::of(command).succeeded()
    };
    embed("pca", &["--gpu", "0"]);
    embed("mine", &["--gpu", "none"]);
    embed("mine", &["--gpu", "0", "--dry-run"]);
    embed("mine", &["--gpu", "auto", "--", "-preview"]);
    embed("mine", &["--gpu", "auto", "--", "-stub-run"]);
    world.script("bin/sbatch", "#!/bin/sh\n");
    embed("mine", &["--gpu", "auto", "--profile", "slurm"]);
    assert_eq!(cards.calls(), 0);
    // A dry run looks, and takes nothing.
    cards.set("0/used", "2000");
    let plan = embed("mine", &["--gpu", "auto", "--dry-run"]).stdout;
    assert!(plan.contains(", GPU 1 (auto)\n") && plan.contains("export CUDA_VISIBLE_DEVICES=1 "), "{plan}");
    cards.set("1/used", "2000");
    let ended = embed("mine", &["--gpu", "auto", "--dry-run"]);
    assert!(
        ended.stderr.contains("no GPU is free now, so it would wait: 0 is in use by 2.0 GiB"),
        "{ended:?}"
    );
    assert!(!world.root().join("leases").exists());
}

#[test]
fn what_the_environment_leaves_is_respected() {
    let (world, _cards) = world("none", 3);
    let with = |visible: &str, more: &[&str]| {
        let mut command = command(&world, more);
        command.env("CUDA_VISIBLE_DEVICES", visible);
        Ended::of(command)
    };
    with("2", &["--gpu", "auto", "--run-name", "a"]).succeeded();
    assert_eq!(taken(&world, "a"), [2]);
    with("2", &["--gpu", "0"])
        .refused(4, &["CUDA_VISIBLE_DEVICES=2 leaves out GPU 0", "--gpu is 0", "--gpu auto"]);
    // What the workspace says gives way.
    let ended = with("1", &["--run-name", "b"]).succeeded();
    assert!(
        ended.stderr.contains("warning: CUDA_VISIBLE_DEVICES=1 leaves out GPU 0, which params.gpu_id"),
        "{ended:?}"
    );
    assert_eq!(taken(&world, "b"), [1]);
    let ended = with("", &["--gpu", "auto", "--run-name", "c"]).succeeded();
    assert!(ended.stderr.contains("CUDA_VISIBLE_DEVICES= leaves no card"), "{ended:?}");
    assert_eq!(taken(&world, "c"), [0; 0]);
    with("0", &["--gpu", "7"]).refused(4, &["there is no GPU 7 here", "nvidia-smi shows 0, 1, 2"]);
}

#[test]
fn where_there_are_several_cards_a_new_workspace_shares_them() {
    for (count, choice) in [(1, "'0'"), (2, "'auto'")] {
        let world = World::new();
        Cards::install(&world.root().join("bin"), world.root().join("cards"), count);
        world.run(&["init"]).succeeded();
        let text = std::fs::read_to_string(world.here().join("nextflow.config")).unwrap();
        assert!(text.contains(&format!("gpu_id = {choice}\n")), "{text}");
        world.run(&["init", "--force", "--gpu-id", "auto"]).succeeded();
        let text = std::fs::read_to_string(world.here().join("nextflow.config")).unwrap();
        assert!(text.contains("gpu_id = 'auto'\n"), "{text}");
    }
}

#[test]
fn tasks_side_by_side_get_a_card_each() {
    let world = World::with_workspace("docker");
    if !std::path::Path::new("/usr/bin/flock").exists() {
        return;
    }
    std::os::unix::fs::symlink("/usr/bin/flock", world.root().join("bin/flock")).unwrap();
    let files = ["a06_csr_int32.h5ad", "a06_csc_int64.h5ad"].map(case);
    let stage = |more: &[&str]| {
        let plan = world.plan(&[&["embed", "--method", "scgpt"], more].concat());
        plan["plan"]["stages"][0].clone()
    };
    let options = |stage: &Value| stage["container_options"].as_str().unwrap().to_owned();
    let both = stage(&["--data", &files[0], &files[1], "--gpu", "0,1"]);
    assert!(options(&both).ends_with("--gpus device=$SCFOUNDRY_CARD"), "{both}");
    assert!(both["before_script"].as_str().unwrap().contains("for card in 0 1; do"), "{both}");
    // A task by itself has both, and several tasks on one card take turns.
    let alone = stage(&["--data", &files[0], "--gpu", "0,1"]);
    assert!(
        options(&alone).ends_with("--gpus '\"device=0,1\"'") && alone["before_script"].is_null(),
        "{alone}"
    );
    let turns = stage(&["--data", &files[0], &files[1], "--gpu", "1"]);
    assert!(options(&turns).ends_with("--gpus device=1") && turns["max_forks"] == 1, "{turns}");
}
