"""scBERT (Yang et al., Nature Machine Intelligence 2022): the token after all genes, through a Performer.

The attention is FAVOR+ (Choromanski et al., ICLR 2021): exp(q·k) as the product of positive random features of q and of k.
"""

from pathlib import Path

import anndata
import numpy as np
import torch
from foundry import Cells, Refusal, main
from foundry.aligned import alignment
from foundry.checkpoints import fill, load, tensor
from foundry.files import damaged, present
from foundry.sequences import embed as embed_sequences
from torch import nn

# What lists the genes of the model in its order: the authors' example file, or a list made of it, a symbol a line.
ORDERS = ("gene_order.txt", "panglao_10000.h5ad")
FLOOR = 1e-4  # added to every feature, so that no sum of them is zero
STRETCH = 2048  # tokens of each cell that go through the widest layers at a time
LAYERS = "performer.net.layers."


class Attention(nn.Module):
    """Attention by random features, those that the weights carry."""

    def __init__(self, state, prefix, path):
        super().__init__()
        inner, size = tensor(state, f"{prefix}to_q.weight", path).shape
        self.register_buffer("projection", tensor(state, f"{prefix}fast_attention.projection_matrix", path))
        self.heads = inner // self.projection.shape[1]
        self.asked, self.keys, self.values = (
            fill(nn.Linear(size, inner, bias=False), state, f"{prefix}{name}.", path) for name in ("to_q", "to_k", "to_v")
        )
        self.out = fill(nn.Linear(inner, size), state, f"{prefix}to_out.", path)

    def forward(self, hidden, asking):
        """What the tokens `asking` hear of the tokens `hidden`, a head at a time: the features of all would fill any memory."""
        heard = self.out.bias
        maps = [layer.weight.chunk(self.heads) for layer in (self.asked, self.keys, self.values)]
        for *pieces, out in zip(*maps, self.out.weight.chunk(self.heads, dim=1)):
            asked, keys, values = (nn.functional.linear(*pair) for pair in zip((asking, hidden, hidden), pieces))
            # The largest exponent is taken off: of each token that asks, of all keys of a cell and never of its batch.
            asked, keys = self.features(asked, (-1,)), self.features(keys, (-2, -1))
            total = asked @ keys.sum(1).unsqueeze(-1)
            heard = heard + (asked @ (keys.transpose(1, 2) @ values) / total) @ out.T
        return heard

    def features(self, vectors, over):
        vectors = vectors * vectors.shape[-1] ** -0.25
        exponents = vectors @ self.projection.T
        less = vectors.square().sum(-1, keepdim=True) / 2 + exponents.amax(over, keepdim=True)
        # In place: nothing else takes as much memory.
        return exponents.sub_(less).exp_().add_(FLOOR)


class Layer(nn.Module):
    """Attention and two linear maps, each over what is normalised first and added to what goes in."""

    def __init__(self, state, prefix, path):
        super().__init__()
        wide, size = tensor(state, f"{prefix}1.fn.fn.w1.weight", path).shape
        self.norm = fill(nn.LayerNorm(size), state, f"{prefix}0.norm.", path)
        self.attention = Attention(state, f"{prefix}0.fn.", path)
        parts = ((nn.LayerNorm(size), "norm."), (nn.Linear(size, wide), "fn.fn.w1."), (nn.Linear(wide, size), "fn.fn.w2."))
        norm, first, second = (fill(module, state, f"{prefix}1.{name}", path) for module, name in parts)
        self.feed_forward = nn.Sequential(norm, first, nn.GELU(), second)

    def forward(self, hidden, tokens):
        """The last `tokens` tokens of each cell, after all have been heard."""
        normed = self.norm(hidden)
        hidden = hidden[:, -tokens:] + self.attention(normed, normed[:, -tokens:])
        return torch.cat([part + self.feed_forward(part) for part in hidden.split(STRETCH, dim=1)], dim=1)


class Model(nn.Module):
    def __init__(self, path):
        super().__init__()
        state = load(path)
        state = state.get("model_state_dict", state) if isinstance(state, dict) else {}
        self.tokens = filled_embedding(state, "token_emb.", path)
        self.positions = filled_embedding(state, "pos_emb.emb.", path)
        depth = 0
        while f"{LAYERS}{depth}.0.norm.weight" in state:
            depth += 1
        if not depth:
            raise damaged(path, f"the tensor {LAYERS}0.0.norm.weight is missing")
        self.layers = nn.ModuleList(Layer(state, f"{LAYERS}{number}.", path) for number in range(depth))
        self.norm = fill(nn.LayerNorm(self.tokens.embedding_dim), state, "norm.", path)

    def forward(self, tokens, mask):
        hidden = self.tokens(tokens.long()) + self.positions.weight
        for layer in self.layers[:-1]:
            hidden = layer(hidden, hidden.shape[1])
        # Of the last layer nothing is asked for but the last token.
        return self.norm(self.layers[-1](hidden, 1)[:, 0])


def embed(task):
    path, levels = task.model_folder(), int(task.spec["bin_num"])
    with task.phase("load"):
        model = Model(path)
    order = gene_order(path, Path(task.spec["weights"]) / "scBERT")
    if len(order) + 1 != model.positions.num_embeddings:
        cause = f"it has {model.positions.num_embeddings} positions, the list {len(order)} genes and one token follows them"
        raise Refusal(f"{path} is not the model of its list of genes", cause=cause)
    if levels + 2 != model.tokens.num_embeddings:
        known = model.tokens.num_embeddings - 2
        hint = f"leave bin_num out, or set it to {known}"
        raise Refusal(f"{path} knows {known} levels of expression, bin_num is {levels}", hint=hint)
    cells = Cells(task, task.spec["data"])
    to_model = alignment(cells, order)

    def sentences(first, counts):
        counts = counts @ to_model
        return [(sentence(counts, cell, levels),) for cell in range(counts.shape[0])]

    matrix = embed_sequences(task, cells, sentences, model, model, model.tokens.embedding_dim)
    cells.write_embedding(matrix, task.spec["output"])


def sentence(counts, cell, levels):
    """The level of each gene of the model and a 0 for the last token; nothing for a cell without any of them.

    A level is the whole part of log2(1 + count per 10,000 of the cell's), at most the highest.
    """
    stretch = slice(counts.indptr[cell], counts.indptr[cell + 1])
    values = counts.data[stretch].astype(np.float64)
    if not len(values):
        return np.empty(0, dtype=np.int8)
    tokens = np.zeros(counts.shape[1] + 1, dtype=np.int8)
    # 2^level - 1 and above, with no logarithm that may round to the other side.
    tokens[counts.indices[stretch]] = np.digitize(values * 10_000 / values.sum(), 2.0 ** np.arange(1, levels + 1) - 1)
    return tokens


def gene_order(model, folder):
    """The symbols in the order of the model: beside it, or in the folder of the method."""
    found = [place / name for place in (model.parent, folder) for name in ORDERS if (place / name).is_file()]
    path = present(found[0] if found else folder / ORDERS[1])
    if path.suffix == ".txt":
        return path.read_text(encoding="utf-8").split()
    try:
        return [str(gene) for gene in anndata.read_h5ad(path, backed="r").var_names]
    except (OSError, KeyError) as error:
        raise damaged(path, str(error).splitlines()[0]) from None


def filled_embedding(state, prefix, path):
    return fill(nn.Embedding(*tensor(state, f"{prefix}weight", path).shape), state, prefix, path)


main(embed=embed)
