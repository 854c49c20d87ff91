"""How well batches mix and labels hold together in an embedding.

    python tests/models/mixing.py EMBEDDING.h5ad

Prints two shares of the 15 nearest neighbours of a cell, on average: those of its own batch (obs `lane`; a half if they mix), and
those of its own label (obs `cell_type`).
"""

import sys

import anndata
import numpy as np

cells = anndata.read_h5ad(sys.argv[1])
points = np.asarray(cells.X, dtype=np.float64)
squares = (points**2).sum(1)
distances = squares[:, None] + squares - 2 * points @ points.T
np.fill_diagonal(distances, np.inf)
nearest = np.argsort(distances, axis=1)[:, :15]
for column in ("lane", "cell_type"):
    values = cells.obs[column].to_numpy()
    print((values[nearest] == values[:, None]).mean())
