"""Training of models that read a cell as genes in the order of their expression."""

import json

from .encoders import Pooled
from .learners import Learner, head
from .ranks import Ranks


def keep(settings, tokens, medians, symbols, padding, length, first=(), last=()):
    """What such a model needs beside its weights: its shape, its genes, and what stands around them."""
    genes = sorted(gene for gene in tokens if gene in medians)
    known = set(genes)
    return {
        "config": json.loads(settings.to_json_string(use_diff=False)),
        "tokens": {gene: int(tokens[gene]) for gene in genes},
        "medians": {gene: float(medians[gene]) for gene in genes},
        "symbols": {symbol: gene for symbol, gene in symbols.items() if gene in known},
        "padding": int(padding),
        "length": int(length),
        "first": [int(token) for token in first],
        "last": [int(token) for token in last],
    }


def rank_learner(kept, model, pool, recipe, trained, workers=1, hidden=True):
    """A learner over `kept`; `pool` makes a row of the encoder's last layer, `hidden` says whether the head has an inner layer."""

    def reader(task, cells):
        tables = (kept["tokens"], kept["medians"], kept["symbols"])
        around = {"first": kept["first"], "last": kept["last"], "length": kept["length"]}
        ranks = Ranks(task, cells, *tables, **around, workers=workers)
        return lambda first, counts: [(tokens,) for tokens in ranks.of(counts)]

    config = kept["config"]
    size, dropout = config["hidden_size"], config["hidden_dropout_prob"]
    return Learner(
        kept, reader, Pooled(model, pool), size, lambda classes: head(size, classes, dropout, hidden), recipe, (kept["padding"],), trained
    )
