//! Methods of a workspace's own, to be run where models run.

use crate::place::Place;

/// A method of the workspace.
pub struct Method<'a> {
    pub name: &'a str,
    pub image: &'a str,
    pub gpu: bool,
    /// Further lines of its profile.
    pub profile: &'a str,
    /// What its runner does in Python before it gives back its input as the embedding. `spec` is its specification.
    pub does: &'a str,
}

impl Default for Method<'_> {
    fn default() -> Self {
        Method { name: "mine", image: "none:0", gpu: false, profile: "", does: "pass" }
    }
}

impl Method<'_> {
    /// Writes its profile and its runner into the workspace.
    pub fn add_to(&self, place: &Place) {
        let Method { name, image, gpu, profile, does } = self;
        place.write(
            &format!("methods/{name}.toml"),
            &format!(
                r#"
name = "{name}"
description = "Gives back its input"
category = "zero-shot"
tasks = ["embed"]
image = "{image}"
gpu = {gpu}
cost_class = 1

[genes]
ids = "any"

[input]
counts = true

[runner]
kind = "python"
entry = "{name}.py"

[embed]
batch = {{ parameter = "batch_size", default = 8 }}
{profile}
"#
            ),
        );
        place.write(
            &format!("methods/{name}.py"),
            &format!(
                r#"
import json, os, shutil, sys, time
spec = json.load(open(sys.argv[sys.argv.index("--spec") + 1]))
{does}
shutil.copy(spec["data"], spec["output"])
with open("usage.json", "w") as file:
    device = "card" if os.environ.get("CUDA_VISIBLE_DEVICES") else "cpu"
    json.dump({{"kind": "runner", "cells": 700, "device": device, "batch_size_used": spec["batch_size"]}}, file)
"#
            ),
        );
    }
}
