"""Seconds from Enter to the first task started: scfoundry with its managed engine, and plain `nextflow run`.

Both run the same pipeline with the same configuration in the same run directory. Started by first_task.sh.
"""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from interleaved import interleave, report

ROUNDS = 7

# Stands in for Nextflow once: keeps the run directory as it is before the run, with the arguments and the environment.
RECORDER = """#!/usr/bin/env bash
set -euo pipefail
if [[ " $* " == *' run '* ]]; then
    printf '%s\\0' "$@" >"$RECORD/arguments"
    env -0 >"$RECORD/environment"
    cp -a "$PWD" "$RECORD/directory"
    printf '%s' "$PWD" >"$RECORD/path"
fi
exec "$PLAIN" "$@"
"""


def first_start(trace: Path) -> float:
    """Epoch seconds at which the first task started, from a raw trace."""
    with trace.open(newline="") as file:
        starts = [row["start"] for row in csv.DictReader(file, delimiter="\t")]
    if not starts or not all(start.isdigit() for start in starts):
        sys.exit(f"error: {trace} has no raw start times: {starts}")
    return min(map(int, starts)) / 1000


def run(command: list[str], directory: Path, environment: dict[str, str]) -> float:
    """Runs to the end; gives the epoch seconds of its start."""
    started = time.time()
    result = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        sys.exit(f"error: {' '.join(command)} ended with {result.returncode}\n{result.stdout}")
    return started


@dataclass
class Recorded:
    """A run directory just before `nextflow run`, and how that was called."""

    arguments: list[str]
    environment: dict[str, str]
    pristine: Path
    path: Path

    @classmethod
    def record(cls, embed: list[str], workspace: Path, plain: str, folder: Path) -> "Recorded":
        recorder = folder / "nextflow"
        recorder.write_text(RECORDER)
        recorder.chmod(0o755)
        run([*embed, "--nextflow", str(recorder)], workspace, {**os.environ, "RECORD": str(folder), "PLAIN": plain})
        variables = (folder / "environment").read_text().split("\0")
        return cls(
            arguments=(folder / "arguments").read_text().split("\0")[:-1],
            environment=dict(variable.split("=", 1) for variable in variables if variable),
            pristine=folder / "directory",
            path=Path((folder / "path").read_text()),
        )

    def seconds(self, plain: str) -> float:
        shutil.rmtree(self.path)
        shutil.copytree(self.pristine, self.path, symlinks=True)
        started = run([plain, *self.arguments], self.path, self.environment)
        return first_start(self.path / "trace.txt") - started


def ours(embed: list[str], workspace: Path) -> Callable[[], float]:
    runs = workspace / "runs" / "embed"

    def seconds() -> float:
        before = set(runs.glob("*"))
        started = run(embed, workspace, dict(os.environ))
        (new,) = set(runs.glob("*")) - before
        return first_start(new / "trace.txt") - started

    return seconds


def main(scfoundry: str, plain: str, data: str) -> None:
    if shutil.which("nextflow"):
        sys.exit("error: a nextflow is on PATH, so scfoundry would not use its own")
    embed = [scfoundry, "embed", "--method", "pca", "--data", data]
    with tempfile.TemporaryDirectory() as name:
        workspace, folder = Path(name, "workspace"), Path(name, "record")
        workspace.mkdir()
        folder.mkdir()
        recorded = Recorded.record(embed, workspace, plain, folder)
        seconds = interleave(ROUNDS, ours(embed, workspace), lambda: recorded.seconds(plain))
    report("Enter to first task", *seconds, unit="s", scale=1, aim="ratio under 0.6")


if __name__ == "__main__":
    main(*sys.argv[1:4])
