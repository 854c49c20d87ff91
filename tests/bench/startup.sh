#!/usr/bin/env bash
# Start-up times of the release build against those of the Python command scfoundry 0.2.1 (PyPI), installed here by name.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
cargo build --release --locked --quiet
target=$(realpath "${CARGO_TARGET_DIR:-target}")
reference=$target/bench-venv
if ! "$reference/bin/scfoundry" --version >/dev/null 2>&1; then
    rm -rf "$reference"
    python3 -m venv "$reference"
    "$reference/bin/python" -m pip install --quiet scfoundry==0.2.1
fi
env -u SCFOUNDRY_WORKSPACE python3 tests/bench/startup.py \
    "$target/release/scfoundry" "$reference/bin/scfoundry" "$root/demo/pbmc_700.h5ad"
