"""The genes that vary most between cells, by their counts.

A gene's variance is compared with that of genes of like mean, and its counts are cut off where they are far out; of several
batches, each has its own order of the genes and the median place counts. Source: Stuart et al., Cell 2019 (the "vst" of Seurat
3); the order over batches and the ties are those of scanpy's `flavor="seurat_v3"`.
"""

import numpy as np
from scipy import sparse

from .task import Refusal

SPANS = (0.3, 0.5, 1.0)  # share of the genes that each point of the curve is drawn by; more where that many are too few
FEWEST = 10  # genes that vary, for a curve to be drawn through them
STRETCH = 16384  # cells that are in memory at once


def variable(task, cells, to_genes, numbers, wanted):
    """The places, ascending, of the `wanted` most variable of the genes that `to_genes` turns counts into.

    `numbers` are those of the batches of the cells. The file is read twice, a stretch at a time.
    """
    batches, sizes = np.unique(numbers, return_counts=True)
    sizes = sizes[:, None].astype(np.float64)

    def sums(power, most=None):
        found = np.zeros((len(batches), to_genes.shape[1]))
        for first, counts in cells.stretches(STRETCH):
            counts = (counts @ to_genes).astype(np.float64)
            batch = np.searchsorted(batches, numbers[first : first + counts.shape[0]])
            if most is not None:
                rows = np.repeat(batch, np.diff(counts.indptr))
                counts.data = np.minimum(counts.data, most[rows, counts.indices])
            counts.data **= power
            ones = np.ones(len(batch))
            found += (sparse.csr_matrix((ones, (batch, np.arange(len(batch)))), (len(batches), len(batch))) @ counts).toarray()
        return found

    means = sums(1) / sizes
    variances = (sums(2) - sizes * means**2) / np.maximum(sizes - 1, 1)
    expected = np.array([usual(mean, variance) for mean, variance in zip(means, variances)])
    most = means + np.sqrt(sizes * expected)
    spread = sizes * means**2 + sums(2, most) - 2 * sums(1, most) * means
    spread /= np.maximum(sizes - 1, 1) * expected
    drawn = np.isfinite(expected).all(axis=1)
    if not drawn.any():
        raise Refusal(
            f"{cells.name} has too few cells or genes to tell which genes vary most",
            hint="`--integration_n_hvg 0` takes all genes",
        )
    if not drawn.all():
        task.warn(f"{(~drawn).sum()} of {len(batches)} batches are too small to choose genes by: the others have chosen")
    places = np.argsort(np.argsort(-spread[drawn], axis=1, kind="stable"), axis=1).astype(np.float64)
    places[places >= wanted] = np.nan
    votes = np.isfinite(places).sum(axis=0)
    median = np.full(len(votes), np.inf)
    median[votes > 0] = np.nanmedian(places[:, votes > 0], axis=0)
    return np.sort(np.lexsort((-votes, median))[:wanted])


def usual(means, variances):
    """The variance that a gene of this mean usually has; that of a gene which is the same in all cells is 1. NaN if unknown."""
    from skmisc.loess import loess

    expected = np.ones(len(means))
    varies = variances > 0
    for span in SPANS if varies.sum() >= FEWEST else ():
        try:
            curve = loess(np.log10(means[varies]), np.log10(variances[varies]), span=span, degree=2)
            curve.fit()
        except ValueError:
            continue
        expected[varies] = 10**curve.outputs.fitted_values
        return expected
    return np.full(len(means), np.nan)
