"""What a method gives to be trained: a model that makes features of cells, a head that tells classes by them, and its recipe."""

from collections import namedtuple

import numpy as np
import torch
from torch import nn

from . import sequences
from .sequences import padded

# rate: of AdamW, at its highest. decay: of weights, not of biases and norms. schedule: "linear" or "cosine" down to nothing, or a
# factor for each epoch. warmup: steps, but never more than a tenth of all; None: a tenth. clip: of the gradient's norm; None: not.
Recipe = namedtuple("Recipe", "rate decay schedule warmup clip")


class Learner:
    """A model to be trained, or trained.

    `kept` can be written as JSON, and with it and the weights the method builds the same model again. `reader(task, cells)` gives
    `sentences(first, counts)` as `sequences.embed` takes it, with `padding`. `encoder(*arrays, mask)` makes rows of `features` of
    cells, and `head(classes)` gives the module that makes logits of them. `trained` says in words what is trained.
    """

    def __init__(self, kept, reader, encoder, features, head, recipe, padding, trained):
        self.kept, self.reader, self.features, self.head = kept, reader, features, head
        self.recipe, self.padding, self.trained = recipe, padding, trained
        self.model = nn.ModuleDict({"encoder": encoder})
        # Where no weight of it is trained, its rows do not change: they are computed once.
        self.frozen = not any(weight.requires_grad for weight in encoder.parameters())

    def start(self, classes):
        """Adds the head, whose weights are random."""
        self.model["head"] = self.head(classes)

    def logits(self, *arrays):
        """What is trained, of a batch of `inputs`."""
        return self.model["head"](arrays[0] if self.frozen else self.model["encoder"](*arrays))

    def inputs(self, task, cells, batch):
        """All cells of a file as what the trained part takes, and which of them have any token."""
        sentences = self.reader(task, cells)
        if self.frozen:
            with task.phase("features"):
                found = sequences.embed(
                    task, cells, sentences, self.model["encoder"], self.model["encoder"], self.features, self.padding, batch
                )
            return Features(found), ~np.isnan(found[:, 0])
        read = []
        with task.phase("tokens"):
            for first, counts in cells.stretches(sequences.STRETCH):
                read += [tuple(small(array) for array in cell) for cell in sentences(first, counts)]
        lengths = np.array([len(cell[0]) for cell in read])
        return Sequences(read, lengths, self.padding), lengths > 0


class Sequences:
    """Cells as tokens; they are padded when a batch is made of them."""

    def __init__(self, read, lengths, padding):
        self.read, self.lengths, self.padding = read, lengths, padding

    def sorted(self, part):
        """The cells with the longest first, so that batches are of like length."""
        return part[np.argsort(-self.lengths[part], kind="stable")]

    def batch(self, part):
        return [torch.from_numpy(array) for array in padded([self.read[cell] for cell in part], self.padding)]


class Features:
    """Cells as rows of an encoder that is not trained."""

    def __init__(self, rows):
        self.rows = torch.from_numpy(rows)

    def sorted(self, part):
        return part

    def batch(self, part):
        return [self.rows[part]]


def head(features, classes, dropout, hidden=True):
    """A linear layer for the classes, by default behind one of the features' own size, as encoders of the BERT kind have it."""
    first = [nn.Linear(features, features), nn.Tanh()] if hidden else []
    layers = nn.Sequential(*first, nn.Dropout(dropout), nn.Linear(features, classes))
    for layer in layers:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
    return layers


def small(array):
    return array.astype(np.int32) if array.dtype == np.int64 else array
