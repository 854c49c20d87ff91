"""Runs the metrics of labels and batches in scib-metrics and scikit-learn; prints what went in and came out, as JSON.

Usage: mixing.py < REQUEST, a JSON object:
  case        "pbmc" (file: the path of pbmc_700.h5ad) or "blobs" (seed, cells: 8 overlapping types x 4 batches)
  folds       optional: the fold of each cell (-1: none) for the accuracy
  kbet        optional: true for kBET, which takes a while
"""

import json
import os
import sys
import warnings

os.environ["JAX_PLATFORMS"] = "cpu"
warnings.filterwarnings("ignore")

import anndata
import jax
import numpy as np
import scanpy as sc

jax.config.update("jax_enable_x64", True)

import scib_metrics
from scib_metrics.nearest_neighbors import NeighborsResults
from scib_metrics.utils import compute_simpson_index
from scipy import linalg, sparse
from scipy.special import chdtrc
from sklearn.model_selection import PredefinedSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors


def cells_of(request):
    if request["case"] == "pbmc":
        adata = anndata.read_h5ad(request["file"])
        sc.pp.normalize_total(adata, target_sum=1e4)
        sc.pp.log1p(adata)
        sc.pp.pca(adata, n_comps=30, svd_solver="full")
        rng = np.random.default_rng(7)
        points = adata.obsm["X_pca"].astype(np.float32)
        # Batches that mix unevenly: the odds follow the second component.
        batches = (rng.normal(size=len(points)) + points[:, 1] / points[:, 1].std() * 0.3 > 0).astype(int)
        return points, adata.obs["cell_type"].astype(str).to_numpy(), np.char.add("b", batches.astype(str))
    rng = np.random.default_rng(request["seed"])
    n = request["cells"]
    kind = rng.choice(8, n, p=np.array([30, 20, 15, 12, 10, 7, 4, 2]) / 100)
    batch = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    points = 2.2 * rng.normal(size=(8, 20))[kind] + rng.normal(size=(n, 20)) + 0.35 * rng.normal(size=(4, 20))[batch]
    return points.astype(np.float32), np.char.add("t", kind.astype(str)), np.char.add("b", batch.astype(str))


def neighbours(points, k):
    """Exact neighbours, the cell itself first; float64 distances rounded once."""
    distances, indices = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points.astype(np.float64)).kneighbors()
    own = np.arange(len(points))[:, None]
    distances = np.hstack([np.zeros((len(points), 1)), distances[:, : k - 1]]).astype(np.float32).astype(np.float64)
    return NeighborsResults(indices=np.hstack([own, indices[:, : k - 1]]), distances=distances)


def lisi(nn, classes, perplexity):
    codes = np.unique(classes, return_inverse=True)[1]
    return 1 / compute_simpson_index(
        knn_dists=nn.distances.astype(np.float64),
        knn_idx=nn.indices,
        row_idx=np.arange(len(codes))[:, None],
        labels=codes,
        n_labels=codes.max() + 1,
        perplexity=perplexity,
        tol=1e-12,
    )


def kbet_exact(graph, batches):
    """The steps of kbet_per_label for one label with a dense float64 eigendecomposition and exact neighbours."""
    n = graph.shape[0]
    k0 = min(70, max(10, int(n / len(np.unique(batches)) // 4)))
    parts, part = sparse.csgraph.connected_components(graph)
    if parts > 1:
        kept = np.flatnonzero(np.bincount(part)[part] >= 3 * k0)
        if len(kept) < 0.75 * n:
            return 0.0
        graph, batches = graph[kept][:, kept], batches[kept]
        n = len(kept)
    weights = graph.toarray().astype(np.float64)
    q = weights.sum(0)
    kernel = weights / np.outer(q, q)
    z = np.sqrt(kernel.sum(0))
    values, vectors = linalg.eigh(kernel / np.outer(z, z))
    order = np.argsort(-np.abs(values))[: min(100, n - 1)]
    values, vectors = values[order], vectors[:, order]
    scale = np.where(values.astype(np.float32) >= 1, 1.0, values / (1 - np.where(values.astype(np.float32) >= 1, 0, values)))
    embedding = (vectors * scale).astype(np.float32).astype(np.float64)
    found = NearestNeighbors(n_neighbors=k0, algorithm="brute").fit(embedding).kneighbors(return_distance=False)
    codes = np.unique(batches, return_inverse=True)[1]
    near = codes[np.hstack([np.arange(n)[:, None], found])]
    observed = np.stack([(near == b).sum(1) for b in range(codes.max() + 1)], 1)
    expected = np.bincount(codes) / n * (k0 + 1)
    statistic = ((observed - expected) ** 2 / expected).sum(1)
    return float((chdtrc(codes.max(), statistic) >= 0.05).mean())


def kbet(nn, labels, batches):
    graph = nn.knn_graph_connectivities.tocsr()
    exact, published = [], []
    for label in np.unique(labels):
        cells = np.flatnonzero(labels == label)
        if len(cells) < 12 or len(np.unique(batches[cells])) < 2:
            exact.append(None)
            published.append(None)
            continue
        part = graph[cells][:, cells]
        exact.append(kbet_exact(part, batches[cells]))
        # One label at a time: the reference lessens the dimensions of labels after a small one.
        only = NeighborsResults(indices=np.zeros((len(cells), 1), int), distances=np.zeros((len(cells), 1)))
        only.__dict__["knn_graph_connectivities"] = part
        published.append(float(scib_metrics.kbet_per_label(only, batches[cells], labels[cells])))
    graph.sort_indices()
    return {
        "indptr": graph.indptr.tolist(),
        "indices": graph.indices.tolist(),
        "weights": graph.data.astype(float).tolist(),
        "exact": exact,
        "published": published,
    }


def accuracy(points, labels, folds):
    folds = np.array(folds)
    kept = folds >= 0
    model = KNeighborsClassifier(5, algorithm="brute")
    scores = cross_val_score(model, points[kept].astype(np.float64), labels[kept], cv=PredefinedSplit(folds[kept]))
    return float(scores.mean())


def answer(request):
    points, labels, batches = cells_of(request)
    nn = neighbours(points, 90)
    result = {
        "dims": points.shape[1],
        "points": points.ravel().astype(float).tolist(),
        "labels": labels.tolist(),
        "batches": batches.tolist(),
        "indices": nn.indices[:, 1:].ravel().tolist(),
        "distances": nn.distances[:, 1:].ravel().astype(float).tolist(),
        "lisi_labels": lisi(nn, labels, 30.0).tolist(),
        "lisi_batches": lisi(nn, batches, 30.0).tolist(),
        "clisi": float(scib_metrics.clisi_knn(nn, labels, perplexity=30.0)),
        "ilisi": float(scib_metrics.ilisi_knn(nn, batches, perplexity=30.0)),
        "bras": float(scib_metrics.bras(points.astype(np.float64), labels, batches)),
    }
    if "folds" in request:
        result["accuracy"] = accuracy(points, labels, request["folds"])
    if request.get("kbet"):
        result["kbet"] = kbet(nn.subset_neighbors(50), labels, batches)
    return result


json.dump(answer(json.load(sys.stdin)), sys.stdout)
