//! `--batch-size auto`: from runs like it where there are any, else by trial; the plan says which.

use serde_json::{Value, json};

use crate::cards::Cards;
use crate::world::{Ended, World, data, read_json, stand_in};

const METHOD: &str = r#"
name = "mine"
description = "Takes 96 MiB of a card for each cell, and 512 MiB"
category = "zero-shot"
tasks = ["embed", "transfer"]
image = "none:0"
gpu = true
cost_class = 1
genes = { ids = "any" }
input = { counts = true }
runner = { kind = "python", entry = "mine.py" }
embed = { batch = { parameter = "batch_size", default = 64 } }

[[parameters]]
name = "max_len"
default = 1200
tasks = ["embed", "transfer"]
help = "Genes of a cell"
"#;

/// A workspace with the method and one idle card of 8 GiB.
fn world() -> (World, Cards) {
    let world = World::with_workspace("none");
    world.write("here/methods/mine.toml", METHOD);
    world.write("here/methods/mine.py", "");
    let cards = Cards::install(&world.root().join("bin"), world.root().join("cards"), 1);
    (world, cards)
}

/// Puts a run into the history that held batches of this size.
fn remember(world: &World, name: &str, batch: u64, change: impl Fn(&mut Value)) {
    let mut entry = json!({
        "schema": 1,
        "task": "embed",
        "method": "mine",
        "options": { "batch_size": batch, "max_len": 1200 },
        "inputs": [{ "role": "data", "cells": 5000, "genes": 100, "stored": 200_000, "bytes": 1 }],
        "wall_seconds": 60.0,
        "steps": [{
            "process": "EMBED",
            "input": 0,
            "seconds": 50.0,
            "peak_gpu_bytes": (512 + 96 * batch) << 20,
            "card_bytes": 8192_u64 << 20,
            "batch_size_asked": batch,
            "batch_size_used": batch,
            "halvings": 0,
            "device": "NVIDIA Example",
        }],
        "machine": { "host": "elsewhere", "cpu": "x", "threads": 99 },
        "runtime": "none",
        "executor": "local",
    });
    change(&mut entry);
    world.write(&format!("home/.local/share/scfoundry/history/{name}.json"), &entry.to_string());
}

/// What the plan says of the batch size, with the number that tasks are given.
fn planned(world: &World, more: &[&str]) -> (Value, Value) {
    let data = data();
    let line = ["embed", "--method", "mine", "--data", &data, "--batch-size", "auto", "--gpu", "0"];
    let plan = world.plan(&[&line[..], more].concat())["plan"].clone();
    assert_eq!(plan["parameters"]["batch_size"], "auto");
    let decided = plan["parameters"]["decided"]["batch_size"].clone();
    (plan["batch"].clone(), decided)
}

#[test]
fn without_a_history_it_is_found_by_trial() {
    let (world, _cards) = world();
    let (batch, decided) = planned(&world, &[]);
    assert_eq!((&batch["source"], &batch["size"], &decided), (&json!("trial"), &Value::Null, &Value::Null));
    let line = ["embed", "--method", "mine", "--data", &data(), "--batch-size", "auto", "--dry-run"];
    let text = |more: &[&str]| world.run(&[&line[..], more].concat()).succeeded().stdout;
    assert!(text(&["--gpu", "0"]).contains("Batch size  found by trial on the first cells\n"));
    let none = text(&["--gpu", "none"]);
    assert!(none.contains("Batch size  64, the method's usual one, since no GPU is used\n"), "{none}");
    assert!(
        !world
            .run(&["embed", "--method", "mine", "--data", &data(), "--dry-run"])
            .stdout
            .contains("Batch size")
    );
}

