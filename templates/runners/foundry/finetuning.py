"""The two actions of a method that can be trained: `train` leaves a directory, `predict` labels cells with it."""

import torch

from . import curves, devices, predictions, scores, sequences, trained
from .cells import Cells
from .labels import Labels, column
from .training import Trainer


def actions(method, learner):
    """The actions for `main`. `learner(task, kept)` builds the model: `kept` is what a trained one left of itself beside its
    weights; None: build it of the published weights."""
    return {"train": lambda task: train(task, method, learner), "predict": lambda task: predict(task, method, learner)}


def train(task, method, build):
    spec = task.spec
    cells = Cells(task, spec["reference"])
    with task.phase("load"):
        learner = build(task, None)
    device = devices.choose(task)
    learner.model.to(device)
    if spec.get("learning_rate"):
        learner.recipe = learner.recipe._replace(rate=spec["learning_rate"])
    inputs, usable = learner.inputs(task, cells, predictions.predict_batch(spec))
    labels = Labels(task, cells, spec["label_key"], usable)
    torch.manual_seed(spec["seed"])
    learner.start(len(labels.classes))
    learner.model.to(device)
    training, held_out = labels.split(spec["finetune_eval_size"], spec["seed"])
    if not len(held_out):
        task.warn("no class has two cells: none is held out, and the last epoch is kept")
    task.note(f"{len(training)} cells of {len(labels.classes)} classes to train with, {len(held_out)} held out")
    trainer = Trainer(task, learner, inputs, labels.codes, labels.classes, training, held_out, device)
    curve, best, report = trainer.run()
    with task.phase("save"):
        save(task, method, learner, labels, (training, held_out), curve, best, report)
    devices.record(task)


def save(task, method, learner, labels, parts, curve, best, report):
    spec = task.spec
    folder = trained.Folder(spec["model_folder"])
    curves.write_table(folder.partial / "learning_curve.csv", curve)
    curves.write_picture(folder.partial / "learning_curve.svg", curve, best)
    document = {"schema": 1, "method": method, "label_key": spec["label_key"], "classes": labels.classes, "notes": task.usage["warnings"]}
    predictions.write_json(folder.partial / "validation_report.json", {**document, "epoch": best, "scores": report})
    meta = {
        "scfoundry": spec["scfoundry"],
        "method": method,
        "model": spec["model"],
        "label_key": spec["label_key"],
        "classes": labels.classes,
        "cells_per_class": dict(zip(labels.classes, labels.counts().tolist())),
        "cells": {"trained": len(parts[0]), "held_out": len(parts[1]), "unlabelled": labels.unlabelled, "unreadable": labels.unreadable},
        "settings": {name: spec.get(name) for name in ("epochs", "batch_size", "predict_batch_size", "finetune_eval_size", "seed")},
        "recipe": {**learner.recipe._asdict(), "trained": learner.trained},
        "best_epoch": best,
        "best_by": "macro F1 of the cells held out" if len(parts[1]) else "none was held out: the last",
    }
    state = {name: value.detach().cpu().contiguous() for name, value in learner.model.state_dict().items()}
    folder.finish(meta, learner.kept, state)


def predict(task, method, build):
    spec = task.spec
    with task.phase("load"):
        meta, kept, state = trained.load(spec["model_folder"], method)
        classes = meta["classes"]
        learner = build(task, kept)
        learner.start(len(classes))
        learner.model.load_state_dict(state)
    cells = Cells(task, spec["query"])

    def forward(*arrays):
        return learner.model["head"](learner.model["encoder"](*arrays))

    sentences = learner.reader(task, cells)
    logits = sequences.embed(task, cells, sentences, learner.model, forward, len(classes), learner.padding, predictions.predict_batch(spec))
    shares = predictions.probabilities(logits)
    names = [str(name) for name in cells.data.obs_names]
    predictions.write(names, shares, classes, spec["labels"], spec["probabilities"])
    report(task, meta, cells, predictions.labels(shares, classes))


def report(task, meta, cells, found):
    """Writes how well the query's own labels were met, where it has some."""
    spec, key = task.spec, task.spec["label_key"]
    unread = sum(label is None for label in found)
    if unread:
        task.warn(
            f"{unread} of {cells.count} cells have no gene that the model knows: they are labelled "
            f"{predictions.UNKNOWN!r}, without probabilities, and not judged"
        )
    truth = column(cells, key)
    if truth is None:
        result = scores.without_labels(cells.count, f'the query has no obs column "{key}"')
    else:
        result = scores.report(truth, found, meta["classes"])
        for stranger in result["unknown"]:
            task.warn(f"{stranger['cells']} cells of the query are {stranger['label']!r}, which was not trained: they are not judged")
    document = {"schema": 1, "method": meta["method"], "label_key": key, "classes": meta["classes"], "notes": task.usage["warnings"]}
    predictions.write_json(spec["report"], {**document, "scores": result})
