"""scCello (Yuan et al. 2024): <cls> of the last layer."""

import csv
from pathlib import Path

import torch
from foundry import Cells, main
from foundry.encoders import complete, config, encoder
from foundry.pickles import load
from foundry.ranks import Ranks, embed as embed_ranks, start_after

LENGTH = 2048  # tokens of a cell, <cls> among them
# One vector each, added to every token: together they are the one kind of token that a plain encoder has.
KINDS = ("token_type", "tf_class", "tf_superclass", "expbin")


def embed(task):
    path = complete(task.model_folder())
    tables = Path(task.spec["weights"]) / "scCello" / "token_vocabulary"
    tokens, medians = load(tables / "token_dictionary.pkl"), load(tables / "gene_median_dictionary.pkl")
    settings = config(path)
    start = start_after(tokens, settings, tables)
    cells = Cells(task, task.spec["data"])
    length = min(LENGTH, settings.max_position_embeddings)
    workers = task.spec.get("sccello_tokenize_num_proc") or 1
    names = symbols(tables / "vocab_id2name.csv")
    ranks = Ranks(task, cells, tokens, medians, names, first=[start], length=length, workers=workers)
    with task.phase("load"):
        model = encoder(path, state(path))
    matrix = embed_ranks(
        task, cells, ranks, model, lambda hidden, mask: hidden[:, 0], settings.hidden_size, padding=tokens["<pad>"]
    )
    cells.write_embedding(matrix, task.spec["output"])


def symbols(path):
    """The Ensembl identifier of each symbol."""
    with open(path, newline="", encoding="utf-8") as file:
        return {row["name"]: row["id"] for row in csv.DictReader(file)}


def state(path):
    """The weights of the encoder under the names of a plain one."""
    file = path / "model.safetensors"
    if file.is_file():
        from safetensors.torch import load_file

        whole = load_file(file)
    else:
        whole = torch.load(path / "pytorch_model.bin", map_location="cpu", weights_only=True)
    plain = {key.removeprefix("bert."): value for key, value in whole.items() if key.startswith("bert.")}
    kinds = [plain.pop(f"embeddings.{kind}_embeddings.weight") for kind in KINDS if f"embeddings.{kind}_embeddings.weight" in plain]
    if kinds:
        plain["embeddings.token_type_embeddings.weight"] = sum(kinds)
    return plain


main(embed=embed)
