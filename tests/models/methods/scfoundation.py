"""A tiny scFoundation, and its embedding cell by cell in plain steps."""

import csv

import numpy as np
import torch

SIZE, HEADS, BINS, LAYERS = 32, 4, 10, 2


def tiny(folder, symbols):
    folder.mkdir(parents=True)
    genes = [*symbols[::-1], "NOT_IN_THE_FILE"]
    with open(folder / "OS_scRNA_gene_index.19264.tsv", "w", newline="") as file:
        rows = csv.writer(file, delimiter="\t")
        rows.writerow(["gene_name", "index"])
        rows.writerows((gene, number) for number, gene in enumerate(genes))
    encoder = {"module_type": "transformer", "hidden_dim": SIZE, "depth": LAYERS, "heads": HEADS}
    config = {
        "model": "mae_autobin",
        "model_config": {"mae_autobin": {"encoder": encoder, "decoder": encoder, "bin_alpha": 0.7, "n_class": 104}},
        "dataset_config": {"rnaseq": {"seq_len": len(genes) + 2, "pad_token_id": 103, "bin_num": BINS}},
    }
    # The file has three models, of which that for cells is the second here.
    whole = {key: {"config": config, "state_dict": weights(len(genes))} for key in ("gene", "cell", "rde")}
    torch.save(whole, folder / "models.ckpt")


def weights(genes):
    layers = [torch.nn.TransformerEncoderLayer(SIZE, HEADS, 4 * SIZE, batch_first=True) for _ in range(LAYERS)]
    modules = {
        "token_emb.mlp": torch.nn.Linear(1, BINS),
        "token_emb.mlp2": torch.nn.Linear(BINS, BINS),
        "token_emb.emb": torch.nn.Embedding(BINS, SIZE),
        "token_emb.emb_mask": torch.nn.Embedding(1, SIZE),
        "token_emb.emb_pad": torch.nn.Embedding(1, SIZE),
        "pos_emb": torch.nn.Embedding(genes + 3, SIZE),
        "encoder.transformer_encoder": torch.nn.ModuleList(layers),
        "encoder.norm": torch.nn.LayerNorm(SIZE),
        "to_final": torch.nn.Linear(SIZE, 1),
    }
    return {f"model.{name}.{key}": value for name, module in modules.items() for key, value in module.state_dict().items()}


def judge(weights, genes, counts, model):
    folder = weights / "scFoundation"
    with open(folder / "OS_scRNA_gene_index.19264.tsv") as file:
        order = [line.split("\t")[0] for line in file.read().splitlines()[1:]]
    state = torch.load(folder / model, weights_only=True)["cell"]["state_dict"]
    state = {name[len("model.") :]: value.double() for name, value in state.items()}
    places = {gene: place for place, gene in enumerate(genes)}
    aligned = np.stack([counts[:, places[gene]] if gene in places else np.zeros(len(counts)) for gene in order], axis=1)
    return np.array([row(state, cell) for cell in aligned])


def row(state, cell):
    if not cell.any():
        return np.full(4 * SIZE, np.nan)
    whole = np.concatenate([np.log1p(cell / cell.sum() * 1e4), [4, np.log10(cell.sum())]])
    # The two tokens of depth are there whatever they are: log10 of one count is 0.
    positions = np.append(np.flatnonzero(cell), [len(cell), len(cell) + 1])
    hidden = torch.stack([token(state, float(whole[position])) for position in positions])
    hidden = hidden + state["pos_emb.weight"][positions]
    for number in range(LAYERS):
        start = f"encoder.transformer_encoder.{number}."
        part = {name[len(start) :]: value for name, value in state.items() if name.startswith(start)}
        hidden = layer(part, hidden)
    hidden = normed(hidden, state["encoder.norm.weight"], state["encoder.norm.bias"])
    inner = hidden[:-2]
    return torch.cat([hidden[-1], hidden[-2], inner.max(0).values, inner.mean(0)]).numpy()


def token(state, value):
    part = {name[len("token_emb.") :]: value for name, value in state.items() if name.startswith("token_emb.")}
    inner = part["mlp.weight"][:, 0] * value + part["mlp.bias"]
    inner = torch.where(inner > 0, inner, 0.1 * inner)
    scores = 0.7 * inner + part["mlp2.weight"] @ inner + part["mlp2.bias"]
    share = scores.exp() / scores.exp().sum()
    return share @ part["emb.weight"]


def layer(part, hidden):
    """Post-norm: attention, then two linear maps, each added to what goes in."""
    asked, keys, values = (hidden @ part["self_attn.in_proj_weight"].T + part["self_attn.in_proj_bias"]).chunk(3, dim=1)
    wide = SIZE // HEADS
    heads = []
    for head in range(HEADS):
        columns = slice(head * wide, (head + 1) * wide)
        scores = asked[:, columns] @ keys[:, columns].T / wide**0.5
        heads.append(torch.softmax(scores, dim=1) @ values[:, columns])
    attended = torch.cat(heads, dim=1) @ part["self_attn.out_proj.weight"].T + part["self_attn.out_proj.bias"]
    hidden = normed(hidden + attended, part["norm1.weight"], part["norm1.bias"])
    inner = (hidden @ part["linear1.weight"].T + part["linear1.bias"]).clamp(min=0)
    return normed(hidden + inner @ part["linear2.weight"].T + part["linear2.bias"], part["norm2.weight"], part["norm2.bias"])


def normed(hidden, weight, bias):
    centred = hidden - hidden.mean(1, keepdim=True)
    return centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt() * weight + bias
