"""Cells as genes in the order of their expression: the input of Geneformer and of the models built like it.

A gene's value is its count over the total of the cell, times 10,000, over the gene's usual value (a median over many cells).
Source: Theodoris et al., Nature 2023.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import sequences
from .task import Refusal


class Ranks:
    """Turns cells into tokens: `first` and `last` stand around the genes, of which `length` in all are kept.

    `workers` is the number of cells that are sorted at a time.
    """

    def __init__(self, task, cells, tokens, medians, aliases, first=(), last=(), length=2048, workers=1):
        columns, genes = cells.match({gene for gene in tokens if gene in medians}, aliases)
        # Columns of one gene are added up.
        self.genes, places = np.unique(np.array(genes), return_inverse=True)
        self.place = np.full(cells.genes, -1)
        self.place[columns] = places
        self.tokens = np.array([tokens[gene] for gene in self.genes], dtype=np.int64)
        self.medians = np.array([medians[gene] for gene in self.genes], dtype=np.float64)
        self.first, self.last, self.length = list(first), list(last), length
        self.pool = ThreadPoolExecutor(workers)

    def of(self, counts):
        """The tokens of each cell of a CSR matrix; none at all for a cell without a known gene."""
        totals = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        room = self.length - len(self.first) - len(self.last)
        return list(self.pool.map(lambda cell: self._cell(counts, cell, totals[cell], room), range(counts.shape[0])))

    def _cell(self, counts, cell, total, room):
        stretch = slice(counts.indptr[cell], counts.indptr[cell + 1])
        places = self.place[counts.indices[stretch]]
        known = places >= 0
        genes, inverse = np.unique(places[known], return_inverse=True)
        if not len(genes):
            return np.empty(0, dtype=np.int64)
        values = np.bincount(inverse, weights=counts.data[stretch][known])
        values = values / total * 10_000 / self.medians[genes]
        # Ties stay in the order of the genes' names, whatever that of the file.
        order = np.argsort(-values, kind="stable")[:room]
        return np.concatenate([self.first, self.tokens[genes[order]], self.last]).astype(np.int64)


def start_after(tokens, settings, folder):
    """The number of <cls>, which a dictionary does not list: that after its last."""
    if settings.vocab_size != len(tokens) + 1:
        raise Refusal(
            f"the dictionaries in {folder} are not those of the model",
            cause=f"the model knows {settings.vocab_size} tokens, the dictionary has {len(tokens)} and <cls> follows",
        )
    return len(tokens)


def embed(task, cells, ranks, model, pool, dimensions, padding):
    """Embeds all cells; `pool(hidden, mask)` makes one row of each cell of what the encoder gives for its tokens."""

    def forward(tokens, mask):
        return pool(model(input_ids=tokens, attention_mask=mask.long()).last_hidden_state, mask)

    def sentences(first, counts):
        return [(tokens,) for tokens in ranks.of(counts)]

    return sequences.embed(task, cells, sentences, model, forward, dimensions, (padding,))
