"""LangCell (Zhao et al. 2024): <cls> of the cell encoder, projected and of unit length."""

from pathlib import Path

import torch
from foundry import Cells, main
from foundry.encoders import complete, config, encoder
from foundry.pickles import load
from foundry.ranks import Ranks, embed as embed_ranks, start_after

LENGTH = 2048  # tokens of a cell, <cls> among them


def embed(task):
    weights = Path(task.spec["weights"]) / "LangCell"
    checkpoint = task.model_folder() / "ckpt"
    path = complete(checkpoint / "cell_bert")
    tokens, medians, symbols = (
        load(weights / "dictionaries" / name)
        for name in ("token_dictionary.pkl", "gene_median_dictionary.pkl", "gene_name_id_dict.pkl")
    )
    settings = config(path)
    start = start_after(tokens, settings, weights)
    cells = Cells(task, task.spec["data"])
    length = min(LENGTH, settings.max_position_embeddings)
    ranks = Ranks(task, cells, tokens, medians, symbols, first=[start], length=length)
    with task.phase("load"):
        model = encoder(path)
        projection = torch.load(checkpoint / "cell_proj.bin", map_location="cpu", weights_only=True)
    weight, bias = projection["weight"].float(), projection["bias"].float()

    def pool(hidden, mask):
        projected = torch.nn.functional.linear(hidden[:, 0], weight.to(hidden.device), bias.to(hidden.device))
        return torch.nn.functional.normalize(projected, dim=-1)

    matrix = embed_ranks(task, cells, ranks, model, pool, weight.shape[0], padding=tokens["<pad>"])
    cells.write_embedding(matrix, task.spec["output"])


main(embed=embed)
