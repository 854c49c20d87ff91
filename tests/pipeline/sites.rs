//! What sites and users have around a run: variables, engines, disks and homes of their own.

use std::path::Path;
use std::process::Command;

use crate::place::{Done, Place, case, demo, embedding, nextflow, path_with, surround};

const RESULT: &str = "results/embeddings/pca/a06_csr_int32.h5ad";

fn embed(place: &Place) -> Command {
    let data = case("a06_csr_int32.h5ad");
    place.command(&["embed", "--method", "pca", "--data", data.to_str().unwrap()])
}

#[test]
#[ignore = "engine: runs with the variables that sites set"]
fn engine_variables_of_sites_do_no_harm() {
    let place = Place::new();
    let elsewhere = place.join("elsewhere");
    let site = place.write("site.config", "process.cpus = 1\n");
    for (name, value) in [
        ("NXF_WORK", elsewhere.to_str().unwrap()),
        ("NXF_HOME", elsewhere.to_str().unwrap()),
        ("NXF_TEMP", elsewhere.to_str().unwrap()),
        ("NXF_CACHE_DIR", elsewhere.to_str().unwrap()),
        ("NXF_CONFIG_FILE", site.to_str().unwrap()),
        ("NXF_ANSI_LOG", "true"),
        ("NXF_VER", "22.10.1"),
        ("NXF_DEFAULT_DSL", "1"),
        ("NXF_ENABLE_STRICT", "true"),
        ("NXF_PLUGINS_DEFAULT", "nf-amazon@2.0.0"),
        ("NXF_OFFLINE", "false"),
        ("NXF_OPTS", "-Xms64m -Xmx600m"),
        ("TOWER_ACCESS_TOKEN", "secret"),
        ("_JAVA_OPTIONS", "-Xmx700m"),
        ("JAVA_TOOL_OPTIONS", "-Xmx700m"),
        ("TMPDIR", elsewhere.to_str().unwrap()),
        ("HOME", "/nonexistent"),
    ] {
        let done = Done::of(&embed(&place).env(name, value).output().unwrap());
        assert_eq!(done.code, Some(0), "{name}: {}", done.stderr);
        assert_eq!(done.stdout, format!("{}\n", place.join(RESULT).display()), "{name}");
        std::fs::remove_file(place.join(RESULT)).unwrap();
        if name == "NXF_CONFIG_FILE" {
            let rows = crate::place::trace(&place.newest().join("trace.txt"));
            assert_eq!(rows[0]["cpus"], "1");
        }
    }
    let done = Done::of(&embed(&place).env("NXF_CONFIG_FILE", "/none.config").output().unwrap());
    done.expect(3);
    assert!(done.error().contains("/none.config, given by $NXF_CONFIG_FILE"), "{}", done.stderr);
}

#[test]
#[ignore = "engine: runs with Nextflow 24.10 and 25.04 of the user's, which tests/engines.sh brings, and its strict parser"]
fn engine_of_the_user_gives_the_same() {
    let variable =
        |name| std::env::var(name).unwrap_or_else(|_| panic!("set {name}, as tests/engines.sh prints it"));
    let engines = [
        (None, "v1"),
        (Some(variable("SCFOUNDRY_TEST_NEXTFLOW_PLAIN")), "v1"),
        (Some(variable("SCFOUNDRY_TEST_LINT")), "v1"),
        (Some(variable("SCFOUNDRY_TEST_LINT")), "v2"),
    ];
    let data = demo();
    let mut results = Vec::new();
    for (engine, parser) in engines {
        let place = Place::new();
        let more: Vec<&str> = engine.iter().flat_map(|engine| ["--nextflow", engine]).collect();
        let run = |line: &[&str]| {
            let mut command = place.command(&[line, &more].concat());
            let done = Done::of(&command.env("NXF_SYNTAX_PARSER", parser).output().unwrap());
            assert_eq!(done.code, Some(0), "{engine:?} {parser}: {}", done.stderr);
        };
        run(&["embed", "--method", "pca", "--data", data.to_str().unwrap()]);
        let embedded = place.join("results/embeddings/pca/pbmc_700.h5ad");
        run(&["benchmark", "--embedding", embedded.to_str().unwrap()]);
        let scores = place.join("results/benchmark/pca_leiden_ranking.csv");
        results.push((embedding(&embedded), std::fs::read(scores).unwrap()));
    }
    assert!(results.iter().all(|result| *result == results[0]), "engines differ");
}

#[test]
#[ignore = "engine: runs as a user who may write neither the home directory nor the engine's"]
fn engine_needs_no_writable_home() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root can become another user");
        return;
    }
    let place = Place::new();
    // The engine is there already: brought by somebody who may.
    nextflow(place.root(), &["-version"]).output().unwrap();
    let user = "54321";
    let owned = Command::new("chown").args(["-R", user]).arg(place.root().parent().unwrap()).status();
    assert!(owned.unwrap().success());
    let inside = embed(&place);
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
    command.arg(inside.get_program()).args(inside.get_args());
    surround(&mut command, place.root());
    command.env("HOME", "/");
    Done::of(&command.output().unwrap()).expect(0);
    assert!(place.join(RESULT).is_file());
}

#[test]
#[ignore = "engine: runs with work and results on different disks"]
fn engine_disks_may_differ() {
    let memory = Path::new("/dev/shm");
    let device = |path: &Path| rustix::fs::stat(path).unwrap().st_dev;
    let place = Place::new();
    assert_ne!(device(memory), device(place.root()), "the two are one disk");
    let other = tempfile::tempdir_in(memory).unwrap();
    let results = other.path().join("results");
    Done::of(&embed(&place).arg("--outdir").arg(&results).output().unwrap()).expect(0);
    assert!(results.join("embeddings/pca/a06_csr_int32.h5ad").is_file());

    // The whole workspace, from somewhere else.
    let workspace = other.path().join("workspace");
    place.run(&["init", workspace.to_str().unwrap(), "--runtime", "none"]).expect(0);
    Done::of(&embed(&place).arg("--workspace").arg(&workspace).output().unwrap()).expect(0);
    assert!(workspace.join(RESULT).is_file());
}

/// A wrapper, such as a cluster's module, does not say which version it starts; the engine itself does.
#[test]
#[ignore = "engine: starts an engine that only says to be old"]
fn engine_too_old_behind_a_wrapper_is_named() {
    let place = Place::new();
    let said = "#!/bin/sh\necho 'N E X T F L O W  ~  version 22.10.6'\necho 'Unknown config attribute' >&2\nexit 1\n";
    place.script("bin/nextflow", said);
    let mut command = embed(&place);
    let done = Done::of(&command.env("PATH", path_with(&place.join("bin"))).output().unwrap());
    done.expect(4);
    assert!(
        done.error().contains("nextflow 22.10.6 is too old: 24.10.0 or newer is needed"),
        "{}",
        done.stderr
    );
}
