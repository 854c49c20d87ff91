#!/usr/bin/env bash
# Writes down once a second what the cards of a task do, until the task has ended.
#
#   gpu-sampler.sh PID [CARDS]
#
# PID is the shell of the task; CARDS are numbers or UUIDs with commas between them, none means all that there are.
# Into the current directory, which is the task's:
#   .gpu.csv   time in seconds since 1970, index, UUID, memory in use and in all (MiB), utilisation (%), power (W);
#              before them `# process UUID PID` for each program that was on a card before the task began
#   .gpu.err   what went wrong, 20 lines at most; standard error is taken for it
# Whatever nvidia-smi does, the task is none the worse for it.
set -u

readonly TASK=$1 CARDS=${2-} PATIENCE=30 COMPLAINTS=20
complaints=0 rows=0 smi='' birth=''

# Files that the task's shell has open, such as the lock of a card, are not this script's to keep.
for file in /proc/"$BASHPID"/fd/*; do
    file=${file##*/}
    if ((file > 2 && file != 255)); then eval "exec $file>&-"; fi
done
set -f

# Sets `birth` to when a process began, in clock ticks since the machine started. A zombie is none.
born() {
    local stat IFS=' '
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    # The name before the last bracket may hold spaces.
    set -- ${stat##*) }
    [[ $1 != Z ]] && birth=${20}
}

born "$TASK" || exit 0
readonly BEGUN=$birth

# The number of a process is given out again; number and birth together are not.
task_lives() { born "$TASK" && [[ $birth == "$BEGUN" ]]; }

complain() { ((complaints++ < COMPLAINTS)) && printf '%.300s\n' "$1" >&2; }

end() {
    [[ -n $smi ]] && kill -KILL "$smi" 2>/dev/null
    [[ -s .gpu.err ]] || rm -f .gpu.err
}
trap end EXIT
trap 'exit 0' TERM INT HUP

# Starts nvidia-smi, which ends by itself on a pipe that nobody reads.
ask() {
    exec 3< <(echo "$BASHPID"; exec nvidia-smi "$@" 2>&1)
    read -r smi <&3
}

# Gives what nvidia-smi says to the function $1, line by line, until it has ended.
listen() {
    local line='' part code silent=0
    while task_lives; do
        IFS= read -r -t 1 part <&3
        code=$?
        # Where time is up in the middle of a line, that much of it has been read.
        line+=$part
        if ((code <= 128)); then
            silent=0
            [[ -n $line ]] && "$1" "$line"
            line=''
            ((code == 0)) && continue
            smi=''
            return
        fi
        if ((++silent == PATIENCE)); then
            complain "nvidia-smi does not answer within $PATIENCE s"
            exit
        fi
    done
    exit
}

is_mine() { # index, UUID
    local card IFS=,
    [[ -z $CARDS ]] && return
    for card in $CARDS; do
        [[ $1 == "$card" || $2 == "$card"* && $card == *-* ]] && return
    done
    return 1
}

sample() {
    local line=$1 IFS=,
    set -- ${1// /}
    if (($# != 6)) || [[ ! $1 =~ ^[0-9]+$ || $2 != GPU-* ]]; then
        complain "$line"
    elif is_mine "$1" "$2"; then
        printf '%(%s)T,%s\n' -1 "$*" >&4
        ((rows++))
    fi
}

process() {
    local line=$1 IFS=,
    set -- ${1// /}
    if (($# != 2)) || [[ ! $2 =~ ^[0-9]+$ ]]; then
        [[ $line == [Nn]o\ * ]] || complain "$line"
    elif ! born "$2" || ((birth < BEGUN)); then
        printf '# process %s %s\n' "$1" "$2" >&4
    fi
}

exec 4>.gpu.csv
echo 'time,index,uuid,memory_used_mib,memory_total_mib,utilization_percent,power_watts' >&4
readonly FIELDS=index,uuid,memory.used,memory.total,utilization.gpu,power.draw
ask --query-gpu="$FIELDS" --format=csv,noheader,nounits
listen sample
if ((rows == 0)); then
    complain "nvidia-smi shows none of the cards ${CARDS:-that are there}"
    exit
fi
ask --query-compute-apps=gpu_uuid,pid --format=csv,noheader
listen process
ask --query-gpu="$FIELDS" --format=csv,noheader,nounits -l 1
listen sample
complain 'nvidia-smi ended before the task did'
