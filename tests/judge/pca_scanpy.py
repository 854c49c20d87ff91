"""Runs the PCA recipe in scanpy and prints the counts that went in and what came out, as JSON.

Usage: pca_scanpy.py REQUESTS, a JSON list of objects:
  case        "random" (with seed, cells, genes), "pbmc" (the 700 cells that scanpy ships) or the path of an .h5ad file
  n_top       genes for highly_variable_genes, 0 for all
  n_comps     components, 0 to stop after the selection of genes
  scale       false for centring only
Prints a list of answers in the same order.
"""

import json
import sys
import warnings

import anndata
import numpy as np
import scanpy as sc
from scipy import sparse

warnings.filterwarnings("ignore")


def random_counts(seed, cells, genes):
    """Negative binomial counts of 24 types of unequal size, so that the leading components are well apart."""
    rng = np.random.default_rng(seed)
    types = 24
    weights = 0.85 ** np.arange(types)
    kind = rng.choice(types, cells, p=weights / weights.sum())
    base = rng.gamma(0.4, 1.0, genes)
    profiles = base * np.exp(rng.normal(0, 1.0, (types, genes)) * (rng.random((types, genes)) < 0.2))
    depth = rng.lognormal(0, 0.4, cells)[:, None]
    mean = depth * profiles[kind]
    return sparse.csr_matrix(rng.poisson(rng.gamma(2.0, mean / 2.0)).astype(np.float32))


def pbmc_counts():
    """Counts of the shipped 700 cells, recovered from log1p(count * factor of the cell)."""
    raw = sc.datasets.pbmc68k_reduced().raw.X.tocsr().astype(np.float64)
    values = np.expm1(raw.data)
    smallest = np.minimum.reduceat(values, raw.indptr[:-1])
    raw.data = np.round(values / np.repeat(smallest, np.diff(raw.indptr))).astype(np.float32)
    return raw.astype(np.float32)


def counts_of(request):
    if request["case"] == "random":
        return random_counts(request["seed"], request["cells"], request["genes"])
    if request["case"] == "pbmc":
        return pbmc_counts()
    counts = sparse.csr_matrix(anndata.read_h5ad(request["case"]).X).astype(np.float32)
    counts.sort_indices()
    return counts


def answer(request):
    counts = counts_of(request)
    counts.sort_indices()
    adata = anndata.AnnData(counts.copy())
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    kept = np.ones(adata.n_vars, dtype=bool)
    if request["n_top"]:
        table = sc.pp.highly_variable_genes(adata, n_top_genes=request["n_top"], flavor="seurat", inplace=False)
        kept = table["highly_variable"].to_numpy()
        dispersions = table["dispersions_norm"].fillna(-np.inf).to_numpy()
    result = {
        "columns": counts.shape[1],
        "indptr": counts.indptr.tolist(),
        "indices": counts.indices.tolist(),
        "values": counts.data.tolist(),
        "genes": np.flatnonzero(kept).tolist(),
    }
    if request["n_top"]:
        # Genes whose rank against the last one kept is decided by rounding alone.
        result["tied"] = np.flatnonzero(np.abs(dispersions - dispersions[kept].min()) < 1e-6).tolist()
    if not request["n_comps"]:
        return result
    adata = adata[:, kept].copy()
    if request.get("scale", True):
        sc.pp.scale(adata, max_value=10)
        result["mean"] = adata.var["mean"].tolist()
        result["sd"] = adata.var["std"].tolist()
    else:
        adata.X = adata.X.toarray()
    sc.pp.pca(adata, n_comps=request["n_comps"], svd_solver="full")
    result["variance"] = adata.uns["pca"]["variance"].tolist()
    result["variance_ratio"] = adata.uns["pca"]["variance_ratio"].tolist()
    result["components"] = adata.varm["PCs"].T.tolist()
    result["scores"] = adata.obsm["X_pca"].tolist()
    return result


json.dump([answer(request) for request in json.loads(sys.argv[1])], sys.stdout)
