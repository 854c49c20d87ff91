"""Training: steps that fit into memory, epochs, and the best of them kept."""

import math

import numpy as np
import torch

from . import scores
from .batches import Batches, is_out_of_memory, release
from .predictions import labels, predict_batch, probabilities


class Trainer:
    """Trains a learner on the cells `training` of `inputs`, whose classes are `codes`; judges it by the cells `held_out`."""

    def __init__(self, task, learner, inputs, codes, classes, training, held_out, device):
        self.task, self.learner, self.inputs, self.device = task, learner, inputs, device
        self.codes, self.classes, self.training, self.held_out = codes, classes, training, held_out
        self.batch, self.epochs, self.seed = int(task.spec["batch_size"]), int(task.spec["epochs"]), int(task.spec["seed"])
        # Cells at a time: fewer than of a step where memory ran out.
        self.size = self.batch
        self.halvings = 0
        self.judging = Batches(task, predict_batch(task.spec), self.batch)
        self.steps = math.ceil(len(training) / self.batch)
        self.optimizer = optimizer(learner.model, learner.recipe)
        self.done = 0

    def run(self):
        """Trains all epochs and leaves the model as it was after the best: `(curve, best epoch, report of that epoch)`.

        The best has the highest macro F1 on the cells held out, of equals the highest accuracy, then the earliest. Without held out
        cells it is the last.
        """
        curve, best, state, kept = [], None, None, None
        self.task.expect(self.epochs * len(self.training))
        for epoch in range(1, self.epochs + 1):
            with self.task.phase("train"):
                loss = self._train(epoch)
            with self.task.phase("validate"):
                line, report = self._judge(epoch, loss)
            curve.append(line)
            rank = (line["validation_macro_f1"], line["validation_accuracy"]) if len(self.held_out) else (epoch,)
            if best is None or rank > best:
                best, kept, state = rank, (epoch, report), trained_state(self.learner.model)
            self.task.note(told(line, self.epochs))
        self.learner.model.load_state_dict(state, strict=False)
        self.task.usage.update(batch_size_asked=self.batch, batch_size_used=self.size)
        self.task.usage["halvings"] += self.halvings
        self.task.usage.update(epochs=self.epochs, best_epoch=kept[0])
        return curve, *kept

    def _train(self, epoch):
        """One pass over the cells, in an order of its own; the mean loss of a cell."""
        train_mode(self.learner.model)
        order = np.random.default_rng([self.seed, epoch]).permutation(self.training)
        total = 0.0
        for first in range(0, len(order), self.batch):
            part = self.inputs.sorted(order[first : first + self.batch])
            total += self._step(part, epoch)
            self.task.advance(len(part))
        return total / len(order)

    def _step(self, part, epoch):
        """One step of the optimizer by the mean loss of `part`; gives the sum.

        Where memory runs out, what was gathered of the gradient is thrown away, and the step is done again by halves: each of its cells
        counts once, and no other.
        """
        while True:
            self.optimizer.zero_grad(set_to_none=True)
            try:
                loss = sum(self._gather(part[first : first + self.size], len(part)) for first in range(0, len(part), self.size))
                break
            except Exception as error:
                if not is_out_of_memory(error) or min(self.size, len(part)) == 1:
                    raise
                words = str(error).strip().splitlines()
            self._halve(part, words)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learner.recipe.rate * self._factor(epoch)
        if self.learner.recipe.clip:
            torch.nn.utils.clip_grad_norm_(self.learner.model.parameters(), self.learner.recipe.clip)
        self.optimizer.step()
        self.done += 1
        return loss

    def _gather(self, part, whole):
        """Adds the gradient of some cells of a step of `whole` cells; the sum of their losses."""
        arrays = [array.to(self.device) for array in self.inputs.batch(part)]
        truth = torch.from_numpy(self.codes[part]).to(self.device)
        loss = torch.nn.functional.cross_entropy(self.learner.logits(*arrays).float(), truth, reduction="sum")
        (loss / whole).backward()
        return float(loss.detach())

    def _halve(self, part, words):
        tried = min(self.size, len(part))
        self.size = tried // 2
        self.halvings += 1
        self.optimizer.zero_grad(set_to_none=True)
        self.task.note(f"{words[0] if words else 'out of memory'}: {tried} cells are too many, going on with {self.size} at a time")
        release()

    def _factor(self, epoch):
        """What of the highest rate this step takes."""
        recipe, all_steps = self.learner.recipe, self.steps * self.epochs
        warmup = all_steps // 10 if recipe.warmup is None else min(recipe.warmup, all_steps // 10)
        if self.done < warmup:
            return (self.done + 1) / (warmup + 1)
        if not isinstance(recipe.schedule, str):
            return recipe.schedule ** (epoch - 1)
        passed = (self.done - warmup) / max(1, all_steps - warmup)
        return 1 - passed if recipe.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * passed))

    def _judge(self, epoch, loss):
        rate = self.optimizer.param_groups[0]["lr"]
        line = {"epoch": epoch, "training_loss": loss, "learning_rate": rate}
        names = ("validation_loss", "validation_accuracy", "validation_macro_f1")
        if not len(self.held_out):
            return {**line, **dict.fromkeys(names)}, scores.without_labels(0, "no cell was held out")
        logits = self._logits(self.held_out)
        shares = probabilities(logits)
        truth = self.codes[self.held_out]
        lost = float(-np.log(np.maximum(shares[np.arange(len(truth)), truth], 1e-300)).mean())
        report = scores.report([self.classes[code] for code in truth], labels(shares, self.classes), self.classes)
        values = (lost, report["accuracy"]["value"], report["macro_f1"]["value"])
        return {**line, **dict(zip(names, values))}, report

    def _logits(self, cells):
        self.learner.model.eval()
        result = np.empty((len(cells), len(self.classes)), dtype=np.float32)
        place = {cell: row for row, cell in enumerate(cells)}

        def work(part):
            arrays = [array.to(self.device) for array in self.inputs.batch(part)]
            with torch.inference_mode():
                result[[place[cell] for cell in part]] = self.learner.logits(*arrays).float().cpu().numpy()

        self.judging.run(self.inputs.sorted(cells), work)
        return result


def optimizer(model, recipe):
    weights = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    decayed = [weight for _, weight in weights if weight.dim() > 1]
    plain = [weight for _, weight in weights if weight.dim() < 2]
    return torch.optim.AdamW([{"params": decayed, "weight_decay": recipe.decay}, {"params": plain, "weight_decay": 0.0}], lr=recipe.rate)


def train_mode(model):
    """Dropout works in what is trained only."""
    model.train()
    if not any(weight.requires_grad for weight in model["encoder"].parameters()):
        model["encoder"].eval()


def trained_state(model):
    """A copy of the weights that are trained."""
    names = {name for name, weight in model.named_parameters() if weight.requires_grad}
    return {name: value.detach().to("cpu", copy=True) for name, value in model.state_dict().items() if name in names}


def told(line, epochs):
    words = f"epoch {line['epoch']}/{epochs}: loss {line['training_loss']:.4f}"
    if line["validation_loss"] is None:
        return words
    accuracy, macro_f1 = line["validation_accuracy"], line["validation_macro_f1"]
    return f"{words}; held out: loss {line['validation_loss']:.4f}, accuracy {accuracy:.3f}, macro F1 {macro_f1:.3f}"
