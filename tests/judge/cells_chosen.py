"""Fails unless files hold just the chosen cells of the files they were made from.

Usage: cells_chosen.py SOURCES RESULTS WHOLE, directories with files of the same names; RESULTS/rows.json says which rows. Those
in WHOLE have layers, raw and all of obsm too.
"""

import json
import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
from scipy import sparse

sources, results, whole = (Path(word) for word in sys.argv[1:])
chosen = json.loads((results / "rows.json").read_text())
columns = compared = layers = raws = 0


def assert_same_matrix(name, made, wanted):
    dense = [X.toarray() if sparse.issparse(X) else np.asarray(X) for X in (made, wanted)]
    np.testing.assert_array_equal(*dense, err_msg=name)


for name, rows in chosen.items():
    try:
        source = anndata.read_h5ad(sources / f"{name}.h5ad")
    except Exception:
        # Some files are there because anndata cannot read them; what was made of them without their layers it can.
        anndata.read_h5ad(results / f"{name}.h5ad")
        continue
    compared += 1
    made = anndata.read_h5ad(results / f"{name}.h5ad")
    wanted = source[rows]
    assert made.shape == wanted.shape, (name, made.shape, wanted.shape)
    if source.X is not None:
        assert sparse.issparse(made.X) == sparse.issparse(source.X), name
        assert made.X.dtype == source.X.dtype.newbyteorder("="), (name, made.X.dtype, source.X.dtype)
        assert_same_matrix(name, made.X, wanted.X)
        if sparse.issparse(made.X):
            assert made.X.format == "csr" and made.X.has_sorted_indices, name
    assert made.obs_names.tolist() == wanted.obs_names.tolist(), name
    pd.testing.assert_frame_equal(made.var, source.var)
    assert list(made.obs) == [column.replace("/", "_") for column in source.obs], name
    for column, original in zip(made.obs, source.obs):
        kept, there = made.obs[column], wanted.obs[original]
        if isinstance(kept.dtype, pd.CategoricalDtype):
            # anndata drops the categories that are not among the rows; here all stay.
            assert list(kept.cat.categories) == list(source.obs[original].cat.categories), (name, column)
            assert kept.cat.ordered == there.cat.ordered, (name, column)
            there = there.astype(kept.dtype)
        pd.testing.assert_series_equal(kept, there, check_names=False)
        columns += 1
    assert set(made.obsm) == set(source.obsm) & {"spatial"}, (name, set(made.obsm))
    if "spatial" in made.obsm:
        kept, there = np.asarray(made.obsm["spatial"]), np.asarray(wanted.obsm["spatial"])
        assert kept.dtype == there.dtype and np.array_equal(kept, there), name
    made = anndata.read_h5ad(whole / f"{name}.h5ad")
    assert set(made.layers) == set(source.layers), (name, set(made.layers))
    for key in source.layers:
        assert_same_matrix(name, made.layers[key], wanted.layers[key])
        layers += 1
    assert (made.raw is None) == (source.raw is None), name
    if source.raw is not None:
        assert_same_matrix(name, made.raw.X, source.raw.X[rows])
        pd.testing.assert_frame_equal(made.raw.var, source.raw.var)
        raws += 1
    for key in made.obsm:
        kept, there = made.obsm[key], wanted.obsm[key]
        assert np.array_equal(np.asarray(kept), np.asarray(there)), (name, key)
assert layers >= 1 and raws >= 1, (layers, raws)
assert compared >= 20 and columns >= 30, (compared, columns)
