"""Facts of .h5ad files by anndata and numpy: one JSON object per file named on the command line."""

import json
import sys

import anndata
import numpy as np
import pandas as pd
import scipy.sparse as sp


def class_name(value):
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def classes(column):
    counts = pd.Series(column).dropna().value_counts()
    return {class_name(value): int(cells) for value, cells in counts.items() if cells > 0}


def facts(path):
    adata = anndata.read_h5ad(path)
    x = adata.X.toarray() if sp.issparse(adata.X) else np.asarray(adata.X)
    x = x.astype(np.float64)
    finite = x[np.isfinite(x)]
    non_zero = x != 0
    return {
        "cells": adata.n_obs,
        "genes": adata.n_vars,
        "nnz": int(non_zero.sum()),
        "sum": float(finite.sum()),
        "min": float(finite.min()),
        "max": float(finite.max()),
        "integer": bool(np.isfinite(x).all() and (x == np.trunc(x)).all()),
        "negative": int((finite < 0).sum()),
        "fractional": int((finite != np.trunc(finite)).sum()),
        "nan": int(np.isnan(x).sum()),
        "infinite": int(np.isinf(x).sum()),
        "empty_cells": int((non_zero.sum(axis=1) == 0).sum()),
        "empty_genes": int((non_zero.sum(axis=0) == 0).sum()),
        "median_cell_sum": float(np.median(np.where(np.isfinite(x), x, 0).sum(axis=1))),
        "median_cell_genes": float(np.median(non_zero.sum(axis=1))),
        "columns": {
            name: {"classes": classes(adata.obs[name]), "missing": int(adata.obs[name].isna().sum())}
            for name in adata.obs.columns
        },
    }


for path in sys.argv[1:]:
    try:
        print(json.dumps({"file": path, "facts": facts(path)}))
    except Exception as error:  # which files anndata cannot read is part of the test
        print(json.dumps({"file": path, "unreadable": str(error)}))
