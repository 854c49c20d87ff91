"""Parts of the training by themselves: what is held out, what a step gathers where memory runs out, rates, scores.

    python tests/models/training_parts.py        prints ok
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "templates" / "runners"))
from foundry import scores
from foundry.labels import Labels, named
from foundry.learners import Learner, Recipe
from foundry.task import Task
from foundry.training import Trainer


def main():
    what_is_held_out()
    a_step_is_the_same_by_parts()
    rates()
    figures()
    assert [named(value) for value in (1.0, np.float32(2), 3, True, "B", 0.5)] == ["1", "2", "3", "True", "B", "0.5"]
    print("ok")


def what_is_held_out():
    labels = Labels.__new__(Labels)
    labels.classes, labels.codes = ["a", "b", "c", "d"], np.array([0] * 50 + [1] * 2 + [2] + [-1] * 4 + [3] * 7)
    training, held_out = labels.split(0.2, 0)
    assert not set(training) & set(held_out) and len(training) + len(held_out) == 60
    assert np.bincount(labels.codes[held_out], minlength=4).tolist() == [10, 1, 0, 1]
    assert (labels.split(0.2, 0)[1] == held_out).all() and (labels.split(0.2, 1)[1] != held_out).any()
    assert np.bincount(labels.codes[labels.split(0.99, 0)[0]], minlength=4).min() == 1


class Points:
    """Inputs of which the third batch, and every later one of more than `most` cells, finds no memory."""

    def __init__(self, rows, most):
        self.rows, self.most, self.asked = rows, most, []

    def sorted(self, part):
        return part

    def batch(self, part):
        self.asked.append(len(part))
        if len(self.asked) > 2 and len(part) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return [torch.from_numpy(self.rows[part])]


def trainer(points, size, recipe=Recipe(0.1, 0.0, "linear", 500, None), **spec):
    torch.manual_seed(0)
    learner = Learner({}, None, torch.nn.Linear(3, 3), 3, lambda classes: torch.nn.Linear(3, classes), recipe, (0,), "all")
    learner.start(4)
    codes = np.random.default_rng(1).integers(0, 4, len(points.rows))
    task = Task({"batch_size": 32, "epochs": 2, "seed": 0, **spec})
    made = Trainer(task, learner, points, codes, list("abcd"), np.arange(len(codes)), np.arange(0), torch.device("cpu"))
    made.size = size
    return made


def a_step_is_the_same_by_parts():
    rows = np.random.default_rng(0).normal(size=(32, 3)).astype(np.float32)
    whole = trainer(Points(rows, 32), 32)
    by_parts = trainer(Points(rows, 3), 8)
    lost = [made._step(np.arange(32), 1) for made in (whole, by_parts)]
    # Two parts of eight were done before the third found no memory: their gradient must not count twice.
    assert by_parts.inputs.asked[:4] == [8, 8, 8, 4] and set(by_parts.inputs.asked[5:]) == {2}, by_parts.inputs.asked
    assert by_parts.halvings == 2 and by_parts.size == 2
    assert abs(lost[0] - lost[1]) < 1e-4
    for one, other in zip(whole.learner.model.parameters(), by_parts.learner.model.parameters()):
        assert torch.allclose(one, other, atol=1e-6), (one, other)


def rates():
    rows = np.zeros((320, 3), dtype=np.float32)
    for schedule, last in [("linear", 1 / 18), ("cosine", 0.5 * (1 + np.cos(np.pi * 17 / 18))), (0.9, 0.9)]:
        made = trainer(Points(rows, 32), 32, Recipe(0.1, 0.0, schedule, 500, None))
        factors = []
        for made.done in range(20):
            factors.append(made._factor(1 + made.done // 10))
        assert max(factors) == 1.0 and factors[0] < factors[1] < 1 and abs(factors[-1] - last) < 1e-12, factors


def figures():
    # As scikit-learn has them for the pairs that can be judged: see src/kernel/classify/report.rs.
    truth, predicted = ["a", "a", "b", "b", "b", "c", None, "z"], ["a", "b", "b", "b", "d", "a", "a", "a"]
    report = scores.report(truth, predicted, list("abcde"))
    assert report["accuracy"]["value"] == 0.5 and abs(report["macro_f1"]["value"] - 0.2916666666666667) < 1e-15
    assert report["unknown"] == [{"label": "z", "cells": 1}] and report["judged"] == 6 and report["unlabelled"] == 1
    assert report["classes"][2]["precision"] is None and report["classes"][3]["recall"] is None
    assert scores.report(["a"], [None], ["a"])["accuracy"]["value"] is None


main()