#[test]
fn the_largest_that_runs_like_it_say_will_fit_is_taken() {
    let (world, cards) = world();
    remember(&world, "a", 16, |_| {});
    remember(&world, "b", 32, |entry| entry["task"] = json!("transfer"));
    // Another method, other options, another card, and batches that were never full.
    remember(&world, "method", 1, |entry| entry["method"] = json!("scgpt"));
    remember(&world, "length", 2, |entry| entry["options"]["max_len"] = json!(600));
    remember(&world, "card", 3, |entry| entry["steps"][0]["card_bytes"] = json!(80_u64 << 30));
    remember(&world, "unknown", 4, |entry| entry["steps"][0]["card_bytes"] = Value::Null);
    remember(&world, "few", 512, |entry| entry["inputs"][0]["cells"] = json!(10));
    let (batch, decided) = planned(&world, &[]);
    // Nine tenths of 8,191 MiB, less 512, by 96.
    assert_eq!((&batch["size"], &decided), (&json!(71), &json!(71)), "{batch}");
    assert_eq!(
        (&batch["source"], &batch["runs"], &batch["halved"]),
        (&json!("history"), &json!(2), &json!(false))
    );
    cards.set("0/used", "4096");
    assert_eq!(planned(&world, &[]).1, 33, "what others hold is not free");
    cards.set("0/used", "1");
    assert_eq!(planned(&world, &["--max_len", "900"]).0["source"], "trial");
    let line = ["embed", "--method", "mine", "--data", &data(), "--gpu", "0", "--dry-run", "--batch-size"];
    let text = world.run(&[&line[..], &["auto"]].concat()).succeeded().stdout;
    assert!(text.contains("Batch size  71, from 2 runs like it\n"), "{text}");
    let number = world.run(&[&line[..], &["500", "--json"]].concat()).document();
    assert!(number["plan"]["batch"].is_null() && number["plan"]["parameters"]["batch_size"] == 500);
}

#[test]
fn it_is_never_above_what_held_in_a_run_that_was_halved() {
    let (world, _cards) = world();
    let halved = |entry: &mut Value| {
        entry["steps"][0]["halvings"] = json!(1);
        entry["steps"][0]["peak_gpu_bytes"] = json!(8000_u64 << 20);
    };
    remember(&world, "halved", 24, halved);
    assert_eq!(planned(&world, &[]).0["size"], 24, "it has held on such a card");
    remember(&world, "a", 8, |_| {});
    remember(&world, "b", 16, |_| {});
    let (batch, decided) = planned(&world, &[]);
    assert_eq!((&decided, &batch["runs"], &batch["halved"]), (&json!(24), &json!(3), &json!(true)));
    let line = ["embed", "--method", "mine", "--data", &data(), "--gpu", "0", "--batch-size", "auto"];
    let text = world.run(&[&line[..], &["--dry-run"]].concat()).succeeded().stdout;
    assert!(text.contains("24, from 3 runs like it, in which larger ones ran out of memory\n"), "{text}");
}

#[test]
fn a_run_is_given_the_number_and_says_it_and_one_that_goes_on_from_it_keeps_it() {
    let (world, _cards) = world();
    remember(&world, "a", 16, |_| {});
    remember(&world, "b", 32, |_| {});
    let data = data();
    let line = ["embed", "--method", "mine", "--data", &data, "--gpu", "0", "--batch-size", "auto"];
    let mut command = world.command(&[&line[..], &["--run-name", "one"]].concat());
    command.env("SCFOUNDRY_NEXTFLOW", stand_in()).env("SCFOUNDRY_LEASE_DIR", world.root().join("leases"));
    let ended = Ended::of(command);
    assert!(ended.stderr.contains("batch size: 71, from 2 runs like it\n"), "{ended:?}");
    let parameters = read_json(&world.here().join("runs/embed/one/params.json"));
    assert_eq!(parameters["decided"], json!({ "batch_size": 71 }));
    assert_eq!(parameters["batch_size"], "auto");
    remember(&world, "halved", 24, |entry| entry["steps"][0]["halvings"] = json!(2));
    assert_eq!(planned(&world, &[]).1, 24);
    let (batch, decided) = planned(&world, &["--resume", "one"]);
    assert_eq!(
        (&batch["source"], &decided),
        (&json!("resumed"), &json!(71)),
        "its tasks would not be the same"
    );
}
