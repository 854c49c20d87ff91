"""Compares embeddings with the files they were made from, both as anndata reads them.

usage: h5ad_compare.py SOURCES RESULTS
"""

import sys
import warnings
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
from scipy import sparse

warnings.filterwarnings("ignore")
sources, results = map(Path, sys.argv[1:])
compared = 0

for path in sorted(results.glob("*.h5ad")):
    source, result = anndata.read_h5ad(sources / path.name), anndata.read_h5ad(path)
    pd.testing.assert_frame_equal(source.obs, result.obs, check_exact=True, check_names=True)
    assert (source.obs.dtypes == result.obs.dtypes).all(), path
    assert list(result.var_names) == ["V1", "V2", "V3", "V4", "V5"], path
    assert result.X.dtype == np.float32 and result.X.shape == (source.n_obs, 5), path
    assert np.array_equal(result.X, np.sqrt(np.arange(result.X.size, dtype="f4")).reshape(result.X.shape)), path
    assert set(source.obsm) == set(result.obsm), path
    for key, old in source.obsm.items():
        new = result.obsm[key]
        if isinstance(old, pd.DataFrame):
            pd.testing.assert_frame_equal(old, new, check_exact=True)
        elif sparse.issparse(old):
            assert type(old) is type(new) and old.dtype == new.dtype and (old != new).nnz == 0, (path, key)
        else:
            assert old.dtype == new.dtype and np.array_equal(old, new, equal_nan=True), (path, key)
    uns = result.uns
    assert uns["scfoundry"]["method"] == "pca é" and uns["scfoundry"]["cells"] == source.n_obs, path
    assert uns["scfoundry"]["pca"]["total"] == 0.25 and uns["pca"]["variance_ratio"].tolist() == [0.5, 0.25], path
    assert list(uns["genes"]) == ["CD3E", ""] and len(uns["none"]) == 0, path

    def encoded(name, item):
        # The arrays of a sparse matrix have no marks of their own.
        if str(item.parent.attrs.get("encoding-type")) in ("csr_matrix", "csc_matrix"):
            return
        assert item.attrs.get("encoding-type") and item.attrs.get("encoding-version"), (path, name)

    with h5py.File(path) as file:
        encoded("/", file)
        file.visititems(encoded)
        assert file["X"].chunks is None
    # What anndata reads it can write.
    result.write_h5ad(path.with_suffix(".again"))
    compared += 1

assert compared >= 11, compared
