"""Runs harmonypy, and measures how well batches mix, for the judge of the harmony kernel.

Usage: harmony.py REQUESTS, a JSON list of objects whose "case" is one of
  exact   (seed, cells, dims, clusters, batches, block_size): random points, corrected from given centroids with the
          blocks in the order of the cells. Answers points, batches, centroids, corrected points, objectives, rounds.
  points  (seed, cells, dims, types, batches): random points of types in batches, with both.
  demo    (data, n_top, n_comps): counts of an .h5ad file, its principal components by scanpy, cell types and batches.
  score   (key: a case above, given: .npy of corrected points): scores before, after harmonypy's own run, and of the given.
Prints a list of answers in the same order.
"""

import json
import logging
import sys
import warnings

import harmonypy
import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

NEIGHBOURS = 15


def random_points(request):
    """Types as clouds around centres of their own; batches hold them in unequal parts, each cloud moved by the batch."""
    rng = np.random.default_rng(request["seed"])
    types, batches, dims = request.get("types", 6), request["batches"], request["dims"]
    centres = rng.normal(0, 4, (types, dims)) * np.linspace(2, 0.5, dims)
    offsets = rng.normal(0, 2, (batches, 1, dims)) + rng.normal(0, 0.5, (batches, types, dims))
    parts = rng.dirichlet(np.full(types, 3.0), batches)
    batch = rng.choice(batches, request["cells"], p=rng.dirichlet(np.full(batches, 5.0)))
    kind = np.array([rng.choice(types, p=parts[one]) for one in batch])
    points = centres[kind] + offsets[batch, kind] + rng.normal(0, 1, (request["cells"], dims))
    return points.astype(np.float32), np.char.add("b", batch.astype(str)), np.char.add("t", kind.astype(str))


def components(request):
    import scanpy as sc

    adata = sc.read_h5ad(request["data"])
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    sc.pp.highly_variable_genes(adata, n_top_genes=request["n_top"], flavor="seurat")
    adata = adata[:, adata.var["highly_variable"]].copy()
    sc.pp.scale(adata, max_value=10)
    sc.pp.pca(adata, n_comps=request["n_comps"], svd_solver="full")
    return adata.obsm["X_pca"], adata.obs["batch_id"].astype(str).to_numpy(), adata.obs["cell_type"].astype(str).to_numpy()


def points_of(request):
    return components(request) if request["case"] == "demo" else random_points(request)


def corrected(points, batches, **settings):
    table = pd.DataFrame({"batch": batches}).astype(object)
    # float64 throughout; its own default of 1 for theta is not the paper's.
    return harmonypy.run_harmony(points.astype(np.float64), table, "batch", theta=2.0, lamb=1.0, verbose=False, **settings)


def exact(request):
    points, batches, _ = random_points(request)
    units = points / np.linalg.norm(points, axis=1, keepdims=True)
    chosen = np.random.default_rng(request["seed"]).choice(len(points), request["clusters"], replace=False)
    centroids = units[chosen].astype(np.float32)
    np.random.shuffle = lambda order: None
    found = corrected(
        points,
        batches,
        nclust=request["clusters"],
        block_size=request["block_size"],
        cluster_fn=lambda data, count: centroids.astype(np.float64),
    )
    return {
        "points": points.ravel().tolist(),
        "batches": batches.tolist(),
        "centroids": centroids.ravel().tolist(),
        "corrected": found.Z_corr.T.ravel().tolist(),
        "objective": [float(value) for value in found.objective_harmony],
        "rounds": [int(rounds) + 1 for rounds in found.kmeans_rounds],
    }


def scores(points, batches, types):
    """Mean LISI of batches and types, and how often the majority of a cell's neighbours has its type."""
    from sklearn.neighbors import KNeighborsClassifier

    table = pd.DataFrame({"batch": batches, "type": types})
    lisi = harmonypy.compute_lisi(points, table, ["batch", "type"]).mean(axis=0)
    # Each cell is left out of its own neighbours.
    neighbours = KNeighborsClassifier(NEIGHBOURS).fit(points, types).kneighbors(return_distance=False)
    votes = pd.DataFrame(types[neighbours]).mode(axis=1)[0].to_numpy()
    return {"batch_lisi": float(lisi[0]), "type_lisi": float(lisi[1]), "accuracy": float((votes == types).mean())}


def score(request):
    points, batches, types = points_of(request["of"])
    given = np.load(request["given"])
    return {
        "before": scores(points, batches, types),
        "harmonypy": scores(corrected(points, batches).Z_corr.T, batches, types),
        "ours": scores(given, batches, types),
    }


def answer(request):
    if request["case"] == "exact":
        return exact(request)
    if request["case"] == "score":
        return score(request)
    points, batches, types = points_of(request)
    return {"points": points.ravel().tolist(), "batches": batches.tolist(), "types": types.tolist()}


json.dump([answer(request) for request in json.loads(sys.argv[1])], sys.stdout)
