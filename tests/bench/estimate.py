#!/usr/bin/env python3
"""How good are the estimates? A probe on a tenth of the cells, then the whole run, through the program as a user types it.

    python tests/bench/estimate.py --binary target/release/scfoundry [--cells 2000,5000,20000,50000,200000] [--tasks pca,…]
        [--models PYTHON --weights DIRECTORY]

Run it with a Python that has anndata, on a quiet machine. Counts are synthetic (as in pca.py, with types and batches) and stay in
--directory. Every row begins with an empty history: only the probe is known. `geneformer` and `scgpt` need --models, a
directory of programs in which python3 has torch, and --weights, made by tests/models/tiny.py for the data.
Prints for each run the estimate with its bounds against what it took, and at the end, over all: the median error of time and of
peak memory, and how many true values lay between the bounds (90 % should).
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import pca

TYPES, BATCHES = pca.TYPES, 4


def write_data(path, cells):
    import anndata
    import numpy as np
    import pandas as pd

    matrix = pca.counts(cells)
    rng = np.random.default_rng(pca.SEED)
    # The types are drawn from the counts' own generator, so that they are those of the cells.
    rng.gamma(0.35, 0.45, pca.GENES), rng.normal(0, 1.2, (TYPES, pca.GENES)), rng.random((TYPES, pca.GENES))
    shares = 0.9 ** np.arange(TYPES)
    kinds = rng.choice(TYPES, cells, p=shares / shares.sum())
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical([f"type{kind:02}" for kind in kinds]),
            "batch_id": pd.Categorical([f"batch{number % BATCHES}" for number in range(cells)]),
        },
        index=[f"cell{number}" for number in range(cells)],
    )
    data = anndata.AnnData(matrix, obs=obs)
    data.var_names = [f"gene{number}" for number in range(pca.GENES)]
    data.write_h5ad(path.with_suffix(".part"))
    path.with_suffix(".part").rename(path)


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = options.directory.resolve()
        self.workspace = self.folder / "workspace"
        self.rows = []

    def run(self, *words):
        environment = os.environ | {"SCFOUNDRY_HISTORY": str(self.folder / "history")}
        if self.options.models:
            environment["PATH"] = f"{self.options.models}:{environment['PATH']}"
        line = [str(pathlib.Path(self.options.binary).resolve()), *map(str, words), "--json"]
        done = subprocess.run(line, cwd=self.workspace, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(line)} failed with {done.returncode}:\n{done.stderr}")
        return json.loads(done.stdout)

    def data(self, cells):
        path = self.folder / f"data_{cells}.h5ad"
        if not path.exists():
            write_data(path, cells)
        return path

    def words(self, task, cells):
        data = self.data(cells)
        if task == "transfer":
            return task, ["--method", "pca", "--reference", data, "--query", self.data(cells // 5)]
        if task in ("benchmark", "geometry"):
            embedding = self.workspace / "results/embeddings/pca" / data.name
            if not embedding.exists():
                self.run("embed", "--method", "pca", "--data", data)
            words = ["--embedding", embedding, "--batch-key", "batch_id"]
            return task, words + (["--data", data] if task == "geometry" else [])
        more = [] if task == "pca" else ["--weights-dir", self.options.weights]
        return "embed", ["--method", task, "--data", data, *more]

    def compare(self, task, cells):
        command, words = self.words(task, cells)
        shutil.rmtree(self.folder / "history", ignore_errors=True)
        told = self.run("estimate", "--task", command, *words, "--probe", cells // 10)["estimates"][0]
        took = self.run(command, *words, "--outdir", self.folder / "whole")["cost"]["totals"]
        for name, estimate, truth, unit in (
            ("time", told["seconds"], took["run_time_ms"] / 1000, 1),
            ("RSS", told["peak_rss_bytes"], took["peak_rss_bytes"], 1 << 20),
        ):
            error = estimate["middle"] / truth - 1
            inside = estimate["low"] <= truth <= estimate["high"]
            self.rows.append((name, abs(error), inside))
            low, middle, high = (estimate[key] / unit for key in ("low", "middle", "high"))
            print(
                f"{task:<11} {cells:>7}  {name:<4} {middle:>9.2f} ({low:.2f} to {high:.2f})".ljust(62)
                + f"{truth / unit:>9.2f}  {error:>+7.0%}  {'inside' if inside else 'outside'}",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/scfoundry", help="the program to judge")
    parser.add_argument("--cells", default="2000,5000,20000,50000,200000", help="numbers of cells")
    parser.add_argument("--tasks", default="pca,transfer,benchmark,geometry")
    parser.add_argument("--models", help="directory of programs whose python3 has torch")
    parser.add_argument("--weights", help="tiny weights, made by tests/models/tiny.py")
    parser.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("target/bench-estimate"))
    options = parser.parse_args()
    bench = Bench(options)
    shutil.rmtree(bench.workspace, ignore_errors=True)
    bench.workspace.mkdir(parents=True)
    subprocess.run([options.binary, "init", bench.workspace, "--runtime", "none", "--quiet"], check=True)
    for task in options.tasks.split(","):
        for cells in map(int, options.cells.split(",")):
            bench.compare(task, cells)
    for name in ("time", "RSS"):
        errors = [error for kind, error, _ in bench.rows if kind == name]
        print(f"{name}: median error {statistics.median(errors):.0%} of {len(errors)} runs")
    inside = [row[2] for row in bench.rows]
    print(f"inside the bounds: {sum(inside)} of {len(inside)}")


if __name__ == "__main__":
    main()
