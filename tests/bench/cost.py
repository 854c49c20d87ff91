#!/usr/bin/env python3
"""How long the cost summary of a large run takes.

    cargo build --release
    python3 tests/bench/cost.py [TASKS] [PROGRAM]

Makes a trace of TASKS tasks (100,000) in a temporary directory, without and then with their work directories (each with
usage.json and the task's logs), then a run that has written its cost down and removed its work, and takes the best of three
times that PROGRAM (target/release/scfoundry) needs for `cost --json`, with the seconds of processors in it. The files are in
the cache of the system, as after a run that has just ended.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
program = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "target/release/scfoundry")
columns = (
    "task_id hash native_id process tag name status exit attempt submit start complete duration realtime %cpu %mem rss"
    " peak_rss peak_vmem rchar wchar read_bytes write_bytes cpus memory time queue container workdir hostname"
).split()
usage = (
    '{"kind": "runner", "cells": 700, "genes": 2000, "batch_size_asked": 64, "batch_size_used": 32, "halvings": 1,'
    ' "device": "NVIDIA T4", "peak_gpu_bytes_reserved": 7516192768, "peak_rss_bytes": 3221225472, "cpu_seconds": 118.5,'
    ' "phases": [{"name": "load", "seconds": 3.5}, {"name": "embed", "seconds": 56.5}], "warnings": []}'
)


def best(directory, what="trace.txt"):
    def once():
        begin = time.perf_counter(), processor()
        command = [program, "cost", "--json", os.path.join(directory, what)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd=directory)
        return time.perf_counter() - begin[0], processor() - begin[1]

    seconds, of_processors = min(once() for _ in range(3))
    return f"{seconds:.2f} s ({of_processors:.2f} s of processors)"


def processor():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


with tempfile.TemporaryDirectory() as directory:
    work = os.path.join(directory, "work")
    places = [f"{number % 256:02x}/{number:030x}" for number in range(tasks)]
    with open(os.path.join(directory, "trace.txt"), "w") as file:
        file.write("\t".join(columns) + "\n")
        for number, place in enumerate(places):
            begin = 1_796_211_725_000 + number
            values = (
                f"{number} {place[:9]} {number} EMBED s{number} EMBED_(s{number}) COMPLETED 0 1 {begin} {begin + 900}"
                f" {begin + 60900} 60900 60000 187.5 1.2 2147483648 3221225472 9663676416 1048576 524288 1048576 524288"
                f" 4 34359738368 3600000 - - {work}/{place} node1"
            ).split()
            file.write("\t".join(values).replace("EMBED_(", "EMBED (") + "\n")
    print(f"{tasks} tasks, no work directories: {best(directory)}")
    for place in places:
        path = os.path.join(work, place)
        os.makedirs(path)
        for name, text in [("usage.json", usage), (".command.err", "pca: gram\n"), (".command.log", "pca: gram\n")]:
            with open(os.path.join(path, name), "w") as file:
                file.write(text)
        open(os.path.join(path, ".command.out"), "w").close()
    print(f"{tasks} tasks, with work directories: {best(directory)}")
    with open(os.path.join(directory, "cost.json"), "w") as file:
        trace = os.path.join(directory, "trace.txt")
        subprocess.run([program, "cost", "--json", trace], stdout=file, check=True, cwd=directory)
    with open(os.path.join(directory, "run.json"), "w") as file:
        file.write('{"task": "embed", "status": "ok"}')
    shutil.rmtree(work)
    print(f"{tasks} tasks, from the record of a run: {best(directory, '')}")
