//! A workspace whose engine is a script that does its work.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::world::{Ended, World, case};

/// An engine that does its work: one task, its trace, its cache, its result. `$FAKE_ROW` is what became of the task.
const ENGINE: &str = r#"#!/bin/sh
case "$1" in -version) echo "nextflow version 25.04.2.5947"; exit 0;; esac
cache=${NXF_CACHE_DIR:-.nextflow}
mkdir -p "$cache/cache/session" outputs/embeddings/pca
[ -f "$cache/history" ] || printf 'now\t1s\tname\tOK\tabc\t%s\tcommand\n' "session" > "$cache/history"
work=$(sed -n "s/^workDir = '\(.*\)'$/\1/p" nextflow.config)
mkdir -p "$work/ab/123456"
echo '{"kind": "kernel", "cells": 80}' > "$work/ab/123456/usage.json"
echo "$FAKE_LOG" > "$work/ab/123456/.command.log"
[ "$FAKE_ROW" = none ] || printf 'task_id\thash\tname\tstatus\texit\trealtime\tworkdir\n1\tab/123456\tEMBED (x)\t%s\t1s\t%s\n' \
    "${FAKE_ROW:-COMPLETED	0}" "$work/ab/123456" > trace.txt
[ "$FAKE_RESULT" = none ] || echo "${FAKE_RESULT:-embedded}" > outputs/embeddings/pca/a06_csr_int32.h5ad
echo leftover > outputs/other
exit "${FAKE_RC:-0}"
"#;

/// A workspace whose engine is the one above.
pub struct Works {
    pub world: World,
    engine: PathBuf,
    /// The data set that is embedded.
    pub data: PathBuf,
}

impl Works {
    pub fn new() -> Works {
        let world = World::with_workspace("none");
        for tool in ["mkdir", "sed"] {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            symlink(found.iter().find(|path| path.exists()).unwrap(), world.root().join("bin").join(tool))
                .unwrap();
        }
        let engine = world.script("engine", ENGINE);
        let data = world.here().join("a06_csr_int32.h5ad");
        std::fs::copy(case("a06_csr_int32.h5ad"), &data).unwrap();
        Works { world, engine, data }
    }

    pub fn command(&self, name: &str, more: &[&str]) -> Command {
        let data = self.data.to_str().unwrap();
        let start = ["embed", "--method", "pca", "--data", data, "--run-name", name];
        let mut command = self.world.command(&[&start[..], more].concat());
        command.env("SCFOUNDRY_NEXTFLOW", &self.engine);
        command
    }

    pub fn run(&self, name: &str, more: &[&str]) -> Ended {
        Ended::of(self.command(name, more))
    }

    pub fn directory(&self, name: &str) -> PathBuf {
        self.world.here().join("runs/embed").join(name)
    }

    /// Which of its parts that only serve the tasks a run has.
    pub fn served(&self, name: &str) -> Vec<&'static str> {
        let run = self.directory(name);
        ["work", ".nextflow/cache", "outputs"].into_iter().filter(|part| run.join(part).exists()).collect()
    }

    /// The result of every run.
    pub fn result(&self) -> PathBuf {
        self.world.here().join("results/embeddings/pca/a06_csr_int32.h5ad")
    }

    /// A run whose task fails.
    pub fn fail(&self, name: &str, more: &[&str]) {
        let mut command = self.command(name, more);
        command.env("FAKE_ROW", "FAILED\t1").env("FAKE_RESULT", "none");
        let ended = Ended::of(command);
        assert_eq!(ended.code, Some(1), "{ended:?}");
    }
}
