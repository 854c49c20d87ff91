#!/usr/bin/env python3
"""Times `scfoundry kernel pca` against the same recipe in scanpy, as whole processes on the same files.

    python tests/bench/pca.py --binary target/release/scfoundry [--cells 5000,20000,50000] [--solvers arpack,full]

Run it with a Python that has scanpy, on a quiet machine. The counts are synthetic: negative binomial, 15 cell types,
5,000 genes, from a fixed seed; the .h5ad files stay in --directory and are used again. Prints wall time, CPU time and
peak memory of each process, their ratios, and how well the two embeddings agree (columns up to sign).
"""

import argparse
import json
import pathlib
import subprocess
import sys

from processes import child, measure

GENES = 5000
TYPES = 15
SEED = 20260901
RECIPE = {"n_top_genes": 2000, "n_comps": 50}


def counts(cells):
    """Sparse counts, made a thousand cells at a time so that memory stays small."""
    import numpy as np
    from scipy import sparse

    rng = np.random.default_rng(SEED)
    base = rng.gamma(0.35, 0.45, GENES)
    profiles = base * np.exp(rng.normal(0, 1.2, (TYPES, GENES)) * (rng.random((TYPES, GENES)) < 0.1))
    shares = 0.9 ** np.arange(TYPES)
    kinds = rng.choice(TYPES, cells, p=shares / shares.sum())
    blocks = []
    for first in range(0, cells, 1000):
        kind = kinds[first : first + 1000]
        mean = rng.lognormal(0, 0.35, len(kind))[:, None] * profiles[kind]
        blocks.append(sparse.csr_matrix(rng.poisson(rng.gamma(2.0, mean / 2.0)).astype(np.float32)))
    return sparse.vstack(blocks, format="csr")


def write_counts(path, cells):
    import anndata

    path, cells = pathlib.Path(path), int(cells)
    matrix = counts(cells)
    adata = anndata.AnnData(matrix)
    adata.obs_names = [f"cell{index}" for index in range(cells)]
    adata.var_names = [f"gene{index}" for index in range(GENES)]
    part = path.with_suffix(".part")
    adata.write_h5ad(part, compression="gzip")
    part.rename(path)
    print(f"{path}: {cells} cells, {matrix.nnz / cells / GENES:.1%} of {GENES} genes seen", file=sys.stderr)


def run_scanpy(data, output, solver):
    """The recipe in scanpy; the child process of `measure`."""
    import anndata
    import scanpy as sc

    adata = sc.read_h5ad(data)
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    sc.pp.highly_variable_genes(adata, n_top_genes=RECIPE["n_top_genes"], flavor="seurat")
    adata = adata[:, adata.var["highly_variable"]].copy()
    sc.pp.scale(adata, max_value=10)
    sc.pp.pca(adata, n_comps=RECIPE["n_comps"], svd_solver=solver, random_state=0)
    anndata.AnnData(adata.obsm["X_pca"], obs=adata.obs).write_h5ad(output)


def best(command, runs):
    """The run with the least wall time, and the largest peak of all."""
    measured = [measure(command) for _ in range(runs)]
    wall, cpu, _ = min(measured)
    return wall, cpu, max(peak for _, _, peak in measured)


def print_agreement(ours, theirs):
    """Smallest absolute correlation of the first 20 columns of two embeddings."""
    import anndata
    import numpy as np

    a, b = (np.asarray(anndata.read_h5ad(path).X, dtype=np.float64) for path in (ours, theirs))
    print(f"{min(abs(np.corrcoef(a[:, column], b[:, column])[0, 1]) for column in range(20)):.7f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/scfoundry", help="the program to time")
    parser.add_argument("--cells", default="5000,20000,50000", help="numbers of cells")
    parser.add_argument("--solvers", default="arpack,full", help="scanpy's svd_solver: arpack is its default")
    parser.add_argument("--runs", type=int, default=1, help="take the fastest of so many runs")
    parser.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("target/bench-pca"))
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, *arguments = options.child
        return {"counts": write_counts, "scanpy": run_scanpy, "agreement": print_agreement}[name](*arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    columns = "{:>7}  {:<24} {:>8} {:>8} {:>8}  {:>6} {:>7}  {}"
    print(columns.format("cells", "program", "wall s", "cpu s", "peak MB", "faster", "memory", "agreement"))
    for cells in map(int, options.cells.split(",")):
        data = options.directory / f"counts_{cells}.h5ad"
        if not data.exists():
            subprocess.run(child(__file__, "counts", data, cells), check=True)
        ours = options.directory / f"pca_{cells}.h5ad"
        spec = options.directory / f"spec_{cells}.json"
        spec.write_text(json.dumps({"data": str(data.resolve()), "output": str(ours.resolve()), **RECIPE}))
        binary = str(pathlib.Path(options.binary).resolve())
        wall, cpu, peak = best([binary, "kernel", "pca", "--spec", str(spec.resolve())], options.runs)
        print(columns.format(cells, "scfoundry", f"{wall:.2f}", f"{cpu:.2f}", peak // 1_000_000, "", "", ""))
        for solver in options.solvers.split(","):
            theirs = options.directory / f"scanpy_{cells}_{solver}.h5ad"
            their_wall, their_cpu, their_peak = best(child(__file__, "scanpy", data, theirs, solver), options.runs)
            agreement = subprocess.run(
                child(__file__, "agreement", ours, theirs), check=True, capture_output=True, text=True
            ).stdout.strip()
            ratios = f"{their_wall / wall:.1f}x", f"1/{their_peak / peak:.1f}"
            values = f"{their_wall:.2f}", f"{their_cpu:.2f}", their_peak // 1_000_000
            print(columns.format("", f"scanpy, {solver}", *values, *ratios, agreement), flush=True)


if __name__ == "__main__":
    main()
