"""Judges the embedding of a model that is trained on the input: by the same training in the package itself.

    python tests/models/integration.py scvi_denovo EMBEDDING.h5ad DATA.h5ad                      of an `embed`
    python tests/models/integration.py scvi_denovo EMBEDDING.h5ad QUERY.h5ad REFERENCE.h5ad      of the query of a transfer
    python tests/models/integration.py genes DATA.h5ad                                           that vary most, in batches

Prints the largest difference of a value, or the number of genes that scanpy does not choose.
"""

import contextlib
import sys
from pathlib import Path

import anndata
import numpy as np

EPOCHS, DIMENSIONS = 3, 10  # as the tests ask for them
GENES = 200


def main(method, embedding, data=None, *more):
    if method == "genes":
        return print(others(embedding))
    embedding, data = anndata.read_h5ad(embedding), anndata.read_h5ad(data)
    assert list(data.obs_names) == list(embedding.obs_names), "cells are lost or in another order"
    # What the packages print is no result.
    with contextlib.redirect_stdout(sys.stderr):
        expected = METHODS[method](data, *(anndata.read_h5ad(path) for path in more))
    assert expected.shape == embedding.shape, (expected.shape, embedding.shape)
    print(np.abs(expected - embedding.X).max())


def scvi_denovo(data, reference=None):
    import scvi

    trained = data.copy() if reference is None else reference
    scvi.settings.seed = 0
    scvi.model.SCVI.setup_anndata(trained, batch_key="batch_id")
    model = scvi.model.SCVI(trained, n_layers=2, n_latent=DIMENSIONS, gene_likelihood="nb")
    model.train(max_epochs=EPOCHS, enable_progress_bar=False)
    if reference is None:
        return model.get_latent_representation()
    query = scvi.model.SCVI.load_query_data(data, model)
    query.is_trained = True
    return query.get_latent_representation()


def others(path):
    """How many of the chosen genes scanpy would not choose; of genes of equal rank, either may take any."""
    import scanpy

    sys.path.insert(0, str(Path(__file__).parents[2] / "templates" / "runners"))
    from foundry import Cells, Task
    from foundry.aligned import alignment
    from foundry.groups import groups
    from foundry.variable import variable

    data = anndata.read_h5ad(path)
    scanpy.pp.highly_variable_genes(data, n_top_genes=GENES, flavor="seurat_v3", batch_key="batch_id")
    task = Task({"genes": {"ids": "any", "columns": []}})
    cells = Cells(task, path)
    chosen = variable(task, cells, alignment(cells, list(data.var_names)), groups(task, cells)[0], GENES)
    return GENES - int(data.var["highly_variable"].iloc[chosen].sum())


METHODS = {"scvi_denovo": scvi_denovo}

if __name__ == "__main__":
    main(*sys.argv[1:])
