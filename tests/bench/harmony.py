#!/usr/bin/env python3
"""Times `scfoundry kernel harmony` against scanpy and harmonypy, as whole processes on the same files.

    python tests/bench/harmony.py --binary target/release/scfoundry [--cells 10000,50000]

Run it with a Python that has both, on a quiet machine. The counts are synthetic: negative binomial, 15 cell types in 4
batches, each with factors of its own on all genes, 5,000 genes, from a fixed seed; the .h5ad files stay in --directory and
are used again. Prints wall time, CPU time and peak memory of each process with their ratios, the seconds of the correction
alone, and how well batches and types are told apart in each embedding (mean LISI of 2,000 cells).
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

from processes import child, in_turn, print_header, print_pair

GENES = 5000
TYPES = 15
BATCHES = 4
SEED = 20261203
RECIPE = {"seurat_n_hvg": 2000, "seurat_n_pcs": 30}


def write_counts(path, cells):
    """Sparse counts, made a thousand cells at a time so that memory stays small."""
    import anndata
    import numpy as np
    import pandas as pd
    from scipy import sparse

    path, cells = pathlib.Path(path), int(cells)
    rng = np.random.default_rng(SEED)
    base = rng.gamma(0.35, 0.45, GENES)
    profiles = base * np.exp(rng.normal(0, 1.2, (TYPES, GENES)) * (rng.random((TYPES, GENES)) < 0.1))
    factors = np.exp(rng.normal(0, 0.35, (BATCHES, GENES)))
    shares = 0.9 ** np.arange(TYPES)
    kinds, batches = rng.choice(TYPES, cells, p=shares / shares.sum()), rng.integers(0, BATCHES, cells)
    blocks = []
    for first in range(0, cells, 1000):
        kind, batch = kinds[first : first + 1000], batches[first : first + 1000]
        mean = rng.lognormal(0, 0.35, len(kind))[:, None] * profiles[kind] * factors[batch]
        blocks.append(sparse.csr_matrix(rng.poisson(rng.gamma(2.0, mean / 2.0)).astype(np.float32)))
    matrix = sparse.vstack(blocks, format="csr")
    obs = pd.DataFrame({"batch_id": [f"b{b}" for b in batches], "cell_type": [f"t{k}" for k in kinds]})
    obs.index = [f"cell{index}" for index in range(cells)]
    adata = anndata.AnnData(matrix, obs=obs)
    adata.var_names = [f"gene{index}" for index in range(GENES)]
    part = path.with_suffix(".part")
    adata.write_h5ad(part, compression="gzip")
    part.rename(path)
    print(f"{path}: {cells} cells, {matrix.nnz / cells / GENES:.1%} of {GENES} genes seen", file=sys.stderr)


def run_python(data, output):
    """The recipe in scanpy and harmonypy; the child process of `measure`."""
    import logging

    import anndata
    import harmonypy
    import scanpy as sc

    logging.disable(logging.CRITICAL)
    adata = sc.read_h5ad(data)
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    sc.pp.highly_variable_genes(adata, n_top_genes=RECIPE["seurat_n_hvg"], flavor="seurat")
    adata = adata[:, adata.var["highly_variable"]].copy()
    sc.pp.scale(adata, max_value=10)
    sc.pp.pca(adata, n_comps=RECIPE["seurat_n_pcs"], random_state=0)
    start = time.monotonic()
    found = harmonypy.run_harmony(adata.obsm["X_pca"].astype(float), adata.obs[["batch_id"]].astype(object), "batch_id", theta=2.0)
    seconds = time.monotonic() - start
    corrected = found.Z_corr if found.Z_corr.shape[0] == adata.n_obs else found.Z_corr.T
    result = anndata.AnnData(corrected, obs=adata.obs)
    result.uns["seconds"] = seconds
    result.write_h5ad(output)


def print_scores(*paths):
    """For each embedding the mean LISI of its batches and of its types, over the same 2,000 cells."""
    import anndata
    import harmonypy
    import numpy as np

    for path in paths:
        adata = anndata.read_h5ad(path)
        chosen = np.random.default_rng(0).choice(adata.n_obs, min(2000, adata.n_obs), replace=False)
        obs = adata.obs.iloc[chosen].astype(str)
        lisi = harmonypy.compute_lisi(np.asarray(adata.X[chosen]), obs, ["batch_id", "cell_type"]).mean(axis=0)
        print(f"batches {lisi[0]:.2f} of {BATCHES}, types {lisi[1]:.2f}; {float(adata.uns.get('seconds', 0)):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/scfoundry", help="the program to time")
    parser.add_argument("--cells", default="10000,20000,50000", help="numbers of cells")
    parser.add_argument("--runs", type=int, default=1, help="take the fastest of so many runs")
    parser.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("target/bench-harmony"))
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, *arguments = options.child
        return {"counts": write_counts, "python": run_python, "scores": print_scores}[name](*arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(
        [sys.executable, "-c", "from importlib.metadata import version; print(version('harmonypy'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()
    print_header()
    for cells in map(int, options.cells.split(",")):
        folder = options.directory / str(cells)
        folder.mkdir(exist_ok=True)
        data = options.directory / f"counts_{cells}.h5ad"
        if not data.exists():
            subprocess.run(child(__file__, "counts", data, cells), check=True)
        ours, theirs, spec = folder / "ours.h5ad", folder / "theirs.h5ad", folder / "spec.json"
        told = {"data": str(data.resolve()), "output": str(ours.resolve()), "batch_key": "batch_id", **RECIPE}
        spec.write_text(json.dumps(told))
        binary = str(pathlib.Path(options.binary).resolve())
        kernel = [binary, "kernel", "harmony", "--spec", str(spec.resolve())]
        costs = in_turn(options.runs, kernel, child(__file__, "python", data, theirs))
        print_pair(cells, costs[0], f"scanpy, harmonypy {version}", costs[1])
        scores = subprocess.run(child(__file__, "scores", ours, theirs), check=True, capture_output=True, text=True)
        mine, other = scores.stdout.splitlines()
        phases = json.loads((folder / "usage.json").read_text())["phases"]
        own = next(phase["seconds"] for phase in phases if phase["name"] == "correction")
        seconds = float(other.split("; ")[1])
        print(f"           correction alone {own:.2f} s, {seconds:.2f} s ({seconds / own:.1f}x)")
        print(f"           LISI: ours {mine.split('; ')[0]}; theirs {other.split('; ')[0]}", flush=True)


if __name__ == "__main__":
    main()
