"""scFoundation (Hao et al., Nature Methods 2024): depth tokens, maximum and mean of an encoder over the expressed genes."""

import csv
from pathlib import Path

import numpy as np
import torch
from foundry import Cells, main
from foundry.checkpoints import fill, load, tensor
from foundry.files import damaged, present
from foundry.layers import stack
from foundry.sequences import embed as embed_sequences
from scipy import sparse
from torch import nn

BATCH = 8  # cells at a time: the known command has no option for it
DEPTH = 4.0  # log10 of the counts that T asks for, upstream's default; S is log10 of what the cell has


class Values(nn.Module):
    """A value as a mixture of learnt vectors."""

    def __init__(self, bins, size, share):
        super().__init__()
        self.mlp, self.mlp2 = nn.Linear(1, bins), nn.Linear(bins, bins)
        self.emb = nn.Embedding(bins, size)
        self.share = share

    def forward(self, values):
        inner = nn.functional.leaky_relu(self.mlp(values.unsqueeze(-1)), 0.1)
        return (self.share * inner + self.mlp2(inner)).softmax(-1) @ self.emb.weight


class Model(nn.Module):
    """The encoder for cells; `pool` is "all" or "max"."""

    def __init__(self, path, pool):
        super().__init__()
        state, settings = parts(path)
        bins, size = tensor(state, "token_emb.emb.weight", path).shape
        self.values = fill(Values(bins, size, settings.get("bin_alpha", 1.0)), state, "token_emb.", path)
        self.positions = fill(nn.Embedding(tensor(state, "pos_emb.weight", path).shape[0], size), state, "pos_emb.", path)
        heads = settings.get("encoder", {}).get("heads")
        if not isinstance(heads, int) or heads < 1:
            raise damaged(path, "its config does not tell the number of heads")
        self.layers = stack(state, "encoder.transformer_encoder.", heads, path)
        self.norm = fill(nn.LayerNorm(size), state, "encoder.norm.", path)
        self.pool = pool
        self.dimensions = size if pool == "max" else 4 * size

    def forward(self, positions, values, mask):
        hidden = self.values(values) + self.positions(positions)
        for layer in self.layers:
            hidden = layer(hidden, src_key_padding_mask=~mask)
        hidden = self.norm(hidden)
        if self.pool == "max":
            return highest(hidden, mask)
        # The last two tokens of each cell, which are not the last of the batch.
        rows, last = torch.arange(len(mask), device=mask.device), mask.sum(1) - 1
        genes = mask.clone()
        genes[rows, last] = False
        genes[rows, last - 1] = False
        mean = (hidden * genes.unsqueeze(-1)).sum(1) / genes.sum(1, keepdim=True)
        return torch.cat([hidden[rows, last], hidden[rows, last - 1], highest(hidden, genes), mean], dim=1)


def highest(hidden, mask):
    return hidden.masked_fill(~mask.unsqueeze(-1), float("-inf")).amax(1)


def parts(path):
    """Weights and settings of the encoder for cells, of the three that the file has."""
    whole = load(path)
    part = whole.get("cell") if isinstance(whole, dict) else None
    try:
        config, state = part["config"], part["state_dict"]
        settings = {**config["model_config"][config["model"]], **config.get("dataset_config", {}).get("rnaseq", {})}
        return {name[len("model.") :]: value for name, value in state.items()}, settings
    except (TypeError, KeyError, AttributeError):
        raise damaged(path, "it has no model for cells with its config") from None


def embed(task):
    path = task.model_folder()
    genes = gene_list(Path(task.spec["weights"]) / "scFoundation" / "OS_scRNA_gene_index.19264.tsv")
    cells = Cells(task, task.spec["data"])
    columns, found = cells.match(genes)
    # Columns of one gene are added up.
    to_model = sparse.csr_matrix(
        (np.ones(len(found), np.float32), (columns, [genes[gene] for gene in found])), (cells.genes, len(genes))
    )
    with task.phase("load"):
        model = Model(path, task.spec["scfoundation_pool_type"])
    # Genes, T, S, and what stands for padding.
    if model.positions.num_embeddings != len(genes) + 3:
        raise damaged(path, f"it has {model.positions.num_embeddings - 3} genes, the list has {len(genes)}")

    def sentences(first, counts):
        counts = counts @ to_model
        counts.sort_indices()
        return [sentence(counts, cell) for cell in range(counts.shape[0])]

    def sentence(counts, cell):
        stretch = slice(counts.indptr[cell], counts.indptr[cell + 1])
        places, values = counts.indices[stretch].astype(np.int64), counts.data[stretch].astype(np.float64)
        if not len(places):
            return places, values.astype(np.float32)
        total = values.sum()
        values = np.append(np.log1p(values / total * 1e4), [DEPTH, np.log10(total)])
        return np.append(places, [len(genes), len(genes) + 1]), values.astype(np.float32)

    matrix = embed_sequences(task, cells, sentences, model, model, model.dimensions, (0, 0), batch=BATCH)
    cells.write_embedding(matrix, task.spec["output"])


def gene_list(path):
    """The number of each gene in the model."""
    with open(present(path), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    try:
        return {row["gene_name"]: int(row["index"]) for row in rows}
    except (KeyError, TypeError, ValueError):
        raise damaged(path, "it is no table of gene_name and index") from None


main(embed=embed)
