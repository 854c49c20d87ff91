#!/usr/bin/env python3
"""Times `scfoundry kernel benchmark` against scikit-learn, scanpy and scib-metrics, as whole processes on the same files.

    python tests/bench/benchmark.py --binary target/release/scfoundry [--cells 700,5000,20000,50000] [--ours-only]

Run it with a Python that has the packages of tests/judge/requirements.txt, on a quiet machine. The embeddings are synthetic:
20 overlapping types, 10 batches, 32 dimensions, from a fixed seed; they stay in --directory and are used again. Prints wall
time, CPU time and peak memory of each process, their ratios, and both sides' scores. --ours-only leaves the Python side out:
for sizes at which it would take hours (`--cells 1000000 --dims 64`).
"""

import argparse
import json
import pathlib
import subprocess
import sys

from processes import child, in_turn, print_header, print_own, print_pair

TYPES = 20
BATCHES = 10
SEED = 20261202
LISI = 90
PERPLEXITY = 30


def write_embedding(path, cells, dims):
    import anndata
    import numpy as np
    import pandas as pd

    path, cells, dims = pathlib.Path(path), int(cells), int(dims)
    rng = np.random.default_rng(SEED)
    shares = 0.88 ** np.arange(TYPES)
    kinds = rng.choice(TYPES, cells, p=shares / shares.sum())
    batches = rng.integers(0, BATCHES, cells)
    centres = rng.normal(0, 1.0, (TYPES, dims)) * 3.2 / np.sqrt(dims) * np.sqrt(8)
    shifts = rng.normal(0, 0.25, (BATCHES, dims))
    # Fewer directions than dimensions carry most of the spread, as in embeddings of real cells.
    spread = rng.normal(0, 1, (16, dims)) / np.sqrt(2)
    values = np.empty((cells, dims), dtype=np.float32)
    for first in range(0, cells, 100_000):
        part = slice(first, first + 100_000)
        count = len(kinds[part])
        inner = rng.standard_normal((count, 16), dtype=np.float32) @ spread.astype(np.float32)
        noise = rng.standard_normal((count, dims), dtype=np.float32) * np.float32(0.3)
        values[part] = inner + noise + centres[kinds[part]] + shifts[batches[part]]
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical([f"type{kind:02}" for kind in kinds]),
            "batch_id": pd.Categorical([f"batch{batch}" for batch in batches]),
        },
        index=[f"cell{index:07}" for index in range(cells)],
    )
    part = path.with_suffix(".part")
    anndata.AnnData(values, obs=obs).write_h5ad(part)
    part.rename(path)


