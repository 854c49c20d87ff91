#!/usr/bin/env bash
# Podman with one small image, for tests, as root and without a network of its own. The image is that of the Docker engine
# that tests/backends/docker.sh has started (DOCKER_HOST). Needs root and a Debian 12 (packages by name through apt).
#
#   tests/backends/podman.sh up     install what is missing, take the image over, print the `export …` lines that clients need
#   tests/backends/podman.sh down   end what runs and remove its files
#
# PODMAN_TEST_STATE names another folder than /tmp/scfoundry-test-podman.
set -euo pipefail

state=${PODMAN_TEST_STATE:-/tmp/scfoundry-test-podman}
export CONTAINERS_STORAGE_CONF=$state/storage.conf CONTAINERS_CONF=$state/containers.conf
image=scfoundry-test:python

main() {
    case ${1:-} in
        up)
            ((EUID == 0)) || { echo 'error: this needs root' >&2; exit 4; }
            install_packages
            configure
            podman image exists "$image" || docker save "$image" | podman load --quiet >&2
            podman run --rm --network none "$image" ps -o pid= >/dev/null
            echo "export CONTAINERS_STORAGE_CONF=$CONTAINERS_STORAGE_CONF"
            echo "export CONTAINERS_CONF=$CONTAINERS_CONF"
            echo "export SCFOUNDRY_TEST_PODMAN_IMAGE=$(podman image inspect --format '{{index .RepoTags 0}}' "$image")"
            ;;
        down) stop ;;
        *) echo 'usage: podman.sh up|down' >&2; exit 2 ;;
    esac
}

install_packages() {
    command -v podman >/dev/null && command -v runc >/dev/null && return
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2
    apt-get install -y -qq --no-install-recommends podman runc >&2
}

# Where cgroups are mixed, crun refuses to start; and a container must not ask for more open files and processes than there may be.
configure() {
    mkdir -p "$state"
    cat >"$CONTAINERS_STORAGE_CONF" <<CONF
[storage]
driver = "overlay"
graphroot = "$state/graph"
runroot = "$state/run"
CONF
    cat >"$CONTAINERS_CONF" <<CONF
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
CONF
}

stop() {
    [[ -d $state ]] || return 0
    ! command -v podman >/dev/null || podman rm --all --force >/dev/null 2>&1 || true
    umount "$state/graph/overlay" 2>/dev/null || true
    rm -rf "$state"
}

main "$@"
