"""scGPT (Cui et al., Nature Methods 2024): <cls> of a transformer over genes and their binned counts, of unit length."""

import json

import numpy as np
import torch
from foundry import Cells, Refusal, main
from foundry.sequences import embed as embed_sequences
from torch import nn

LENGTH = 1200  # tokens of a cell, <cls> among them
BINS = 51


class Model(nn.Module):
    """The encoder, with the names of the published weights."""

    def __init__(self, settings, vocabulary):
        super().__init__()
        size = settings["embsize"]
        self.encoder = nn.ModuleDict(
            {"embedding": nn.Embedding(len(vocabulary), size), "enc_norm": nn.LayerNorm(size)}
        )
        self.value_encoder = nn.ModuleDict(
            {"linear1": nn.Linear(1, size), "linear2": nn.Linear(size, size), "norm": nn.LayerNorm(size)}
        )
        layer = nn.TransformerEncoderLayer(size, settings["nheads"], settings["d_hid"], batch_first=True)
        self.transformer_encoder = nn.TransformerEncoder(layer, settings["nlayers"], enable_nested_tensor=False)

    def forward(self, genes, values, mask):
        genes = self.encoder["enc_norm"](self.encoder["embedding"](genes))
        inner = self.value_encoder["linear1"](values.clamp(max=512).unsqueeze(-1)).relu()
        values = self.value_encoder["norm"](self.value_encoder["linear2"](inner))
        hidden = self.transformer_encoder(genes + values, src_key_padding_mask=~mask)
        return nn.functional.normalize(hidden[:, 0], dim=-1)


def embed(task):
    # The kernel for padded batches is slower on the CPU, and makes rows depend on their batch.
    torch.backends.mha.set_fastpath_enabled(False)
    path = task.model_folder()
    settings, vocabulary = table(path / "args.json"), table(path / "vocab.json")
    if settings.get("input_emb_style", "continuous") != "continuous":
        raise Refusal(f"{path} is a model of another kind", cause="args.json: input_emb_style is not continuous")
    cells = Cells(task, task.spec["data"])
    columns, genes = cells.match({gene for gene in vocabulary if not gene.startswith("<")})
    tokens = np.zeros(cells.genes, dtype=np.int64)
    tokens[columns] = [vocabulary[gene] for gene in genes]
    known = np.zeros(cells.genes, dtype=bool)
    known[columns] = True
    start, nothing = vocabulary["<cls>"], settings.get("pad_value", -2)
    seed = task.spec.get("scgpt_seed") or 0

    def sentences(first, counts):
        return [sentence(counts, cell, np.random.default_rng([seed, first + cell])) for cell in range(counts.shape[0])]

    def sentence(counts, cell, random):
        stretch = slice(counts.indptr[cell], counts.indptr[cell + 1])
        places = counts.indices[stretch]
        values = counts.data[stretch][known[places]]
        places = places[known[places]]
        if not len(places):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        values = binned(values, random)
        if len(places) > LENGTH - 1:
            chosen = np.sort(random.choice(len(places), LENGTH - 1, replace=False))
            places, values = places[chosen], values[chosen]
        return np.append(start, tokens[places]), np.append(nothing, values).astype(np.float32)

    with task.phase("load"):
        model = load(path, settings, vocabulary)
    padding = (vocabulary[settings.get("pad_token", "<pad>")], nothing)
    matrix = embed_sequences(task, cells, sentences, model, model, settings["embsize"], padding)
    cells.write_embedding(matrix, task.spec["output"])


def binned(values, random):
    """The number of each value's quantile in its cell; a value that fills several quantiles gets one of them by chance."""
    edges = np.quantile(values, np.linspace(0, 1, BINS - 1))
    most, least = np.digitize(values, edges), np.digitize(values, edges, right=True)
    return most - np.floor(random.random(len(values)) * (most - least))


def table(path):
    if not path.is_file():
        raise Refusal(f"{path} is missing", hint="`scfoundry download --method scgpt --dry-run` names the files of each model")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def load(path, settings, vocabulary):
    """The model with all of its weights, whose attention has other names where it was trained with flash-attn."""
    state = torch.load(path / "best_model.pt", map_location="cpu", weights_only=True)
    state = {name.replace(".Wqkv.", ".in_proj_"): value for name, value in state.items()}
    model = Model(settings, vocabulary)
    missing = [name for name in model.state_dict() if name not in state]
    if missing:
        raise Refusal(f"best_model.pt in {path} is not the model of its args.json", cause=f"it lacks {missing[0]}")
    try:
        model.load_state_dict({name: state[name] for name in model.state_dict()})
    except RuntimeError as error:
        raise Refusal(f"best_model.pt in {path} is not the model of its args.json", cause=str(error).splitlines()[-1]) from None
    return model.float()


main(embed=embed)
