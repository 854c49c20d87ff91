#!/usr/bin/env bash
# Run the tests: tests/run.sh [GROUP…], all groups but models and backend by default. Brings by name what they need.
#
#   fmt      cargo fmt --check
#   clippy   no warning in any target
#   unit     tests that need nothing but Rust
#   judge    results against Python's anndata, scanpy and scikit-learn (tests/judge/requirements.txt, in .venv)
#   engine   through real Nextflow, kept with its Java under target/test-cache
#   chaos    50 runs through it, each killed at a random moment and resumed (about 5 minutes)
#   models   the runners of models on the CPU, with torch in .venv-models and Seurat (only when named: 2.6 GB and 700 MB)
#   backend  on a real SLURM, Docker and Podman, brought by tests/backends/ (only when named; needs root and Debian)
#
# The last line counts all groups: "N passed, M failed". A check, and a group that could not run, counts as one test.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 4
# shellcheck source=demo/packages.sh
source demo/packages.sh

passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

check() {
    echo "== $*"
    if "$@"; then ((passed += 1)); else ((failed += 1)); fi
}

# cargo_test NAME TEST-ARGUMENT…: runs, and adds up, what `cargo test` reports. Nothing run is a failure.
cargo_test() {
    local name=$1 status ran_passed ran_failed
    shift
    echo "== $name: cargo test -- $*"
    cargo test --locked --no-fail-fast -- "$@" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    read -r ran_passed ran_failed < <(
        awk '/^test result: / {
            for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p += $(i-1); if ($i ~ /^failed/) f += $(i-1) }
        } END { print p + 0, f + 0 }' "$log"
    )
    if ((ran_passed + ran_failed == 0)); then
        fail "$name ran no test"
    elif ((status != 0 && ran_failed == 0)); then
        fail "$name: cargo test ended with $status"
    fi
    ((passed += ran_passed, failed += ran_failed))
}

fail() {
    echo "error: $*" >&2
    ((failed += 1))
}

unit() {
    cargo_test unit
    # `driver` is no test of its own: others start it.
    local stray
    stray=$(cargo test --locked -- --ignored --list 2>/dev/null | awk '/: test$/ && !/judge_|engine_|chaos_|models_|backend_|^driver::driver:/')
    [[ -z $stray ]] || fail "ignored tests that no group runs: $stray"
}

judge() {
    if make_venv; then
        check demo_is_made_again
        SCFOUNDRY_TEST_PYTHON=$root/.venv/bin/python cargo_test judge --ignored judge_
    else
        fail 'judge: .venv could not be made'
    fi
}

# The demo data come out of the script byte for byte as committed.
demo_is_made_again() {
    local made file status=0
    made=$(mktemp -d)
    .venv/bin/python demo/make_demo.py "$made" || status=1
    for file in demo/*.h5ad; do
        cmp "$file" "$made/${file##*/}" || status=1
    done
    rm -rf "$made"
    return "$status"
}

# Made once: again only when the requirements change.
make_venv() {
    local wanted_packages=tests/judge/requirements.txt made_with=.venv/requirements.txt
    cmp -s "$wanted_packages" "$made_with" && return
    rm -rf .venv &&
        python3 -m venv .venv &&
        .venv/bin/python -m pip install --quiet --requirement "$wanted_packages" &&
        cp "$wanted_packages" "$made_with"
}

# with_engine NAME TEST-ARGUMENT…: cargo_test with the real engines.
with_engine() {
    local engines
    if engines=$(bash tests/engines.sh "$root/target/test-engines"); then
        eval "$engines"
        export SCFOUNDRY_CACHE=$root/target/test-cache
        export SCFOUNDRY_TEST_CACHE=$SCFOUNDRY_CACHE
        cargo_test "$@"
    else
        fail "$1: tests/engines.sh failed"
    fi
}

models() {
    if bash tests/models/environment.sh "$root/.venv-models"; then
        SCFOUNDRY_TEST_MODELS=$root/.venv-models with_engine models --ignored models_ --test-threads 2
    else
        fail 'models: .venv-models could not be made'
    fi
}

# The services end with the group, however it ends.
backend() (
    local service exports
    trap 'for service in podman docker slurm; do bash tests/backends/$service.sh down; done' EXIT
    for service in slurm docker podman; do
        exports=$(bash "tests/backends/$service.sh" up) || exit 1
        eval "$exports"
    done
    export SCFOUNDRY_CACHE=$root/target/test-cache
    export SCFOUNDRY_TEST_CACHE=$SCFOUNDRY_CACHE
    cargo_test backend --ignored backend_ --test-threads 2
    echo "$passed $failed" >"$log"
)

run_backend() {
    : >"$log"
    if backend; then read -r passed failed <"$log"; else fail 'backend: a service could not be started'; fi
}

run_group() {
    case $1 in
        fmt) check cargo fmt --check ;;
        clippy) check cargo clippy --locked --all-targets -- -D warnings ;;
        unit | judge | models) "$1" ;;
        engine) with_engine engine --ignored engine_ ;;
        chaos) with_engine chaos --ignored --nocapture chaos_ ;;
        backend) run_backend ;;
    esac
}

# need_component COMMAND COMPONENT: a part of Rust that a minimal installation lacks.
need_component() {
    need_cargo
    cargo "$1" --version >/dev/null 2>&1 || rustup component add "$2" || exit 4
}

need_for_group() {
    [[ $1 == fmt ]] || need_build_tools
    case $1 in
        fmt) need_component fmt rustfmt ;;
        clippy) need_component clippy clippy ;;
        judge)
            python3 -c 'import ensurepip, venv' 2>/dev/null || wanted+=(python3-venv)
            ;;
        engine | chaos | models | backend)
            if [[ $1 == models ]]; then
                python3 -c 'import ensurepip, venv' 2>/dev/null || wanted+=(python3-venv)
                # A package of R has no command: dpkg knows it.
                dpkg -s r-cran-seurat r-cran-hdf5r >/dev/null 2>&1 || wanted+=(r-base-core r-cran-seurat r-cran-hdf5r)
            fi
            need mvn maven
            need ps procps
            python3 -m pip --version >/dev/null 2>&1 || wanted+=(python3-pip)
            ;;
    esac
}

(($#)) || set -- fmt clippy unit judge engine chaos
for group; do
    case $group in
        fmt | clippy | unit | judge | engine | chaos | models | backend) need_for_group "$group" ;;
        *)
            echo "error: group \"$group\" is unknown" >&2
            echo 'hint: the groups are fmt, clippy, unit, judge, engine, chaos, models and backend' >&2
            exit 2
            ;;
    esac
done
install_wanted
for group; do run_group "$group"; done

echo
echo "$passed passed, $failed failed"
((failed == 0))
