"""Variants of a file, and a comparison with it.

    python tests/models/variants.py unknown|negative|reversed|shifted|unbatched|spatial DATA.h5ad OUTPUT.h5ad
    python tests/models/variants.py renamed DATA.h5ad OUTPUT.h5ad               genes by their older and other names
    python tests/models/variants.py wide DATA.h5ad OUTPUT.h5ad                  few cells, with more genes than a model reads
    python tests/models/variants.py versioned DATA.h5ad OUTPUT.h5ad WEIGHTS     genes numbered, symbols' identifiers in a column
    python tests/models/variants.py gaps|strangers|single DATA.h5ad OUTPUT.h5ad WEIGHTS     labels that are missing, unknown, all one
    python tests/models/variants.py compare DATA.h5ad EMBEDDING.h5ad WEIGHTS    of the versioned file: the largest difference
"""

import pickle
import sys
import tempfile
from pathlib import Path

import anndata
import numpy as np
from methods import cellfm
from scipy import sparse

EMPTY = [3, -1]  # cells that have only genes outside of the vocabulary


def main(kind, data, path, *weights):
    if kind == "compare":
        with tempfile.TemporaryDirectory() as folder:
            versioned(anndata.read_h5ad(data), *weights).write_h5ad(f"{folder}/v.h5ad")
            plain = anndata.read_h5ad(f"{folder}/v.h5ad")
        plain.var_names = plain.var["symbol"]
        plain.write_h5ad(f"{path}.plain")
        import judge

        return judge.main("geneformer", f"{path}.plain", *weights, path, "Geneformer-V2-316M")
    made = KINDS[kind](anndata.read_h5ad(data), *weights)
    made.write_h5ad(path)


def unknown(data):
    data.var_names = [f"no-gene-{number}" for number in range(data.n_vars)]
    return data


def negative(data):
    data.X = data.X.tocsr()
    data.X.data[5] = -1
    return data


def in_reverse(data):
    return data[::-1].copy()


def shifted(data):
    """Two batches, cell by cell in turn; in the second every third gene is counted ten times."""
    second = np.arange(data.n_obs) % 2 == 1
    factors = np.ones(data.shape)
    factors[np.ix_(second, np.arange(data.n_vars) % 3 == 0)] = 10
    data.X = data.X.multiply(factors).tocsr()
    data.obs["lane"] = np.where(second, "second", "first")
    return data


def unbatched(data):
    data.obs["batch_id"] = data.obs["batch_id"].astype(str).where(np.arange(data.n_obs) != 3)
    return data


def spatial(data):
    data.obsm["spatial"] = places(data.n_obs)
    return data


def places(cells):
    """Anywhere on a slide of a millimetre; two cells far from all others."""
    found = np.random.default_rng(0).uniform(0, 1000, (cells, 2))
    found[[3, -1]] = [[9e5, 9e5], [-9e5, 0]]
    return found


def versioned(data, weights):
    ids = identifiers(weights)
    without_genes(data, ids)
    data.var["symbol"] = list(data.var_names)
    data.var["ensembl_id"] = [f"{ids[symbol]}.7" if symbol in ids else "none" for symbol in data.var_names]
    data.var_names = np.arange(data.n_vars).astype(str)
    return data


def renamed(data):
    data.var_names = [f"{('OLD-', '', 'AS-')[number % 3]}{symbol}" for number, symbol in enumerate(data.var_names)]
    return data


def wide(data):
    few = data[:6]
    extra = np.random.default_rng(0).integers(1, 4, (few.n_obs, len(cellfm.EXTRA)))
    counts = sparse.hstack([few.X, extra]).tolil()
    # More than the 100,000 counts of a cell that the model was trained on.
    counts[0] = counts[0] * 1001
    made = anndata.AnnData(sparse.csr_matrix(counts, dtype=np.float32), few.obs.copy())
    made.var_names = [*few.var_names, *cellfm.EXTRA]
    return made


def gaps(data, weights):
    """Seven cells without a label, two without genes, and one that is the only one of its class."""
    without_genes(data, identifiers(weights))
    labels = data.obs["cell_type"].astype(object)
    labels.iloc[10:17] = None
    labels.iloc[20] = "Alone"
    data.obs["cell_type"] = labels.astype("category")
    return data


def strangers(data, weights):
    """Five cells of a class that no reference has, and two without genes."""
    without_genes(data, identifiers(weights))
    data.obs["cell_type"] = data.obs["cell_type"].cat.add_categories("Martian")
    data.obs.iloc[50:55, data.obs.columns.get_loc("cell_type")] = "Martian"
    return data


def single(data, weights):
    data.obs["cell_type"] = "B"
    return data


def identifiers(weights):
    with open(Path(weights, "Geneformer/geneformer/gene_name_id_dict_gc104M.pkl"), "rb") as file:
        return pickle.load(file)


def without_genes(data, ids):
    """Leaves some cells with nothing but genes that the model does not know."""
    counts = data.X.tolil()
    unlisted = [column for column, symbol in enumerate(data.var_names) if symbol not in ids]
    for cell in EMPTY:
        counts[cell] = 0
        counts[cell, unlisted] = 2
    data.X = counts.tocsr()


KINDS = {kind.__name__: kind for kind in (unknown, negative, renamed, shifted, spatial, unbatched, versioned, wide, gaps, strangers, single)}
KINDS["reversed"] = in_reverse

if __name__ == "__main__":
    main(*sys.argv[1:])
