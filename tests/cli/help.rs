//! Help texts, lists and plans as a user sees them.

use crate::world::{World, data};

const COMMANDS: [&str; 18] = [
    "init",
    "doctor",
    "info",
    "gpus",
    "list",
    "download",
    "check",
    "embed",
    "transfer",
    "finetune",
    "benchmark",
    "geometry",
    "estimate",
    "runs",
    "top",
    "cost",
    "clean",
    "completions",
];

/// The version, times and the number of cores.
fn filtered(name: &str, text: &str) {
    let filters = [(r"\d{8}-\d{6}", "[TIME]"), (r"cpus = \d+", "cpus = [CORES]")];
    insta::with_settings!({ filters => filters, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn the_help_of_the_program() {
    let world = World::new();
    for option in ["-h", "--help"] {
        filtered(&format!("program{option}"), &world.masked(&world.run(&[option]).succeeded().stdout));
    }
}

#[test]
fn the_help_of_every_command() {
    let world = World::new();
    let overview = world.run(&["-h"]).succeeded().stdout;
    for command in COMMANDS {
        assert!(overview.contains(&format!("\n  {command} ")), "{command} is not in the overview");
        for option in ["-h", "--help"] {
            let text = world.run(&[command, option]).succeeded().stdout;
            filtered(&format!("{command}{option}"), &world.masked(&text));
        }
    }
    for what in ["methods", "tasks"] {
        filtered(&format!("list-{what}--help"), &world.run(&["list", what, "--help"]).succeeded().stdout);
    }
}

#[test]
fn no_command_is_missing_here() {
    let overview = World::new().run(&["-h"]).succeeded().stdout;
    let listed = overview.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names: Vec<&str> = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names, [&COMMANDS[..], &["help"]].concat());
}

#[test]
fn the_version() {
    let text = World::new().run(&["--version"]).succeeded().stdout;
    assert_eq!(text, format!("scfoundry {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_lists() {
    let world = World::new();
    for what in ["methods", "tasks"] {
        filtered(&format!("list-{what}"), &world.run(&["list", what]).succeeded().stdout);
    }
    let finetune = world.run(&["list", "methods", "--task", "finetune"]).succeeded().stdout;
    filtered("list-methods-finetune", &finetune);
}

#[test]
fn the_plans() {
    let world = World::with_workspace("docker");
    let data = data();
    for (name, more) in [("pca", &[][..]), ("scgpt", &["--gpu", "0,1"])] {
        let line = ["embed", "--method", name, "--data", &data, "--dry-run"];
        let ended = world.run(&[&line, more].concat()).succeeded();
        assert_eq!(ended.stderr, "");
        filtered(&format!("plan-{name}"), &world.masked(&ended.stdout));
    }
}

#[test]
fn completions_for_every_shell() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = world.run(&["completions", shell]).succeeded().stdout;
        for word in ["scfoundry", "embed", "--batch-size", "completions"] {
            let found = text.contains(word) || text.contains(word.trim_start_matches("--"));
            assert!(found, "no {word} for {shell}");
        }
        assert!(!text.contains("kernel"), "the hidden command is offered in {shell}");
    }
    // What the shells make of it is theirs; that it is a script can be asked.
    let path = world.write("completion.bash", &world.run(&["completions", "bash"]).stdout);
    assert!(std::process::Command::new("bash").arg("-n").arg(path).status().unwrap().success());
    world.refuses(&["completions", "tcsh"], 2, &["tcsh", "bash"]);
}
