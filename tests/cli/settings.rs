//! Command line > environment > workspace > user > default, and where each value comes from.

use std::process::Command;

use serde_json::{Value, json};

use crate::world::{Ended, World, data};

/// Where results go, as `info --json` and as a plan see it.
fn outdir(world: &World, change: impl Fn(&mut Command)) -> (Value, String) {
    let mut command = world.command(&["info", "--json"]);
    change(&mut command);
    let setting = Ended::of(command).document()["settings"]["outdir"].clone();
    let mut command = world.command(&["embed", "--method", "pca", "--data", &data(), "--dry-run", "--json"]);
    change(&mut command);
    let plan = Ended::of(command).document()["plan"]["outputs"][0]["path"].as_str().unwrap().to_owned();
    assert!(plan.starts_with(setting["value"].as_str().unwrap()), "{plan} {setting}");
    (setting["value"].clone(), setting["from"].as_str().unwrap().to_owned())
}

#[test]
fn the_nearest_wins() {
    let world = World::with_workspace("none");
    assert_eq!(outdir(&world, |_| {}), (json!(world.here().join("results")), "default".to_owned()));
    world.write("home/.config/scfoundry/scfoundry.toml", "outdir = \"/user\"\n");
    assert_eq!(outdir(&world, |_| {}), (json!("/user"), "file".to_owned()));
    let elsewhere = world.write("xdg/scfoundry/scfoundry.toml", "outdir = \"/xdg\"\n");
    let config = elsewhere.parent().unwrap().parent().unwrap().to_owned();
    let xdg = |command: &mut Command| {
        command.env("XDG_CONFIG_HOME", &config);
    };
    assert_eq!(outdir(&world, xdg), (json!("/xdg"), "file".to_owned()));
    world.write("here/scfoundry.toml", "outdir = \"below\"\n");
    assert_eq!(outdir(&world, |_| {}), (json!(world.here().join("below")), "file".to_owned()));
    let environment = |command: &mut Command| {
        command.env("SCFOUNDRY_OUTDIR", "/environment");
    };
    assert_eq!(outdir(&world, environment), (json!("/environment"), "environment".to_owned()));

    let plan = world.plan(&["embed", "--method", "pca", "--data", &data(), "--outdir", "flag"]);
    let expected = world.here().join("flag/embeddings/pca/a06_csr_int32.h5ad");
    assert_eq!(plan["plan"]["outputs"][0]["path"], json!(expected));
    let mut command = world.command(&["embed", "--method", "pca", "--data", &data(), "--outdir", "/flag"]);
    environment(&mut command);
    command.args(["--dry-run", "--json"]);
    let plan = Ended::of(command).document();
    assert_eq!(plan["plan"]["outputs"][0]["path"], json!("/flag/embeddings/pca/a06_csr_int32.h5ad"));
}

#[test]
fn info_shows_where_each_value_comes_from() {
    let world = World::with_workspace("docker");
    world.write(
        "here/scfoundry.toml",
        "weights_dir = \"/weights\"\n[rates]\ncurrency = \"EUR\"\ncpu_hour = 0.04\n",
    );
    let mut command = world.command(&["info", "--effective"]);
    command.env("SCFOUNDRY_CACHE_DIR", "/cache");
    let text = Ended::of(command).succeeded().stdout;
    let line = |name: &str| {
        let found = text.lines().skip_while(|line| !line.is_empty()).find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("no {name} in:\n{text}")).to_owned()
    };
    let file = world.here().join("scfoundry.toml").display().to_string();
    assert!(line("weights_dir").contains("/weights") && line("weights_dir").contains(&file), "{text}");
    assert!(
        line("cache_dir").contains("/cache") && line("cache_dir").contains("$SCFOUNDRY_CACHE_DIR"),
        "{text}"
    );
    assert!(line("outdir").ends_with("(default)"), "{text}");
    assert!(line("gpu").ends_with("(nextflow.config)"), "{text}");
    assert!(line("rates").contains("EUR"), "{text}");
    assert!(line("keep_work").contains("false  (default)"), "{text}");
    let own = world.home().join(".local/share/scfoundry/history").display().to_string();
    assert!(line("history").contains(&own) && line("history").ends_with("(default)"), "{text}");
    world.write("here/scfoundry.toml", "history = \"lab\"\n");
    let of_file = world.json(&["info"])["settings"]["history"]["value"].clone();
    assert_eq!(of_file, json!(world.here().join("lab")));
    let mut command = world.command(&["info", "--json"]);
    command.env("SCFOUNDRY_HISTORY", "/lab");
    assert_eq!(Ended::of(command).document()["settings"]["history"]["value"], json!("/lab"));
    let mut command = world.command(&["info", "--json"]);
    command.env("SCFOUNDRY_KEEP_WORK", "true");
    let setting = Ended::of(command).document()["settings"]["keep_work"].clone();
    assert_eq!(setting, json!({ "value": true, "from": "environment", "where": "SCFOUNDRY_KEEP_WORK" }));
}

#[test]
fn the_workspace_is_named_found_above_or_here() {
    let world = World::new();
    for name in ["one", "two"] {
        world.run(&["init", name, "--runtime", "none"]).succeeded();
    }
    std::fs::create_dir_all(world.here().join("one/deep/er")).unwrap();
    let workspace = |folder: &str, variable: Option<&str>, more: &[&str]| {
        let mut command = world.command(&[&["info", "--json"], more].concat());
        command.current_dir(world.here().join(folder));
        command.envs(variable.map(|value| ("SCFOUNDRY_WORKSPACE", world.here().join(value))));
        Ended::of(command).document()["workspace"].clone()
    };
    let at = |name: &str| json!(world.here().join(name));
    assert_eq!(workspace("one/deep/er", None, &[]), at("one"));
    assert_eq!(workspace("one/deep/er", Some("two"), &[]), at("two"));
    let one = world.here().join("one");
    assert_eq!(workspace(".", Some("two"), &["--workspace", one.to_str().unwrap()]), at("one"));
    assert_eq!(world.json(&["info"])["exists"], json!(false));
}
