"""CellPLM (Wen et al., ICLR 2024): a transformer whose tokens are cells, each of them the sum of its genes' vectors.

Its attention (Flowformer: Wu et al., ICML 2022) runs across the cells of a group, so the groups are part of the result: the cells
of the file in its order, so many at a time as the batch size says.
"""

import json

import numpy as np
import torch
from foundry import Batches, Cells, Refusal, devices, main
from foundry.aligned import alignment
from foundry.checkpoints import fill, load, tensor
from foundry.files import damaged, present
from foundry.symbols import human
from torch import nn

STRETCH = 16384  # cells that are in memory at once, at most, but for a group that has more
SMALL = 1e-6  # added to flows, so that none is zero
NORMS = {"groupnorm": lambda size: nn.GroupNorm(4, size), "layernorm": nn.LayerNorm}


class Attention(nn.Module):
    """Each cell gives what flows out of it to the others, which compete for it."""

    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        for name in ("query", "key", "value", "out"):
            setattr(self, f"{name}_projection", nn.Linear(size, size))

    def forward(self, cells):
        maps = (self.query_projection, self.key_projection, self.value_projection)
        # Heads x cells x width.
        asked, keys, values = (layer(cells).view(len(cells), self.heads, -1).transpose(0, 1) for layer in maps)
        asked, keys = asked.sigmoid(), keys.sigmoid()
        incoming, outgoing = 1 / flow(asked, keys), 1 / flow(keys, asked)
        allocation = flow(asked, keys * outgoing.unsqueeze(-1)).sigmoid()
        competition = flow(keys, asked * incoming.unsqueeze(-1)).clamp(-1, 1).softmax(-1) * len(cells)
        heard = keys.transpose(1, 2) @ (values * competition.unsqueeze(-1))
        heard = (asked * incoming.unsqueeze(-1)) @ heard * allocation.unsqueeze(-1)
        return self.out_projection(heard.transpose(0, 1).reshape(len(cells), -1))


def flow(to, source):
    """What each of `to` gets of all of `source`: heads x cells."""
    return ((to + SMALL) @ (source.sum(1) + SMALL).unsqueeze(-1)).squeeze(-1)


class Layer(nn.Module):
    """The names are those of the published weights."""

    def __init__(self, size, heads):
        super().__init__()
        self.self_attn = Attention(size, heads)
        self._ff_block = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Identity(), nn.Linear(2 * size, size))
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, cells):
        cells = cells + self.self_attn(self.norm1(cells))
        return cells + self._ff_block(self.norm2(cells))


class Model(nn.Module):
    def __init__(self, path, settings):
        super().__init__()
        state = load(path)
        state = state.get("model_state_dict", state) if isinstance(state, dict) else {}
        self.register_buffer("genes", tensor(state, "embedder.feat_enc.emb", path))
        size = self.genes.shape[1]
        first = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Identity(), NORMS[settings["norm"]](size))
        self.first = fill(first, state, "embedder.extra_linear.", path)
        self.layers = nn.ModuleList(
            fill(Layer(size, settings["enc_head"]), state, f"encoder.layers.{number}.", path)
            for number in range(settings["enc_layers"])
        )
        self.norm = fill(nn.LayerNorm(size), state, "pre_latent_norm.norm.", path)
        inference = "latent.layers.1.inference.inference_"
        clusters = tensor(state, f"{inference}qyx.0.logits.weight", path).shape[0]
        wide, dimensions = (tensor(state, f"{inference}qzyx.{name}", path).shape[0] for name in ("0.weight", "2.mu.weight"))
        self.clusters = fill(nn.Linear(size, clusters), state, f"{inference}qyx.0.logits.", path)
        self.last = nn.Sequential(
            fill(nn.Linear(size + clusters, wide), state, f"{inference}qzyx.0.", path),
            nn.ReLU(),
            fill(nn.Linear(wide, dimensions), state, f"{inference}qzyx.2.mu.", path),
        )
        self.dimensions = dimensions

    def forward(self, counts):
        """The mean of each cell's Gaussian in its likeliest cluster."""
        cells = self.first(counts @ self.genes)
        for layer in self.layers:
            cells = layer(cells)
        cells = self.norm(cells)
        scores = self.clusters(cells)
        cluster = nn.functional.one_hot(scores.argmax(-1), scores.shape[-1]).to(cells.dtype)
        return self.last(torch.cat([cells, cluster], dim=-1))


def embed(task):
    path = task.model_folder()
    settings = config(path)
    with task.phase("load"):
        model = Model(path, settings)
    if len(settings["gene_list"]) != len(model.genes):
        cause = f"the one lists {len(settings['gene_list'])} genes, the other has {len(model.genes)}"
        raise Refusal(f"the config of {path} is not that of its weights", cause=cause)
    cells = Cells(task, task.spec["data"])
    to_model = alignment(cells, settings["gene_list"], human(task))
    device = devices.choose(task)
    model.to(device).eval()
    result = np.full((cells.count, model.dimensions), np.nan, dtype=np.float32)
    # Never found by trial: a size that depends on the machine would make the values depend on it.
    size = task.spec["default_batch_size"] if task.spec["batch_size"] == "auto" else task.spec["batch_size"]
    batches = Batches(task, size)
    size = batches.size
    for start, counts in cells.stretches(size * max(1, STRETCH // size)):
        counts = counts @ to_model
        counts.data = np.log1p(counts.data)
        for first in range(0, counts.shape[0], size):
            group = counts[first : first + size]
            known = np.flatnonzero(np.diff(group.indptr))
            task.advance(group.shape[0] - len(known))

            def work(part):
                rows = group[part]
                arrays = (torch.from_numpy(array) for array in (rows.indptr, rows.indices, rows.data))
                with torch.inference_mode():
                    values = model(torch.sparse_csr_tensor(*arrays, size=rows.shape).to(device))
                result[start + first + part] = values.cpu().numpy()
                task.advance(len(part))

            with task.phase("model"):
                batches.run(known, work)
    if batches.size < size:
        task.warn(
            f"memory ran out: cells attend to groups of {batches.size} in place of {size}, so the values are not those of "
            f"a machine with more memory; with --batch-size {batches.size} they depend on none"
        )
    devices.record(task)
    cells.write_embedding(result, task.spec["output"])


def config(path):
    """What the config beside the weights says, of a model of this kind."""
    ending = ".best.ckpt"
    file = present(path.with_name(path.name[: -len(ending)] + ".config.json" if path.name.endswith(ending) else "config.json"))
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
        kind = (settings["enc_mod"], settings["latent_mod"], settings["norm"])
        usable = min(settings["enc_layers"], settings["enc_head"], len(settings["gene_list"])) > 0
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(file, f"it is cut short or lacks {error}") from None
    if not usable or kind[:2] != ("flowformer", "gmvae") or kind[2] not in NORMS or settings.get("input_covariate"):
        cause = f"encoder, latent space and norm are {', '.join(map(str, kind))}"
        raise Refusal(f"{file} is that of a model of another kind", cause=cause)
    return settings


main(embed=embed)
