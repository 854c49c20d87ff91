"""Time commands in turn (A B A B …), so that a busy moment of the machine hits all of them alike."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path


def seconds_of(command: Sequence[str], directory: Path, environment: dict[str, str] | None = None) -> float:
    """Wall seconds from start to exit; the program stops, with the output, if the command fails."""
    start = time.perf_counter()
    result = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    elapsed = time.perf_counter() - start
    if result.returncode != 0:
        output = (result.stdout + result.stderr).decode(errors="replace")
        sys.exit(f"error: {' '.join(map(str, command))} ended with {result.returncode}\n{output}")
    return elapsed


def interleave(rounds: int, *measures: Callable[[], float]) -> list[list[float]]:
    """The values of each measure over `rounds` rounds, after one round that does not count."""
    for measure in measures:
        measure()
    values: list[list[float]] = [[] for _ in measures]
    for _ in range(rounds):
        for measure, seen in zip(measures, values, strict=True):
            seen.append(measure())
    return values


def report(title: str, ours: list[float], reference: list[float], unit: str, scale: float, aim: str) -> None:
    """One line: medians with their range, and the ratio of the medians."""

    def text(values: list[float]) -> str:
        low, middle, high = (scale * v for v in (min(values), statistics.median(values), max(values)))
        return f"{middle:.2f} {unit} ({low:.2f} to {high:.2f})"

    ratio = statistics.median(ours) / statistics.median(reference)
    print(
        f"{title}: scfoundry {text(ours)}, reference {text(reference)}, ratio {ratio:.3f}, "
        f"{len(ours)} runs each; aim {aim}",
        flush=True,
    )
