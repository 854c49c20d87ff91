"""Fails unless embeddings keep what they must of the files they were made from.

Usage: embedding_keeps.py INPUT OUTPUT [INPUT OUTPUT]...
"""

import sys

import anndata
import numpy as np
import pandas as pd

for source_path, path in zip(sys.argv[1::2], sys.argv[2::2]):
    source, made = anndata.read_h5ad(source_path), anndata.read_h5ad(path)
    assert made.X.dtype == np.float32 and isinstance(made.X, np.ndarray), (path, made.X.dtype)
    assert made.n_obs == source.n_obs, path
    assert made.var_names.tolist() == [f"V{number + 1}" for number in range(made.n_vars)], path
    # Values, order, types, categories and their order.
    pd.testing.assert_frame_equal(made.obs, source.obs)
    assert set(made.obsm) == set(source.obsm), (path, list(made.obsm), list(source.obsm))
    for key in source.obsm:
        kept, original = np.asarray(made.obsm[key]), np.asarray(source.obsm[key])
        assert kept.dtype == original.dtype and np.array_equal(kept, original), (path, key)
    assert made.uns["scfoundry"]["method"] == "pca", path
    assert np.isfinite(made.X).all(), path
