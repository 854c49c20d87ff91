"""Predicted labels and probabilities as tables, in the form in which `scfoundry transfer` writes them."""

import csv
import json
import os

import numpy as np

UNKNOWN = "unknown"  # the label of a cell of which the model reads nothing; its probabilities are empty
USUAL = 64  # cells at a time of a method that has no option for it


def probabilities(logits):
    """The softmax of each row, in double precision; rows of NaN stay so."""
    logits = np.asarray(logits, dtype=np.float64)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def labels(shares, classes):
    """The most probable class of each row, of equals the first; None for a row of NaN."""
    return [None if np.isnan(row[0]) else classes[int(row.argmax())] for row in shares]


def write(names, shares, classes, labels_path, probabilities_path):
    """Writes a line for each cell, in order."""
    found = labels(shares, classes)
    rows = ([name, UNKNOWN if label is None else label] for name, label in zip(names, found))
    table(labels_path, ["", "predicted_label"], rows)
    rows = ([name, *("" if np.isnan(value) else repr(float(value)) for value in row)] for name, row in zip(names, shares))
    table(probabilities_path, ["", *classes], rows)


def table(path, header, rows):
    """Tab separated values, whole or not at all."""
    with open(f"{path}.partial", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    os.replace(f"{path}.partial", path)


def write_json(path, document):
    with open(f"{path}.partial", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2, ensure_ascii=False)
        file.write("\n")
    os.replace(f"{path}.partial", path)


def predict_batch(spec):
    """Cells at a time where nothing is trained."""
    return spec.get("predict_batch_size") or USUAL
