//! What is foretold from a history, what is not, and what a limit refuses.

use serde_json::{Value, json};

use crate::world::{World, case};

/// A run that took 2 s and 10 ms for each cell, and 100 MiB and 10 KiB for each cell.
fn entry(method: &str, cells: u64, more: impl Fn(&mut Value)) -> String {
    let bytes = (100_u64 << 20) + cells * 10_240;
    let mut entry = json!({
        "schema": 1,
        "task": "embed",
        "method": method,
        "options": { "pca_n_top_genes": 2000, "pca_n_comps": 50 },
        "inputs": [{ "role": "data", "cells": cells, "genes": 100, "stored": cells * 40, "bytes": 1 }],
        "wall_seconds": 5.0 + 0.01 * cells as f64,
        "steps": [{
            "process": "EMBED",
            "input": 0,
            "seconds": 2.0 + 0.01 * cells as f64,
            "peak_rss_bytes": bytes,
        }],
        "machine": { "host": "elsewhere", "cpu": "x", "threads": 99 },
        "runtime": "none",
        "executor": "local",
    });
    more(&mut entry);
    entry.to_string()
}

fn remember(world: &World, name: &str, text: &str) {
    world.write(&format!("home/.local/share/scfoundry/history/{name}.json"), text);
}

/// The one estimate of `embed` with this method.
fn estimate(world: &World, method: &str) -> Value {
    let data = case("a06_csr_int32.h5ad");
    let document = world.json(&["estimate", "--method", method, "--data", &data]);
    document["estimates"][0].clone()
}

#[test]
fn runs_like_it_foretell_a_run() {
    let world = World::with_workspace("none");
    let unknown = estimate(&world, "pca");
    assert_eq!((&unknown["seconds"], &unknown["basis"]), (&Value::Null, &Value::Null));
    assert_eq!(unknown["unmeasured"], json!(["EMBED"]));
    for (number, cells) in [1000, 2000, 4000, 8000].into_iter().enumerate() {
        remember(&world, &format!("run{number}"), &entry("pca", cells, |_| {}));
    }
    // Neither another method nor other options are like it, and what cannot be read is said once.
    remember(&world, "other", &entry("scgpt", 1000, |entry| entry["steps"][0]["seconds"] = json!(1e6)));
    let dims = |entry: &mut Value| entry["options"]["pca_n_comps"] = json!(10);
    remember(&world, "dims", &entry("pca", 1000, dims));
    remember(&world, "damaged", "{");
    let known = estimate(&world, "pca");
    assert_eq!(known["basis"]["runs"], 4);
    assert_eq!(known["basis"]["this_machine"], false);
    let middle = |name: &str| known[name]["middle"].as_f64().unwrap();
    // The file has 80 cells. Time grows with the values that are stored, of which the entries have 40 for a cell.
    assert!((middle("peak_rss_bytes") / ((100 << 20) as f64 + 80.0 * 10_240.0) - 1.0).abs() < 0.2, "{known}");
    assert!(middle("seconds") > 2.0 && middle("seconds") < 4.0, "{known}");
    let table =
        world.run(&["estimate", "--method", "pca,uce", "--data", &case("a06_csr_int32.h5ad")]).succeeded();
    assert!(table.stdout.contains("4 runs of 1000 to 8000 cells on other machines"), "{table:?}");
    assert!(table.stdout.contains("no measurement yet"), "{table:?}");
    assert!(table.stderr.contains("order of cost, not measured: pca, then uce"), "{table:?}");
    assert!(table.stderr.contains("history/damaged.json"), "{table:?}");
}

#[test]
fn a_limit_is_a_promise() {
    let world = World::with_workspace("none");
    let data = case("a06_csr_int32.h5ad");
    let line = ["embed", "--method", "pca", "--data", &data];
    world.refuses(
        &[&line[..], &["--max-hours", "1"]].concat(),
        3,
        &["--max-hours", "never measured", "estimate"],
    );
    for (number, cells) in [1000, 2000, 4000].into_iter().enumerate() {
        remember(&world, &format!("run{number}"), &entry("pca", cells, |_| {}));
    }
    let refused = ["--max-hours 0.001 may not be enough", "3 runs of 1000 to 4000 cells"];
    world.refuses(&[&line[..], &["--max-hours", "0.001"]].concat(), 3, &refused);
    assert!(!world.here().join("runs/embed").exists(), "something was started");
    let run = world.run_stand_in(&[&line[..], &["--max-hours", "1", "--max-gpu-memory", "1G"]].concat());
    assert!(!run.stderr.contains("--max"), "{run:?}");
    for (option, value) in [("--max-hours", "-1"), ("--max-hours", "soon"), ("--max-gpu-memory", "much")] {
        world.refuses(&[&line[..], &[&format!("{option}={value}")]].concat(), 2, &[option, value]);
    }
}

#[test]
fn the_options_are_those_of_the_task() {
    let world = World::with_workspace("none");
    let data = case("a06_csr_int32.h5ad");
    world.refuses(&["estimate", "--method", "pcaa", "--data", &data], 2, &["did you mean \"pca\"?"]);
    world.refuses(&["estimate", "--method", "pca", "--data", "nowhere.h5ad"], 3, &["nowhere.h5ad"]);
    world.refuses(
        &["estimate", "--method", "pca", "--data", &data, "--pca_n_comps", "0"],
        2,
        &["at least 1"],
    );
    world.refuses(&["estimate", "--task", "embed", "--data", &data], 2, &["--method"]);
    let all = world.run(&["estimate", "--task", "check", "--data", &data, "--method", "pca"]).succeeded();
    assert!(all.stderr.contains("CHECK"), "{all:?}");
}
