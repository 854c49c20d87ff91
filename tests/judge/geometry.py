"""The metrics of geometry by their definitions, with numpy, scipy and scikit-learn.

Usage: geometry.py make EMBEDDING DATA CELLS DIMS GENES SEED   writes a seeded pair of files
       geometry.py judge EMBEDDING DATA                        prints the metrics as JSON
"""

import json
import sys
import warnings

import anndata
import numpy as np
import pandas as pd
from scipy import sparse, stats
from sklearn.neighbors import NearestNeighbors

warnings.filterwarnings("ignore")

SIZES = (15, 30, 50)
GENES = 2000
THETA = 100.0
LEAST_BATCH = 101


def make(embedding, data, cells, dims, genes, seed):
    """Counts of seven types in four batches, one of them too small; an embedding that knows some of it, some rows missing."""
    cells, dims, genes, seed = map(int, (cells, dims, genes, seed))
    rng = np.random.default_rng(seed)
    types, batches = 7, 4
    kind = rng.integers(0, types, cells)
    batch = rng.choice(batches, cells, p=[0.5, 0.3, 0.15, 0.05])
    batch[: LEAST_BATCH // 2] = 3
    batch[LEAST_BATCH // 2 :][batch[LEAST_BATCH // 2 :] == 3] = 0
    base = rng.gamma(0.5, 1.0, genes)
    profiles = base * np.exp(rng.normal(0, 1.0, (types, genes)) * (rng.random((types, genes)) < 0.2))
    depth = rng.lognormal(0, 0.4, cells)[:, None]
    counts = sparse.csr_matrix(rng.poisson(depth * profiles[kind]).astype(np.float32))
    names = [f"gene{index}" for index in range(genes)]
    names[:4] = ["MT-1", "rpl2", "ERCC-3", "Rps4"]
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical([f"type{value}" for value in kind]),
            "batch_id": pd.Categorical([f"batch{value}" for value in batch]),
        },
        index=[f"cell{index:05}" for index in range(cells)],
    )
    obs.loc[obs.index[5::97], "cell_type"] = np.nan
    anndata.AnnData(counts, obs=obs, var=pd.DataFrame(index=names)).write_h5ad(data)
    inner = np.log1p(counts.toarray()) @ rng.normal(0, 1 / np.sqrt(genes), (genes, dims))
    values = inner + rng.normal(0, 0.3, (types, dims))[kind] + 0.1 * batch[:, None] + rng.normal(0, 0.05, (cells, dims))
    values[:, 0] = 3.0
    values[1] = values[0]
    keep = rng.permutation(cells)[: cells - 11]
    anndata.AnnData(values[keep].astype(np.float32), obs=obs.iloc[keep]).write_h5ad(embedding)


