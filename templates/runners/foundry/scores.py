"""How well labels were predicted: the same figures, under the same names, as `scfoundry transfer` gives."""

import numpy as np


def report(truth, predicted, known):
    """Compares predicted labels with the true ones, of which some may be None.

    Judged are the cells whose label is among `known` and that have a prediction. Precision is null where a class was predicted of
    no cell, recall where it has none; macro F1 is the mean over the classes that are true or predicted of a judged cell.
    """
    known = set(known)
    pairs = [(true, found) for true, found in zip(truth, predicted) if true in known and found is not None]
    strangers = [true for true in truth if true is not None and true not in known]
    classes = sorted({name for pair in pairs for name in pair})
    number = {name: place for place, name in enumerate(classes)}
    confusion = np.zeros((len(classes), len(classes)), dtype=int)
    for true, found in pairs:
        confusion[number[true], number[found]] += 1
    rows = [of_class(name, place, confusion) for place, name in enumerate(classes)]
    reason = None if pairs else "no cell has a label that the model knows and a prediction"
    return {
        "cells": len(truth),
        "judged": len(pairs),
        "unlabelled": sum(true is None for true in truth),
        "unknown": [{"label": name, "cells": strangers.count(name)} for name in sorted(set(strangers))],
        "accuracy": score(np.trace(confusion) / len(pairs) if pairs else None, reason),
        "macro_f1": score(float(np.mean([row["f1"] for row in rows])) if pairs else None, reason),
        "classes": rows,
        "confusion": confusion.tolist(),
    }


def without_labels(cells, reason):
    """The report of cells that have no labels at all."""
    return {**report([None] * cells, [None] * cells, ()), "accuracy": score(None, reason), "macro_f1": score(None, reason)}


def of_class(name, place, confusion):
    cells, predicted = int(confusion[place].sum()), int(confusion[:, place].sum())
    right = int(confusion[place, place])
    return {
        "label": name,
        "cells": cells,
        "predicted": predicted,
        "precision": right / predicted if predicted else None,
        "recall": right / cells if cells else None,
        "f1": 2 * right / (cells + predicted),
    }


def score(value, reason):
    return {"value": None if value is None else float(value), "notes": [reason] if reason else []}
