"""Runs scanpy, igraph, scib-metrics and scikit-learn on seeded data and prints what they were given and gave, as JSON.

Usage: clusters.py CASE
  pbmc DEMO    the demo's cells: neighbours, connectivities, graph connectivity, Leiden
  overlap      5,000 cells of 12 overlapping classes: the same
  duplicates   cells that are there several times: connectivities and graph connectivity
  agreement    pairs of partitions
"""

import json
import os
import sys
import warnings

os.environ["JAX_PLATFORMS"] = "cpu"
warnings.filterwarnings("ignore")

import anndata
import numpy as np
import scanpy as sc
from scanpy._utils import get_igraph_from_adjacency
from scanpy._utils.random import set_igraph_random_state
from scib_metrics import graph_connectivity
from scib_metrics.nearest_neighbors import NeighborsResults
from sklearn import metrics

NEIGHBOURS = 15
SEEDS = range(10)
RESOLUTIONS = [0.1, 0.5, 1.0, 2.0, 3.0]


def pbmc(demo):
    adata = anndata.read_h5ad(demo)
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    sc.pp.highly_variable_genes(adata, n_top_genes=2000)
    adata = adata[:, adata.var["highly_variable"]].copy()
    sc.pp.scale(adata, max_value=10)
    sc.pp.pca(adata, n_comps=50, svd_solver="full")
    return adata.obsm["X_pca"].astype(np.float32), adata.obs["cell_type"].astype(str).to_numpy()


def overlap():
    rng = np.random.default_rng(5)
    weights = 0.8 ** np.arange(12)
    kinds = rng.choice(12, 5000, p=weights / weights.sum())
    values = rng.normal(0, 1.1, (12, 16))[kinds] + rng.normal(0, 1.0, (5000, 16))
    return values.astype(np.float32), np.array([f"class {kind}" for kind in kinds])


def duplicates():
    rng = np.random.default_rng(6)
    values = rng.normal(0, 1.0, (300, 5))[rng.integers(0, 300, 900)]
    values[:40] = 0.0
    return values.astype(np.float32), rng.choice(["a", "b", "c"], 900)


def nearest(values):
    """The other cells nearest to each cell, exact; equal distances by index."""
    values = values.astype(np.float64)
    rows = np.sqrt(((values[:, None] - values[None]) ** 2).sum(-1))
    np.fill_diagonal(rows, np.inf)
    indices = np.argsort(rows, axis=1, kind="stable")[:, : NEIGHBOURS - 1]
    return indices, np.take_along_axis(rows, indices, axis=1).astype(np.float32)


def with_itself(indices, distances):
    own = np.arange(len(indices))[:, None]
    return NeighborsResults(
        indices=np.hstack([own, indices]), distances=np.hstack([np.zeros_like(own, np.float32), distances])
    )


def neighbours(values, labels, by_scanpy):
    if by_scanpy:
        adata = anndata.AnnData(values)
        sc.pp.neighbors(adata, n_neighbors=NEIGHBOURS, use_rep="X", transformer="sklearn")
        stored, graph = adata.obsp["distances"], adata.obsp["connectivities"].tocsr()
        rows = [slice(*pair) for pair in zip(stored.indptr, stored.indptr[1:])]
        order = [np.argsort(stored.data[row], kind="stable") for row in rows]
        indices = np.array([stored.indices[row][by] for row, by in zip(rows, order)])
        distances = np.array([stored.data[row][by] for row, by in zip(rows, order)], dtype=np.float32)
        assert indices.shape[1] == NEIGHBOURS - 1 and (distances > 0).all()
    else:
        indices, distances = nearest(values)
        graph = with_itself(indices, distances).knn_graph_connectivities.tocsr()
    graph.sort_indices()
    return graph, {
        "labels": labels.tolist(),
        "indices": indices.ravel().tolist(),
        "distances": distances.ravel().astype(float).tolist(),
        "graph_indptr": graph.indptr.tolist(),
        "graph_indices": graph.indices.tolist(),
        "graph_weights": graph.data.astype(float).tolist(),
        "graph_connectivity": float(graph_connectivity(with_itself(indices, distances), labels)),
    }


def run(graph, resolution, seed):
    with set_igraph_random_state(seed):
        return graph.community_leiden(
            objective_function="modularity", weights="weight", resolution=resolution, n_iterations=2
        )


def sweep(graph, labels, seed):
    """Every resolution; the match that the product defines."""
    wanted, found = len(set(labels)), []
    steps = [step / 10 for step in range(1, 31)] + [3.5 + step / 2 for step in range(6)]
    for resolution in steps:
        if resolution > 3 and max(count for _, count, *_ in found) >= wanted:
            break
        part = run(graph, resolution, seed)
        nmi = metrics.normalized_mutual_info_score(labels, part.membership)
        ari = metrics.adjusted_rand_score(labels, part.membership)
        found.append((resolution, len(part), nmi, ari))
    resolution, count, nmi, ari = min(found, key=lambda one: (abs(one[1] - wanted), -one[2], one[0]))
    return {"resolution": resolution, "clusters": count, "nmi": nmi, "ari": ari}


def clusters(values, labels):
    adjacency, answer = neighbours(values, labels, True)
    graph = get_igraph_from_adjacency(adjacency)
    parts = [[run(graph, resolution, seed) for seed in SEEDS] for resolution in RESOLUTIONS]
    answer["resolutions"] = RESOLUTIONS
    answer["modularity"] = [
        [graph.modularity(part.membership, weights="weight", resolution=resolution) for part in runs]
        for resolution, runs in zip(RESOLUTIONS, parts)
    ]
    answer["memberships"] = [runs[0].membership for runs in parts]
    answer["sweeps"] = [sweep(graph, labels, seed) for seed in SEEDS]
    return answer


def agreement():
    rng = np.random.default_rng(7)
    pairs = [([0], [0]), ([0], [3]), ([0, 0], [0, 1]), ([0, 1], [0, 0]), ([0, 1, 2], [2, 1, 0]), ([0] * 9, [4] * 9)]
    for _ in range(200):
        cells = int(rng.integers(2, 400))
        truth = rng.integers(0, rng.integers(1, 30), cells)
        predicted = np.where(rng.random(cells) < rng.random(), truth, rng.integers(0, rng.integers(1, 60), cells))
        pairs.append((truth.tolist(), predicted.tolist()))
    truth = rng.integers(0, 20, 200_000)
    pairs.append((truth.tolist(), np.where(rng.random(200_000) < 0.7, truth, rng.integers(0, 25, 200_000)).tolist()))
    return [
        {
            "truth": truth,
            "predicted": predicted,
            "values": [
                metrics.normalized_mutual_info_score(truth, predicted),
                metrics.homogeneity_score(truth, predicted),
                metrics.completeness_score(truth, predicted),
                metrics.fowlkes_mallows_score(truth, predicted),
                metrics.adjusted_rand_score(truth, predicted),
            ],
        }
        for truth, predicted in pairs
    ]


case = sys.argv[1]
if case == "pbmc":
    result = clusters(*pbmc(sys.argv[2]))
elif case == "overlap":
    result = clusters(*overlap())
elif case == "duplicates":
    result = neighbours(*duplicates(), False)[1]
else:
    result = agreement()
json.dump(result, sys.stdout)