def run_python(data, output):
    """The same metrics by the packages that define them; a child process."""
    import os

    os.environ["JAX_PLATFORMS"] = "cpu"
    import warnings

    warnings.filterwarnings("ignore")
    import numpy as np
    import scanpy as sc
    import scib_metrics
    import sklearn.metrics as skm
    from pynndescent import NNDescent
    from scib_metrics.nearest_neighbors import NeighborsResults
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    def neighbours(values, k):
        indices, distances = NNDescent(values, n_neighbors=min(k, len(values) - 1), random_state=0).neighbor_graph
        return NeighborsResults(indices=indices, distances=distances)

    adata = sc.read_h5ad(data)
    values = np.asarray(adata.X, dtype=np.float64)
    labels = adata.obs["cell_type"].astype(str).to_numpy()
    batches = adata.obs["batch_id"].astype(str).to_numpy()
    wanted = len(np.unique(labels))
    sc.pp.neighbors(adata, n_neighbors=15, use_rep="X", transformer="sklearn")
    tried = []
    resolutions = [round(0.1 * step, 1) for step in range(1, 31)]
    for resolution in resolutions:
        sc.tl.leiden(
            adata, resolution=resolution, flavor="igraph", n_iterations=2, directed=False, random_state=0
        )
        clusters = adata.obs["leiden"].to_numpy()
        nmi = skm.normalized_mutual_info_score(labels, clusters)
        tried.append((abs(len(np.unique(clusters)) - wanted), -nmi, resolution, clusters))
    clusters = min(tried, key=lambda entry: entry[:3])[3]
    near = neighbours(values, LISI)
    folds = StratifiedKFold(5, shuffle=True, random_state=42)
    scores = {
        "NMI": skm.normalized_mutual_info_score(labels, clusters),
        "HOM": skm.homogeneity_score(labels, clusters),
        "COM": skm.completeness_score(labels, clusters),
        "FMI": skm.fowlkes_mallows_score(labels, clusters),
        "ARI": skm.adjusted_rand_score(labels, clusters),
        "ASW": skm.silhouette_score(values, labels),
        "cLISI": scib_metrics.clisi_knn(near, labels, perplexity=PERPLEXITY),
        "Acc@kNN": cross_val_score(KNeighborsClassifier(5), values, labels, cv=folds).mean(),
        "GC": scib_metrics.graph_connectivity(near.subset_neighbors(15), labels),
        "kBET": scib_metrics.kbet_per_label(near.subset_neighbors(50), batches, labels),
        "BRAS": scib_metrics.bras(values, labels, batches),
        "iLISI": scib_metrics.ilisi_knn(near, batches, perplexity=PERPLEXITY),
    }
    within = []
    for label in np.unique(labels):
        mask = labels == label
        found = len(np.unique(batches[mask]))
        if mask.sum() >= 10 and found >= 2:
            part = neighbours(values[mask], LISI)
            perplexity = min(PERPLEXITY, (mask.sum() - 1) // 3)
            lisi = scib_metrics.lisi_knn(part, batches[mask], perplexity=perplexity)
            within.append(np.clip((lisi - 1) / (found - 1), 0, 1))
    scores["CiLISI"] = np.concatenate(within).mean()
    pathlib.Path(output).write_text(json.dumps({name: float(value) for name, value in scores.items()}))


def specification(directory, data, cells):
    outputs = {name: str((directory / f"{name}_{cells}").resolve()) for name in ("scores", "labels")}
    spec = directory / f"spec_{cells}.json"
    fields = {
        "embedding": str(data.resolve()),
        "method": "bench",
        "sample": str(cells),
        "label_key": "cell_type",
        "batch_key": "batch_id",
        "metrics": "all",
        "clustering": "leiden",
        "batch_max_cells": 0,
    }
    spec.write_text(json.dumps(fields | outputs))
    return spec, pathlib.Path(outputs["scores"])


def print_memory(cost, cells, dims):
    """The peak beside what the documentation of `kernel::benchmark` promises for a process of two threads."""
    promised = 40_000_000 + cells * max(4 * dims + 3200, 8 * dims + 1300 if cells > 200_000 else 0)
    print(f"{'':>9}    peak memory is {cost.peak / promised:.2f} of the formula's {promised // 1_000_000} MB")


def print_parts(scores):
    """What each part of our work took, and what has to be said of its result."""
    document = json.loads(scores.read_text())
    for phase in document["phases"]:
        print(f"{'':>9}    {phase['name']:<26} {phase['seconds']:>8.2f} {'':>8} {phase['peak_rss_bytes'] // 1_000_000:>8}")
    for score in document["scores"]:
        value = "NA" if score["value"] is None else f"{score['value']:.4f}"
        print(f"{'':>9}    {score['metric']:<8} {value}  {'; '.join(score['notes'])}")


def print_scores(ours, theirs):
    document = json.loads(ours.read_text())
    own = {score["metric"]: score["value"] for score in document["scores"]}
    for name, value in json.loads(theirs.read_text()).items():
        shown = "NA" if own[name] is None else f"{own[name]:.4f}"
        print(f"{'':>9}    {name:<8} {shown:>8} {value:>8.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/scfoundry", help="the program to time")
    parser.add_argument("--cells", default="700,5000,20000,50000", help="numbers of cells")
    parser.add_argument("--dims", type=int, default=32, help="dimensions of the embeddings")
    parser.add_argument("--runs", type=int, default=1, help="take the fastest of so many runs")
    parser.add_argument("--ours-only", action="store_true", help="do not run the Python side")
    parser.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("target/bench-benchmark"))
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, *arguments = options.child
        return {"embedding": write_embedding, "python": run_python}[name](*arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    binary = str(pathlib.Path(options.binary).resolve())
    print_header()
    for cells in map(int, options.cells.split(",")):
        data = options.directory / f"embedding_{cells}_{options.dims}.h5ad"
        if not data.exists():
            subprocess.run(child(__file__, "embedding", data, cells, options.dims), check=True)
        spec, scores = specification(options.directory, data, cells)
        own = [binary, "kernel", "benchmark", "--spec", str(spec.resolve())]
        if options.ours_only:
            (cost,) = in_turn(options.runs, own)
            print_own(cells, cost)
            print_memory(cost, cells, options.dims)
            print_parts(scores)
            continue
        theirs = options.directory / f"python_{cells}.json"
        ours, reference = in_turn(options.runs, own, child(__file__, "python", data, theirs))
        print_pair(cells, ours, "scikit-learn, scib-metrics", reference)
        print_memory(ours, cells, options.dims)
        print_scores(scores, theirs)


if __name__ == "__main__":
    sys.exit(main())
