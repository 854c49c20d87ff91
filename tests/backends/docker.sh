#!/usr/bin/env bash
# A Docker engine with two small images and a registry, for tests, on the loopback interface: no bridge, no change of the machine's packet filter. They are
# made from this machine's bash, coreutils, Python and ps; one lacks ps. Needs root and a Debian 12 (packages by name through
# apt).
#
#   tests/backends/docker.sh up     install what is missing, start, make the image, print the `export …` lines that clients need
#   tests/backends/docker.sh down   stop the engine and remove its files
#
# DOCKER_TEST_STATE names another folder than /tmp/scfoundry-test-docker, DOCKER_TEST_REGISTRY another address than
# 127.0.0.1:5055.
set -euo pipefail

state=${DOCKER_TEST_STATE:-/tmp/scfoundry-test-docker}
image=scfoundry-test:python
bare=scfoundry-test:no-ps
registry=${DOCKER_TEST_REGISTRY:-127.0.0.1:5055}
export DOCKER_HOST=unix://$state/docker.sock

main() {
    case ${1:-} in
        up)
            ((EUID == 0)) || { echo 'error: this needs root' >&2; exit 4; }
            install_packages
            start
            start_registry
            docker image inspect "$image" "$bare" >/dev/null 2>&1 || make_images
            docker run --rm --pull never --network none "$image" bash -c 'ps -o pid= >/dev/null && python3 -c "import json"' >&2
            echo "export DOCKER_HOST=$DOCKER_HOST"
            echo "export SCFOUNDRY_TEST_IMAGE=$image"
            echo "export SCFOUNDRY_TEST_IMAGE_WITHOUT_PS=$bare"
            echo "export SCFOUNDRY_TEST_REGISTRY=$registry"
            ;;
        down) stop ;;
        *) echo 'usage: docker.sh up|down' >&2; exit 2 ;;
    esac
}

install_packages() {
    command -v dockerd >/dev/null && command -v docker >/dev/null && command -v docker-registry >/dev/null &&
        [[ -x /usr/bin/python3 ]] && return
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2
    # --no-install-recommends leaves out the network tools; policy-rc.d, where there is one, keeps the service from starting.
    apt-get install -y -qq --no-install-recommends docker.io docker-registry procps python3 >&2
}

start() {
    docker info >/dev/null 2>&1 && return
    mkdir -p "$state"
    # The proxy that nothing listens at: an image that is not here is refused at once, on the loopback interface.
    HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 setsid nohup dockerd --data-root "$state/data" \
        --exec-root "$state/exec" --host "$DOCKER_HOST" --pidfile "$state/dockerd.pid" --storage-driver "${DRIVER:-overlay2}" \
        --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
        >"$state/dockerd.log" 2>&1 </dev/null &
    for _ in $(seq 300); do
        docker info >/dev/null 2>&1 && return
        sleep 0.1
    done
    tail -n 20 "$state/dockerd.log" >&2
    exit 4
}

start_registry() {
    [[ -e $state/registry.pid ]] && kill -0 "$(cat "$state/registry.pid")" 2>/dev/null && return
    cat >"$state/registry.yml" <<YML
version: 0.1
storage: {filesystem: {rootdirectory: $state/registry}}
http: {addr: "$registry"}
YML
    setsid nohup docker-registry serve "$state/registry.yml" >"$state/registry.log" 2>&1 </dev/null &
    echo $! >"$state/registry.pid"
    for _ in $(seq 100); do
        (: <>"/dev/tcp/${registry/:/\/}") 2>/dev/null && return
        sleep 0.1
    done
    tail -n 20 "$state/registry.log" >&2
    exit 4
}

make_images() {
    local tree program library programs python
    tree=$(mktemp -d "$state/image.XXXX")
    mkdir -p "$tree"/{usr/{bin,lib,lib64,sbin},etc,tmp,root,proc,sys,dev,var/tmp,run}
    chmod 755 "$tree"
    chmod 1777 "$tree/tmp" "$tree/var/tmp"
    for program in bin lib lib64 sbin; do ln -s "usr/$program" "$tree/$program"; done
    echo 'root:x:0:0:root:/root:/bin/bash' >"$tree/etc/passwd"
    echo 'root:x:0:' >"$tree/etc/group"
    python=$(basename "$(readlink -f /usr/bin/python3)")
    mapfile -t programs < <(
        dpkg -L coreutils bash dash procps grep sed mawk findutils hostname | grep -E '^/(usr/)?s?bin/' | sort -u
        echo "/usr/bin/$python"
    )
    for program in "${programs[@]}"; do
        [[ ! -f $program || -u $program ]] || cp -L "$program" "$tree/usr/bin/"
    done
    ln -sf dash "$tree/usr/bin/sh"
    ln -sf mawk "$tree/usr/bin/awk"
    ln -sf "$python" "$tree/usr/bin/python3"
    mkdir -p "$tree/usr/lib/$python"
    tar -C "/usr/lib/$python" --exclude=test --exclude=__pycache__ --exclude='config-*' -cf - . | tar -C "$tree/usr/lib/$python" -xf -
    while read -r library; do
        mkdir -p "$tree/usr/$(dirname "${library#/usr}")"
        cp -L "$library" "$tree/usr/${library#/usr}"
    done < <(ldd "${programs[@]}" "/usr/lib/$python"/lib-dynload/*.so 2>/dev/null | grep -oE '/[^ :]+\.so[^ :]*' | sort -u)
    tar -C "$tree" -cf - . | docker import --change 'ENV PATH=/usr/bin:/bin' - "$image" >&2
    tar -C "$tree" --exclude=./usr/bin/ps -cf - . | docker import --change 'ENV PATH=/usr/bin:/bin' - "$bare" >&2
    rm -rf "$tree"
}

stop() {
    [[ -d $state ]] || return 0
    local pid
    ! pid=$(cat "$state/registry.pid" 2>/dev/null) || kill -TERM "$pid" 2>/dev/null || true
    pid=$(cat "$state/dockerd.pid" 2>/dev/null || true)
    if [[ -n $pid ]] && kill -TERM "$pid" 2>/dev/null; then
        for _ in $(seq 150); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
    fi
    # dockerd mounts its data upon themselves, and leaves that where its end was cut short.
    while mountpoint -q "$state/data"; do umount "$state/data"; done
    rm -rf "$state"
}

main "$@"
