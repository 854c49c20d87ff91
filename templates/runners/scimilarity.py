"""SCimilarity (Heimberg et al., Nature 2024): a small network over log-normalised counts of its own genes, of unit length."""

import numpy as np
import torch
from foundry import Cells, Refusal, devices, main
from foundry.aligned import alignment, embed as embed_aligned
from foundry.layers import SparseLinear, filled
from scipy import sparse
from torch import nn


def embed(task):
    path = task.model_folder()
    cells = Cells(task, task.spec["data"])
    genes = (path / "gene_order.tsv").read_text(encoding="utf-8").split()
    to_model = alignment(cells, genes)
    device = devices.choose(task, use_gpu=task.spec.get("scimilarity_use_gpu", True))
    with task.phase("load"):
        model = load(path / "encoder.ckpt", len(genes))

    def forward(values):
        return nn.functional.normalize(model(values), dim=1)

    matrix = embed_aligned(task, cells, to_model, normalised, model, forward, model[-1].out_features, device)
    cells.write_embedding(matrix, task.spec["output"])


def normalised(counts):
    """log1p of counts per 10,000 of the cell's, over the genes of the model."""
    totals = np.asarray(counts.sum(axis=1), dtype=np.float32).ravel()
    scale = np.divide(1e4, totals, out=np.zeros_like(totals), where=totals > 0)
    counts = sparse.csr_matrix(sparse.diags(scale) @ counts, dtype=np.float32)
    counts.data = np.log1p(counts.data)
    return counts


def load(path, genes):
    """The network, of the shapes of the weights."""
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    layers = []
    for block in sorted({int(name.split(".")[1]) for name in state}):
        part = {name.split(".", 2)[2]: value for name, value in state.items() if name.startswith(f"network.{block}.")}
        kind = nn.Linear if layers else SparseLinear
        if "weight" in part:
            layers.append(filled(kind(*reversed(part["weight"].shape)), part))
        else:
            # Dropout, which does nothing here, is the first of the four.
            size, inputs = part["1.weight"].shape
            modules = (kind(inputs, size), nn.BatchNorm1d(size), nn.PReLU())
            layers += [filled(module, part, f"{place}.") for place, module in enumerate(modules, 1)]
    if layers[0].in_features != genes:
        raise Refusal(
            f"{path} is not the encoder of its gene_order.tsv",
            cause=f"it takes {layers[0].in_features} genes, the list has {genes}",
        )
    return nn.Sequential(*layers)


main(embed=embed)
