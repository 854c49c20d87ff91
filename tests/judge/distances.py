"""Neighbours, silhouettes and k-means of scikit-learn on seeded embeddings, as JSON.

Usage: distances.py REQUESTS, a JSON list of objects:
  seed, cells, dims, classes   the embedding: normal cells around normal centres
  spread, offset               standard deviation of the centres; what is added to every coordinate
  k                            neighbours, the cell itself not counted
  clusters                     clusters for k-means, 0 for none
Prints a list of answers in the same order.
"""

import json
import sys

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_samples, silhouette_score
from sklearn.neighbors import NearestNeighbors


def answer(request):
    rng = np.random.default_rng(request["seed"])
    codes = rng.integers(request["classes"], size=request["cells"])
    centres = request["spread"] * rng.normal(size=(request["classes"], request["dims"]))
    cells = request["offset"] + centres[codes] + rng.normal(size=(request["cells"], request["dims"]))
    cells = cells.astype(np.float32)
    exact = cells.astype(np.float64)
    # Moving all cells changes no distance; scikit-learn's own formula loses digits far from the origin.
    moved = exact - exact.mean(axis=0)
    distances, indices = NearestNeighbors(n_neighbors=request["k"], algorithm="brute").fit(moved).kneighbors()
    result = {
        "values": cells.ravel().tolist(),
        "labels": [f"type {code:02}" for code in codes],
        "indices": indices.ravel().tolist(),
        "distances": distances.ravel().tolist(),
        "silhouettes": silhouette_samples(moved, codes).tolist(),
        "asw": float(silhouette_score(moved, codes)),
    }
    if request["clusters"]:
        result["inertia"] = float(KMeans(request["clusters"], n_init=10, random_state=0).fit(moved).inertia_)
    return result


json.dump([answer(request) for request in json.loads(sys.argv[1])], sys.stdout)
