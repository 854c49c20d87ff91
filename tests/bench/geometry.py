#!/usr/bin/env python3
"""Times `scfoundry kernel geometry` against numpy, scikit-learn and pynndescent, as whole processes on the same files.

    python tests/bench/geometry.py --binary target/release/scfoundry [--cells 700,5000,20000,50000] [--ours-only]

Run it with a Python that has the packages of tests/judge/requirements.txt, on a quiet machine. Counts and embeddings are
synthetic: 12 types, up to 10 batches, 6,000 genes, from a fixed seed; they stay in --directory and are used
again. Both sides use 20,000 cells at most. The Python side finds exact neighbours up to 5,000 cells and approximate ones
above, and takes the leading singular value from randomized_svd. --ours-only leaves the Python side out, for sizes whose counts it
could not hold (`--cells 1000000 --depth 0.05`). Prints wall time, CPU time and peak memory of each process,
their ratios, and both sides' values.
"""

import argparse
import json
import pathlib
import subprocess
import sys

from processes import child, in_turn, print_header, print_own, print_pair

TYPES = 12
GENES = 6000
SELECTED = 2000
SEED = 20261202
MOST_CELLS = 20_000
PAIRS = 100_000
SIZES = (15, 30, 50)
THETA = 100.0


def write_pair(embedding, data, cells, dims, depth):
    import anndata
    import numpy as np
    import pandas as pd
    from scipy import sparse

    cells, dims = int(cells), int(dims)
    rng = np.random.default_rng(SEED)
    kind = rng.integers(0, TYPES, cells)
    batch = rng.integers(0, max(1, min(10, cells // 200)), cells)
    base = rng.gamma(0.3, 0.8, GENES)
    profiles = base * np.exp(rng.normal(0, 1.0, (TYPES, GENES)) * (rng.random((TYPES, GENES)) < 0.1))
    loadings = rng.normal(0, 1 / np.sqrt(GENES), (GENES, dims)).astype(np.float32)
    blocks, values = [], np.empty((cells, dims), dtype=np.float32)
    for first in range(0, cells, 5000):
        part = slice(first, first + 5000)
        size = float(depth) * rng.lognormal(0, 0.4, len(kind[part]))[:, None]
        counts = rng.poisson(size * profiles[kind[part]]).astype(np.float32)
        blocks.append(sparse.csr_matrix(counts))
        values[part] = np.log1p(counts) @ loadings + 0.05 * batch[part, None]
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical([f"type{value:02}" for value in kind]),
            "batch_id": pd.Categorical([f"batch{value}" for value in batch]),
        },
        index=[f"cell{index:07}" for index in range(cells)],
    )
    var = pd.DataFrame(index=[f"gene{index}" for index in range(GENES)])
    counts = anndata.AnnData(sparse.vstack(blocks).tocsr(), obs=obs, var=var)
    counts.write_h5ad(data, compression="gzip")
    part = pathlib.Path(embedding).with_suffix(".part")
    anndata.AnnData(values, obs=obs).write_h5ad(part)
    part.rename(embedding)


def run_python(embedding, data, output):
    """The same metrics with the usual packages; a child process."""
    import warnings

    warnings.filterwarnings("ignore")
    import anndata
    import numpy as np
    import pandas as pd
    from scipy import stats
    from sklearn.neighbors import NearestNeighbors
    from sklearn.utils.extmath import randomized_svd

    rng = np.random.default_rng(0)
    embedded, counts = anndata.read_h5ad(embedding), anndata.read_h5ad(data)
    if embedded.n_obs > MOST_CELLS:
        rows = np.sort(rng.choice(embedded.n_obs, MOST_CELLS, replace=False))
        embedded, counts = embedded[rows].copy(), counts[rows].copy()
    values = np.asarray(embedded.X, dtype=np.float32)
    labels, batches = counts.obs["cell_type"].to_numpy(), counts.obs["batch_id"].to_numpy()

    def neighbours(points, k):
        if len(points) <= 5000:
            distances, indices = NearestNeighbors(n_neighbors=k + 1).fit(points).kneighbors()
            return indices[:, :k], distances[:, :k]
        from pynndescent import NNDescent

        indices, distances = NNDescent(points, n_neighbors=k + 1, random_state=0).neighbor_graph
        return indices[:, 1:], distances[:, 1:]

    def two_nearest(points):
        distances = neighbours(points, 2)[1].astype(np.float64)
        first, second = distances[:, 0], distances[:, 1]
        used = (first > 0) & (second > first)
        return used.sum() / np.log(second[used] / first[used]).sum()

    deviation = values.std(0, dtype=np.float64)
    standard = (values - values.mean(0, dtype=np.float64)) / np.where(deviation > 1e-8, deviation, np.inf)
    covariance = standard.T @ standard / len(standard)
    singular = randomized_svd(values, 1, random_state=0)[1][0]
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)

    def cosine(first, second):
        return float((unit[first] * unit[second]).sum(1).mean())

    members = [np.flatnonzero(labels == name) for name in np.unique(labels)]
    first, second = rng.integers(0, len(unit), (2, PAIRS))
    chosen = rng.integers(0, len(members), PAIRS)
    other = (chosen + rng.integers(1, len(members), PAIRS)) % len(members)
    within = np.array([rng.choice(members[kind], 2, replace=False) for kind in chosen])
    between = np.array([[rng.choice(members[a]), rng.choice(members[b])] for a, b in zip(chosen, other)])
    found = {
        "pr": np.trace(covariance) ** 2 / (covariance**2).sum(),
        "aniso_spec": singular**2 / (values.astype(np.float64) ** 2).sum(),
        "aniso_cos": cosine(first, second),
        "aniso_cos_within_ct": cosine(*within.T),
        "aniso_cos_between_ct": cosine(*between.T),
        "id_twonn_raw": two_nearest(values),
        "id_twonn_z": two_nearest(standard.astype(np.float32)),
    }

    types, groups = (np.eye(codes.max() + 1)[codes] for codes in (pd.factorize(labels)[0], pd.factorize(batches)[0]))

    def error(*parts):
        design = np.hstack([np.ones((len(standard), 1)), *parts])
        return ((standard - design @ np.linalg.lstsq(design, standard, rcond=None)[0]) ** 2).sum(0)

    full = error(types, groups)
    for name, others in (("celltype", groups), ("batch", types)):
        effect = error(others) - full
        found[f"partial_eta2_{name}"] = (effect / (effect + full)).mean()

    raw = counts.X
    eligible = np.flatnonzero((raw.getnnz(0) >= 10) & (np.asarray(raw.sum(0)).ravel() >= 10))
    names = [name for name in np.unique(batches) if (batches == name).sum() >= 101]

    def residuals(rows, genes):
        part = raw[rows]
        library = np.asarray(part.sum(1)).ravel()
        mean = np.outer(library, np.asarray(part.sum(0)).ravel()[genes] / library.sum())
        with np.errstate(invalid="ignore", divide="ignore"):
            space = (part[:, genes].toarray() - mean) / np.sqrt(mean + mean**2 / THETA)
        return np.nan_to_num(np.clip(space, -np.sqrt(len(space)), np.sqrt(len(space)))).astype(np.float32)

    ranks = [stats.rankdata(residuals(batches == name, eligible).var(0, ddof=1)) for name in names]
    ranks = np.array(ranks) / len(eligible)
    genes = eligible[np.lexsort((-ranks.mean(0), -np.median(ranks, 0)))[:2000]]
    scores, weights = {k: [] for k in SIZES}, []
    for name in names:
        rows = batches == name
        n = int(rows.sum())
        weights.append(n)
        expected, kept = neighbours(residuals(rows, genes), max(SIZES))[0], neighbours(values[rows], max(SIZES))[0]
        for k in SIZES:
            overlap = np.mean([len(np.intersect1d(a[:k], b[:k])) / k for a, b in zip(expected, kept)])
            scores[k].append(((n - 1) * overlap - k) / (n - 1 - k))
    found |= {f"rnx_k{k}": np.average(scores[k], weights=weights) for k in SIZES}
    pathlib.Path(output).write_text(json.dumps({name: float(value) for name, value in found.items()}))


