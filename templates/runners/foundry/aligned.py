"""Embeds cells that a model reads as the counts of its own genes, of which few are not zero."""

import warnings

import numpy as np
import torch
from scipy import sparse

from . import devices
from .batches import Batches

# torch calls its sparse matrices a beta each time.
warnings.filterwarnings("ignore", message="Sparse")

STRETCH = 16384  # cells that are in memory at once, at least


def alignment(cells, genes, aliases=None):
    """A matrix (CSR, genes of the file x genes of the model) that turns counts into those of the model's genes.

    Columns of one gene are added up; genes that the file lacks stay zero. `aliases` gives the gene for other names.
    """
    columns, found = cells.match(set(genes), aliases)
    number = {gene: place for place, gene in enumerate(genes)}
    places = [number[gene] for gene in found]
    return sparse.csr_matrix((np.ones(len(found), np.float32), (columns, places)), (cells.genes, len(genes)))


def embed(task, cells, to_model, values, model, forward, dimensions, device, batch=None):
    """Gives the embedding of all cells, a row for each; NaN for a cell without a count of the model's genes.

    `values(counts)` is what the model takes for the counts of its genes (CSR); `forward` makes a row of each cell of a sparse
    tensor of them. `batch` is the number of cells at a time of a method that has no option for it.
    """
    model.to(device).eval()
    result = np.full((cells.count, dimensions), np.nan, dtype=np.float32)
    batches = Batches(task, batch or task.spec["batch_size"], task.spec.get("default_batch_size"))
    for start, counts in cells.stretches(max(STRETCH, batches.size or 1)):
        matrix = values(counts @ to_model)
        known = np.flatnonzero(np.diff(matrix.indptr))
        task.advance(matrix.shape[0] - len(known))

        def work(part):
            batch = matrix[part]
            arrays = (torch.from_numpy(array) for array in (batch.indptr, batch.indices, batch.data))
            batch = torch.sparse_csr_tensor(*arrays, size=batch.shape).to(device)
            with torch.inference_mode():
                result[start + part] = forward(batch).cpu().numpy()
            task.advance(len(part))

        with task.phase("model"):
            batches.run(known, work)
    devices.record(task)
    return result
