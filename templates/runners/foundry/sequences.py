"""Embeds cells that a model reads as sequences of tokens, in batches of like length, the longest first."""

import numpy as np
import torch

from . import devices
from .batches import Batches

STRETCH = 4096  # cells that are in memory at once, at least


def embed(task, cells, sentences, model, forward, dimensions, padding=(0,), batch=None):
    """Gives the embedding of all cells, a row for each; NaN for a cell without tokens.

    `sentences(first, counts)` gives each cell of a stretch as a tuple of arrays of one length: tokens, and what the model takes
    with each of them. `forward(*arrays, mask)` makes a row of each cell of a batch, whose arrays are filled up with `padding`.
    `batch` is the number of cells at a time of a method that has no option for it.
    """
    device = devices.choose(task)
    model.to(device).eval()
    result = np.full((cells.count, dimensions), np.nan, dtype=np.float32)
    batches = Batches(task, batch or task.spec["batch_size"], task.spec.get("default_batch_size"))
    for first, counts in cells.stretches(max(STRETCH, 16 * (batches.size or 1))):
        with task.phase("tokens"):
            read = sentences(first, counts)
        lengths = np.array([len(cell[0]) for cell in read])
        order = np.argsort(-lengths, kind="stable")
        known = order[lengths[order] > 0]
        task.advance(len(order) - len(known))

        def work(part):
            arrays = [torch.from_numpy(array).to(device) for array in padded([read[cell] for cell in part], padding)]
            with torch.inference_mode():
                result[first + part] = forward(*arrays).float().cpu().numpy()
            task.advance(len(part))

        with task.phase("model"):
            batches.run(known, work)
    devices.record(task)
    return result


def padded(sentences, padding):
    """The arrays of several cells, filled up to one length, and where they are not filled up."""
    lengths = np.array([len(cell[0]) for cell in sentences])
    mask = np.arange(lengths.max()) < lengths[:, None]
    arrays = []
    for kind, value in enumerate(padding):
        array = np.full(mask.shape, value, dtype=sentences[0][kind].dtype)
        array[mask] = np.concatenate([cell[kind] for cell in sentences])
        arrays.append(array)
    return *arrays, mask
