#!/usr/bin/env bash
# Seconds from Enter to the first task started: the managed engine of the release build against plain `nextflow run`.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
cargo build --release --locked --quiet
target=$(realpath "${CARGO_TARGET_DIR:-target}")
engines=$(bash tests/engines.sh "$target/test-engines")
eval "$engines"
export SCFOUNDRY_CACHE=$target/test-cache
env -u SCFOUNDRY_WORKSPACE -u SCFOUNDRY_NEXTFLOW python3 tests/bench/first_task.py \
    "$target/release/scfoundry" "$SCFOUNDRY_TEST_NEXTFLOW_PLAIN" "$root/demo/pbmc_700.h5ad"