def specification(directory, embedding, data, cells):
    outputs = {name: str((directory / f"{name}_{cells}").resolve()) for name in ("table", "record")}
    spec = directory / f"spec_{cells}.json"
    fields = {
        "embedding": str(embedding.resolve()),
        "data": str(data.resolve()),
        "embedding_file": embedding.name,
        "dataset": str(cells),
        "method": "bench",
        "label_key": "cell_type",
        "batch_key": "batch_id",
        "max_cells": MOST_CELLS,
        "seed": 0,
    }
    spec.write_text(json.dumps(fields | outputs))
    return spec, pathlib.Path(outputs["record"])


def print_memory(cost, cells, dims):
    """The peak beside what the documentation of `kernel::geometry` promises."""
    promised = 4 * (2 * dims + 2 * SELECTED) * min(cells, MOST_CELLS) + 300 * cells + 60_000_000
    print(f"{'':>9}    peak memory is {cost.peak / promised:.2f} of the formula's {promised // 1_000_000} MB")


def print_parts(record):
    document = json.loads(record.read_text())
    parts = (f"{phase['name']} {phase['seconds']:.2f} s" for phase in document["phases"])
    print(f"{'':>9}    {', '.join(parts)}")
    for note in document["notes"]:
        print(f"{'':>9}    {note}")


def print_values(record, theirs):
    document = json.loads(record.read_text())
    print_parts(record)
    for name, value in json.loads(theirs.read_text()).items():
        own = document["row"][name]
        print(f"{'':>9}    {name:<24} {'NA' if own is None else f'{own:.5f}':>10} {value:>10.5f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/scfoundry", help="the program to time")
    parser.add_argument("--cells", default="700,5000,20000,50000", help="numbers of cells")
    parser.add_argument("--dims", type=int, default=64, help="dimensions of the embeddings")
    parser.add_argument("--depth", type=float, default=1.0, help="how many counts a cell has, against the usual number")
    parser.add_argument("--ours-only", action="store_true", help="do not run the Python side")
    parser.add_argument("--runs", type=int, default=1, help="take the fastest of so many runs")
    parser.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("target/bench-geometry"))
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, *arguments = options.child
        return {"pair": write_pair, "python": run_python}[name](*arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    binary = str(pathlib.Path(options.binary).resolve())
    print_header()
    for cells in map(int, options.cells.split(",")):
        stem = f"{cells}_{options.dims}_{options.depth}.h5ad"
        embedding, data = (options.directory / f"{kind}_{stem}" for kind in ("embedding", "data"))
        if not embedding.exists():
            subprocess.run(child(__file__, "pair", embedding, data, cells, options.dims, options.depth), check=True)
        spec, record = specification(options.directory, embedding, data, cells)
        theirs = options.directory / f"python_{cells}.json"
        own = [binary, "kernel", "geometry", "--spec", str(spec.resolve())]
        if options.ours_only:
            (cost,) = in_turn(options.runs, own)
            print_own(cells, cost)
            print_memory(cost, cells, options.dims)
            print_parts(record)
            continue
        ours, reference = in_turn(options.runs, own, child(__file__, "python", embedding, data, theirs))
        print_pair(cells, ours, "scikit-learn, pynndescent", reference)
        print_memory(ours, cells, options.dims)
        print_values(record, theirs)


if __name__ == "__main__":
    sys.exit(main())
