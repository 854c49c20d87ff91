// One task that tells what it finds around it, for `scfoundry doctor --container`.

process DOCTOR {
    output:
    stdout

    script:
    '''
    echo "user=$(id -u):$(id -g)"
    if (: > written) 2>/dev/null; then echo work=yes; fi
    echo "home=${HOME:-}"
    if (: > "${HOME:-}/.scfoundry-doctor.$$") 2>/dev/null; then echo home_written=yes; fi
    rm -f "${HOME:-}/.scfoundry-doctor.$$" 2>/dev/null || true
    echo "shm_kib=$(df -kP /dev/shm 2>/dev/null | tail -n 1 | tr -s ' ' | cut -d ' ' -f 2)"
    echo "ps=$(command -v ps || true)"
    echo "python3=$(python3 --version 2>&1 || true)"
    echo "cuda_visible_devices=${CUDA_VISIBLE_DEVICES-unset}"
    (nvidia-smi -L 2>/dev/null || true) | while read -r card; do echo "gpu=$card"; done
    '''
}

workflow {
    DOCTOR()
}
