"""CellFM (Zeng et al., Nature Communications 2025): <cls> of a retention network over the expressed genes."""

import csv
from pathlib import Path

import numpy as np
import torch
from foundry import Cells, main
from foundry.checkpoints import fill, tensor
from foundry.files import damaged, present
from foundry.mindspore import load
from foundry.sequences import embed as embed_sequences
from scipy import sparse
from torch import nn

LENGTH = 2048  # genes of a cell
MOST = 1e5  # counts of a cell; one with more is scaled down to that
HEAD = 32  # numbers of each head, in both published models
# Two defaults of MindSpore, in which the model was trained. Those of torch differ.
SLOPE, EPSILON = 0.2, 1e-7


class Values(nn.Module):
    """A value as a mixture of learnt vectors."""

    def __init__(self, bins, size):
        super().__init__()
        self.w1, self.w3 = nn.Linear(1, bins, bias=False), nn.Linear(bins, bins, bias=False)
        self.table = nn.Linear(bins, size, bias=False)
        self.a = nn.Parameter(torch.zeros(1, 1))

    def forward(self, values):
        inner = nn.functional.leaky_relu(self.w1(values.unsqueeze(-1)), SLOPE)
        return self.table((self.w3(inner) + self.a * inner).softmax(-1))


class Layer(nn.Module):
    """Retention, whose cost grows with the number of genes and not with its square, and a gated linear unit."""

    def __init__(self, size, alpha):
        super().__init__()
        self.attn = nn.ModuleDict({f"{name}_proj": nn.Linear(size, size, bias=False) for name in "qkvuo"})
        self.ffn = nn.ModuleDict({f"{name}_proj": nn.Linear(size, size, bias=False) for name in "uvo"})
        self.post_norm1, self.post_norm2 = nn.LayerNorm(size, eps=EPSILON), nn.LayerNorm(size, eps=EPSILON)
        self.alpha = alpha

    def forward(self, hidden, mask, scale):
        hidden = self.post_norm1(self.alpha * hidden + self.retention(hidden, mask, scale))
        gated = self.ffn["o_proj"](self.ffn["u_proj"](hidden) * self.ffn["v_proj"](hidden))
        return self.post_norm2(self.alpha * hidden + gated)

    def retention(self, hidden, mask, scale):
        asked, keys, values, gate = (
            self.attn[f"{name}_proj"](hidden).unflatten(-1, (-1, HEAD)).transpose(1, 2) for name in "qkvu"
        )
        keys = keys.relu() / HEAD**0.5 * mask[:, None, :, None]
        found = (asked.relu() / HEAD**0.5) @ (keys.transpose(2, 3) @ (values * scale[:, None, None, None]))
        size = found.square().mean(-1, keepdim=True).sqrt().clamp(min=1e-12)
        found = found / size * nn.functional.silu(gate)
        return self.attn["o_proj"](found.transpose(1, 2).flatten(2))


class Model(nn.Module):
    """The encoder, with the names of the published weights."""

    def __init__(self, path):
        super().__init__()
        state = weights(path)
        slots, self.size = tensor(state, "gene_emb", path).shape
        self.genes = nn.Embedding.from_pretrained(tensor(state, "gene_emb", path))
        self.start = nn.Parameter(tensor(state, "cls_token", path), requires_grad=False)
        bins = tensor(state, "value_enc.value_enc.w1.weight", path).shape[0]
        self.values = fill(Values(bins, self.size), state, "value_enc.value_enc.", path)
        count = len({name.split(".")[1] for name in state if name.startswith("encoder.")})
        if not count or self.size % HEAD:
            raise damaged(path, f"it has {count} layers of width {self.size}")
        alpha = (2 * count) ** 0.25
        self.layers = nn.ModuleList(
            fill(Layer(self.size, alpha), state, f"encoder.{number}.", path) for number in range(count)
        )

    def forward(self, genes, values, mask):
        scale = mask.sum(1).float() ** -0.5
        hidden = (self.genes(genes) + self.values(values)) * mask.unsqueeze(-1)
        hidden = torch.cat([self.start.expand(len(hidden), -1, -1), hidden], dim=1)
        mask = torch.cat([mask.new_ones(len(mask), 1), mask], dim=1)
        for layer in self.layers:
            hidden = layer(hidden, mask, scale)
        return hidden[:, 0]


def weights(path):
    """The tensors of the encoder under the names that torch gives to scales and shifts of norms."""
    parts = ("gene_emb", "cls_token", "value_enc.", "encoder.")
    state = load(path, lambda name: name.startswith(parts))
    ends = {"gamma": "weight", "beta": "bias"}
    return {".".join([*name.split(".")[:-1], ends.get(name.split(".")[-1], name.split(".")[-1])]): state[name] for name in state}


def embed(task):
    path = task.model_folder()
    tables = Path(task.spec["weights"]) / "CellFM" / "csv"
    genes = vocabulary(tables / "expand_gene_info.csv")
    cells = Cells(task, task.spec["data"])
    columns, found = cells.match(genes, other_names(tables / "updated_hgcn.tsv"))
    # Columns of one gene are added up; 0 is no gene.
    places = [genes[gene] for gene in found]
    to_model = sparse.csr_matrix((np.ones(len(found), np.float32), (columns, places)), (cells.genes, len(genes) + 1))
    with task.phase("load"):
        model = Model(path)
    if not 0 <= model.genes.num_embeddings - len(genes) - 1 < 8:
        raise damaged(path, f"it has {model.genes.num_embeddings} vectors of genes, the list {len(genes)} genes")

    def sentences(first, counts):
        totals = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        counts = counts.astype(np.float64)
        large = np.flatnonzero(totals > MOST)
        for cell in large:
            stretch = slice(counts.indptr[cell], counts.indptr[cell + 1])
            counts.data[stretch] = np.rint(counts.data[stretch] / (totals[cell] / MOST))
        counts = counts @ to_model
        counts.eliminate_zeros()
        counts.sort_indices()
        return [sentence(counts, cell) for cell in range(counts.shape[0])]

    matrix = embed_sequences(task, cells, sentences, model, model, model.size, (0, 0))
    cells.write_embedding(matrix, task.spec["output"])


def sentence(counts, cell):
    """The genes of a cell and the logarithms of their counts per 10,000; of too many those of the highest counts."""
    stretch = slice(counts.indptr[cell], counts.indptr[cell + 1])
    genes, values = counts.indices[stretch].astype(np.int64), counts.data[stretch]
    logs = np.log1p(values / values.sum() * 1e4).astype(np.float32) if len(genes) else values.astype(np.float32)
    kept = np.sort(np.argsort(-values, kind="stable")[:LENGTH])
    return genes[kept], logs[kept]


def vocabulary(path):
    """The number of each gene, from 1."""
    with open(present(path), newline="", encoding="utf-8") as file:
        names = [row[0] for row in csv.reader(file) if row][1:]
    return {name: number for number, name in enumerate(names, 1)}


def other_names(path):
    """The approved symbol of each older or other name that is not itself an approved symbol; an older name goes first."""
    with open(present(path), newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row.get("Status") == "Approved"]
    if not rows or not {"Approved symbol", "Alias symbols", "Previous symbols"} <= set(rows[0]):
        raise damaged(path, "it is no table of approved symbols")
    approved = {row["Approved symbol"] for row in rows}
    names = {}
    for column in ("Alias symbols", "Previous symbols"):
        for row in rows:
            for name in (row[column] or "").split(", "):
                if name and name not in approved:
                    names[name] = row["Approved symbol"]
    return names


main(embed=embed)