def residuals(counts, library):
    """Clipped Pearson residuals of one batch; `counts` cells x genes."""
    mean = np.outer(library, counts.sum(0) / library.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        values = (counts - mean) / np.sqrt(mean + mean**2 / THETA)
    limit = np.sqrt(len(counts))
    return np.clip(np.where(mean > 0, values, 0.0), -limit, limit)


def neighbours(values, k):
    return NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(values).kneighbors()[1][:, :k]


def preservation(values, counts, library, names, batches):
    large = [name for name in np.unique(batches) if (batches == name).sum() >= LEAST_BATCH]
    rows = np.isin(batches, large)
    upper = [name.upper() for name in names]
    candidate = np.array([not name.startswith(("MT-", "ERCC-", "RPL", "RPS")) for name in upper])
    detected = (counts[rows] > 0).sum(0)
    eligible = np.flatnonzero(candidate & (detected >= 10) & (counts[rows].sum(0) >= 10))
    spaces, ranks = [], []
    for name in large:
        rows = batches == name
        space = residuals(counts[rows], library[rows])[:, eligible]
        spaces.append(space)
        ranks.append(stats.rankdata(space.var(0, ddof=1)) / len(eligible))
    ranks = np.array(ranks)
    order = np.lexsort((np.arange(len(eligible)), -detected[eligible], -ranks.mean(0), -np.median(ranks, 0)))
    chosen = order[:GENES]
    result = {size: [] for size in SIZES}
    weights = []
    for name, space in zip(large, spaces):
        rows = batches == name
        n = int(rows.sum())
        weights.append(n)
        expected, kept = neighbours(space[:, chosen], max(SIZES)), neighbours(values[rows], max(SIZES))
        for k in SIZES:
            overlap = np.mean([len(set(a[:k]) & set(b[:k])) / k for a, b in zip(expected, kept)])
            result[k].append(((n - 1) * overlap - k) / (n - 1 - k))
    found = {f"rnx_k{k}": float(np.average(result[k], weights=weights)) for k in SIZES}
    found["rnx_mean"] = float(np.mean(list(found.values())))
    return found | {"rnx_n_batches": len(large), "rnx_eligible_cells": sum(weights)}


def two_nearest(values):
    near = neighbours(values, 2)
    distances = np.linalg.norm(values[:, None, :] - values[near], axis=2)
    first, second = distances.min(1), distances.max(1)
    # A duplicate is exact in the file; arithmetic on it is the same for both cells.
    used = (first > 0) & (second > first)
    return float(used.sum() / np.log(second[used] / first[used]).sum()), int(used.sum())


def dummies(codes):
    return np.eye(codes.max() + 1)[codes]


def error(design, values):
    solution = np.linalg.lstsq(design, values, rcond=None)[0]
    return ((values - design @ solution) ** 2).sum(0)


def effects(values, labels, batches):
    used = labels.notna().to_numpy() & batches.notna().to_numpy()
    values = values[used]
    types, groups = (dummies(pd.factorize(column[used])[0]) for column in (labels, batches))
    one = np.ones((len(values), 1))
    full = error(np.hstack([one, types, groups]), values)
    total = ((values - values.mean(0)) ** 2).sum(0)
    varies = total > 1e-12
    found = {}
    for name, others in (("celltype", groups), ("batch", types)):
        effect = error(np.hstack([one, others]), values) - full
        found[f"partial_eta2_{name}"] = float((effect / (effect + full))[varies].mean())
    return found


def cosines(values, labels):
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    n = len(unit)
    pairs = rng.integers(0, n, (20_000, 2))
    spread = (unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(1).std()
    error = float(spread / np.sqrt(100_000))

    def inner(part):
        count = len(part)
        return float(((part.sum(0) ** 2).sum() - count) / (count * (count - 1)))

    classes = [unit[(labels == name).to_numpy()] for name in labels.dropna().unique()]
    within = np.mean([inner(part) for part in classes if len(part) > 1])
    means = np.array([part.mean(0) for part in classes])
    product = means @ means.T
    between = product[~np.eye(len(means), dtype=bool)].mean()
    found = {"aniso_cos": inner(unit), "aniso_cos_within_ct": within, "aniso_cos_between_ct": between}
    return {name: {"mean": float(value), "error": error} for name, value in found.items()}


def judge(embedding, data):
    embedded, data = anndata.read_h5ad(embedding), anndata.read_h5ad(data)
    names = sorted(embedded.obs_names)
    values = np.asarray(embedded[names].X, dtype=np.float64)
    data = data[names]
    counts = data.X.toarray().astype(np.float64)
    labels, batches = data.obs["cell_type"].astype(object), data.obs["batch_id"].astype(object)
    deviation = values.std(0)
    standard = np.where(deviation > 1e-8, (values - values.mean(0)) / np.where(deviation > 1e-8, deviation, 1), 0)
    covariance = standard.T @ standard / len(standard)
    ratio = np.trace(covariance) ** 2 / (covariance**2).sum()
    singular = np.linalg.svd(values, compute_uv=False)
    raw, raw_cells = two_nearest(values)
    scaled, scaled_cells = two_nearest(standard)
    return {
        "pr": float(ratio),
        "npr": float(ratio / values.shape[1]),
        "aniso_spec": float(singular[0] ** 2 / (values**2).sum()),
        "id_twonn_raw": raw,
        "id_twonn_raw_n_cells": raw_cells,
        "id_twonn_z": scaled,
        "id_twonn_z_n_cells": scaled_cells,
        **preservation(values, counts, counts.sum(1), data.var_names, batches.to_numpy()),
        **effects(standard, labels, batches),
        **cosines(values, labels),
    }


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(*sys.argv[2:])
        print("{}")
    else:
        json.dump(judge(*sys.argv[2:]), sys.stdout)
