# shellcheck shell=bash
# Sourced: brings Debian packages by name, as root; otherwise prints the line to type and exits 4.
#
#     wanted=()
#     need cmake            # wanted+=(cmake) unless the command cmake is there
#     need ps procps        # the package has another name than the command
#     install_wanted

wanted=()

need() {
    command -v "$1" >/dev/null || wanted+=("${2:-$1}")
}

# Whether the Java that Nextflow would use is 17 or newer.
has_java() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java version
    version=$("$java" -version 2>&1) || return 1
    [[ $version =~ version\ \"([0-9]+) ]] && ((BASH_REMATCH[1] >= 17))
}

# Rust is the user's to choose, so it is asked for and not brought.
need_cargo() {
    PATH=$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin
    command -v cargo >/dev/null && return
    echo 'error: cargo is not on PATH' >&2
    echo 'hint: install Rust 1.89 or newer with rustup; Debian 12 packages an older one' >&2
    exit 4
}

# What it takes to build: HDF5 is compiled from source.
need_build_tools() {
    need_cargo
    command -v cc >/dev/null || wanted+=(gcc libc6-dev)
    need cmake
    need make
}

install_wanted() {
    ((${#wanted[@]})) || return 0
    local install=(apt-get install -y --no-install-recommends "${wanted[@]}")
    if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
        echo "error: missing: ${wanted[*]}" >&2
        echo "hint: sudo apt-get update && sudo ${install[*]}" >&2
        exit 4
    fi
    echo "installing ${wanted[*]}" >&2
    # One unreachable source among others is no reason to stop: the next line tells.
    apt-get update -qq >&2 || true
    if ! DEBIAN_FRONTEND=noninteractive "${install[@]}" -qq >&2; then
        echo "error: apt-get cannot install ${wanted[*]}" >&2
        exit 4
    fi
    wanted=()
}
