"""Whole processes, measured: wall time, CPU time and peak memory, side by side.

The measuring process imports nothing large and leaves everything else to child processes: Linux counts the memory of a
parent at the time of the fork towards the peak of its child.
"""

import os
import subprocess
import sys
import time
from typing import NamedTuple


class Cost(NamedTuple):
    wall: float
    cpu: float
    peak: int


def measure(command):
    """Wall seconds, CPU seconds and peak bytes of a command; stops at a failure."""
    # Both variables force slow BLAS kernels where they are set, which would flatter us.
    hidden = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    start = time.monotonic()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{command} failed with {child.returncode}:\n{message.decode(errors='replace')}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def in_turn(runs, *commands):
    """The cost of each command: the least wall and CPU time and the largest peak of `runs` rounds, taken in turn."""
    rounds = [[measure(command) for command in commands] for _ in range(runs)]
    return [
        Cost(min(c.wall for c in costs), min(c.cpu for c in costs), max(c.peak for c in costs))
        for costs in zip(*rounds, strict=True)
    ]


def print_header():
    print(f"{'cells':>9}  {'program':<28} {'wall s':>8} {'cpu s':>8} {'peak MB':>8}  {'faster':>7} {'memory':>7}")


def print_pair(cells, ours, reference, theirs):
    """Both costs, and how many times less ours are."""
    for count, name, cost, ratios in (
        (cells, "scfoundry", ours, ("", "")),
        ("", reference, theirs, (f"{theirs.wall / ours.wall:.1f}x", f"1/{theirs.peak / ours.peak:.1f}")),
    ):
        print(
            f"{count:>9}  {name:<28} {cost.wall:>8.2f} {cost.cpu:>8.2f} {cost.peak // 1_000_000:>8}"
            f"  {ratios[0]:>7} {ratios[1]:>7}",
            flush=True,
        )


def print_own(cells, cost):
    """Our cost where nothing is compared with it."""
    print(f"{cells:>9}  {'scfoundry':<28} {cost.wall:>8.2f} {cost.cpu:>8.2f} {cost.peak // 1_000_000:>8}", flush=True)


def child(script, *arguments):
    """The command that runs one of a script's own functions in a process of its own."""
    return [sys.executable, script, "--child", *map(str, arguments)]
