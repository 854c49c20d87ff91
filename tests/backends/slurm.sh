#!/usr/bin/env bash
# A SLURM cluster of this one machine, for tests: munged, slurmctld and slurmd from Debian's packages, all on the loopback
# interface. It has one "GPU" to give out, a device that reads as empty; jobs over their memory are killed. Needs root and a
# Debian 12 (packages by name through apt).
#
#   tests/backends/slurm.sh up     install what is missing, start, print the `export …` lines that clients need
#   tests/backends/slurm.sh down   cancel all jobs, stop the daemons and remove their files
#
# SLURM_TEST_STATE names another folder than /tmp/scfoundry-test-slurm.
set -euo pipefail

state=${SLURM_TEST_STATE:-/tmp/scfoundry-test-slurm}
export SLURM_CONF=$state/slurm.conf
host=$(hostname -s)

main() {
    case ${1:-} in
        up)
            ((EUID == 0)) || { echo 'error: this needs root' >&2; exit 4; }
            install_packages
            start
            echo "export SLURM_CONF=$SLURM_CONF"
            ;;
        down) stop ;;
        *) echo 'usage: slurm.sh up|down' >&2; exit 2 ;;
    esac
}

install_packages() {
    command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v sbatch >/dev/null &&
        command -v munged >/dev/null && return
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2
    apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge procps >&2
}

start() {
    mkdir -p "$state"/{state,spool,log,dev}
    chmod 755 "$state" "$state"/*
    if [[ ! -s $state/munge.key ]]; then
        dd if=/dev/urandom of="$state/munge.key" bs=1024 count=1 status=none
        chmod 400 "$state/munge.key"
    fi
    # --force: the path has a parent, /tmp, that all may write to.
    munge -S "$state/munge.socket" -n >/dev/null 2>&1 ||
        munged --force --key-file="$state/munge.key" --socket="$state/munge.socket" --pid-file="$state/munged.pid" \
            --log-file="$state/log/munged.log" --seed-file="$state/munge.seed" --num-threads=2 >&2
    [[ -e $state/dev/nvidia0 ]] || mknod "$state/dev/nvidia0" c 1 3
    echo "NodeName=$host Name=gpu File=$state/dev/nvidia0" >"$state/gres.conf"
    configuration >"$SLURM_CONF"
    runs slurmctld || slurmctld >&2
    runs slurmd || slurmd >&2
    for _ in $(seq 300); do
        [[ $(sinfo -h -o %t -p short 2>/dev/null) == idle ]] && break
        sleep 0.1
    done
    if [[ $(timeout 30 srun -n1 hostname) != "$host" ]]; then
        tail -n 20 "$state"/log/*.log >&2
        exit 4
    fi
}

# All but the last line are the same on every machine; the node has this one's cores, and its memory less a tenth.
configuration() {
    cat <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$state/munge.socket
CryptoType=crypto/munge
SlurmctldPort=16827
SlurmdPort=16828
StateSaveLocation=$state/state
SlurmdSpoolDir=$state/spool
SlurmctldPidFile=$state/slurmctld.pid
SlurmdPidFile=$state/slurmd.pid
SlurmctldLogFile=$state/log/slurmctld.log
SlurmdLogFile=$state/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=500
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$state/log/jobcomp.txt
KillWait=2
MinJobAge=300
InactiveLimit=0
Waittime=0
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
GresTypes=gpu
PartitionName=short Nodes=$host Default=YES MaxTime=01:00:00 State=UP
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(awk '/MemTotal/{printf "%d", $2/1024*0.9}' /proc/meminfo) State=UNKNOWN Gres=gpu:1
CONF
}

runs() {
    [[ -s $state/$1.pid ]] && kill -0 "$(<"$state/$1.pid")" 2>/dev/null
}

stop() {
    [[ -d $state ]] || return 0
    if runs slurmctld; then
        timeout 10 scancel --user=root || true
        sleep 1
    fi
    local daemon
    for daemon in slurmd slurmctld munged; do
        runs "$daemon" || continue
        kill -TERM "$(<"$state/$daemon.pid")" || continue
        for _ in $(seq 100); do
            runs "$daemon" || break
            sleep 0.1
        done
    done
    rm -rf "$state"
}

main "$@"
