"""Labels of cells: a column of obs as names, and which of the labelled cells are held out."""

import numpy as np
import pandas

from .task import Refusal


class Labels:
    """The labels of a reference to learn from.

    `classes` are sorted, `codes` has the place among them of each cell, -1 for one that is left out: without a label, or not among
    `usable`.
    """

    def __init__(self, task, cells, key, usable):
        names = column(cells, key)
        if names is None:
            raise Refusal(f"{cells.name} has no obs column {key!r}", hint="name the column with the labels by `--label-key`")
        labelled = np.array([name is not None for name in names], dtype=bool)
        self.unlabelled = int((~labelled).sum())
        self.unreadable = int((labelled & ~usable).sum())
        if self.unlabelled:
            task.warn(f"{self.unlabelled} of {cells.count} cells have no {key}: they are left out")
        if self.unreadable:
            task.warn(f"{self.unreadable} of {cells.count} cells have no gene that the model knows: they are left out")
        self.classes = sorted({name for name, use in zip(names, labelled & usable) if use})
        if len(self.classes) < 2:
            raise Refusal(
                f"there is nothing to learn from {key} of {cells.name}",
                cause=f"its cells have {len(self.classes)} class" + ("" if self.classes else "es") + ", two are the least",
                hint="name another column with `--label-key`",
            )
        number = {name: place for place, name in enumerate(self.classes)}
        self.codes = np.array([number[name] if use else -1 for name, use in zip(names, labelled & usable)])

    def counts(self):
        """The number of cells of each class."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes))

    def split(self, share, seed):
        """The cells to train with and those held out, as numbers of cells in order.

        Of each class the share is held out, rounded, yet at least one cell and never all: a class of one cell is only trained with.
        """
        random = np.random.default_rng(seed)
        held_out = []
        for code in range(len(self.classes)):
            of_class = np.flatnonzero(self.codes == code)
            number = min(max(round(share * len(of_class)), 1), len(of_class) - 1)
            held_out.extend(random.permutation(of_class)[:number])
        held_out = np.sort(np.array(held_out, dtype=np.int64))
        return np.setdiff1d(np.flatnonzero(self.codes >= 0), held_out), held_out


def column(cells, key):
    """The label of each cell, None where it is missing; None at all where there is no such column."""
    obs = cells.data.obs
    if key not in obs.columns:
        return None
    values = obs[key]
    return [None if missing else named(value) for value, missing in zip(values, pandas.isna(values))]


def named(value):
    """The name of a class: `1.0` and `1` are both "1"."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value)
