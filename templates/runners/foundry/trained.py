"""The directory of a trained model: all that it takes to predict again, on another machine, without the published weights.

meta.json        what it is, the classes, how it was trained, and the digests of the next two
method.json      what the method needs beside the weights: the shape of the model, its genes
weights.pt       the weights, a state dictionary of torch
learning_curve.csv, learning_curve.svg, validation_report.json
"""

import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path

import torch

from .predictions import write_json
from .task import Refusal

FORMAT = "scfoundry_finetune/1"
CHECKED = ("method.json", "weights.pt")


class Folder:
    """A directory in the making; it has its name only when it is whole."""

    def __init__(self, path):
        self.path, self.partial = Path(path), Path(f"{path}.partial")
        shutil.rmtree(self.partial, ignore_errors=True)
        self.partial.mkdir(parents=True)

    def finish(self, meta, kept, state):
        write_json(self.partial / "method.json", kept)
        torch.save(state, self.partial / "weights.pt")
        digests = {name: digest(self.partial / name) for name in CHECKED}
        write_json(self.partial / "meta.json", {"format": FORMAT, **meta, "sha256": digests})
        os.replace(self.partial, self.path)


def load(path, method):
    """`(meta, kept, state)` of a trained model of this method."""
    path = Path(path)
    meta = table(path, "meta.json")
    if meta.get("format") != FORMAT:
        raise Refusal(f"{path} is no trained model", cause=f"meta.json has the format {meta.get('format')!r}, not {FORMAT!r}", hint=HINT)
    if meta["method"] != method:
        raise Refusal(f"the model in {path} is one of {meta['method']}, not of {method}", hint="leave `--method` out")
    for name in CHECKED:
        if not (path / name).is_file() or digest(path / name) != meta["sha256"][name]:
            raise Refusal(f"the model in {path} is damaged", cause=f"{name} is missing or not as it was written", hint=HINT)
    try:
        state = torch.load(path / "weights.pt", map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise Refusal(f"the model in {path} is damaged", cause=str(error).splitlines()[0], hint=HINT) from None
    return meta, table(path, "method.json"), state


HINT = "train it anew with `--reference`, or name a directory that `scfoundry finetune` has left"


def table(path, name):
    try:
        with open(path / name, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} is no trained model", cause=f"{name}: {error}", hint=HINT) from None


def digest(path):
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            found.update(part)
    return found.hexdigest()
