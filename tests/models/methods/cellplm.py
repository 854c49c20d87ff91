"""A tiny CellPLM, and its embedding by groups of cells through the parts of its package."""

import importlib.util
import json
import pickle
import sys
import types
from pathlib import Path

import numpy as np
import torch

SIZE = 16
SETTINGS = {
    "enc_mod": "flowformer",
    "enc_hid": 32,
    "enc_layers": 2,
    "enc_head": 4,
    "post_latent_dim": SIZE,
    "dec_mod": "nbmlp",
    "dec_hid": 32,
    "dec_layers": 2,
    "norm": "groupnorm",
    "latent_mod": "gmvae",
    "num_clusters": 4,
    "batch_num": 3,
    "dataset_num": 2,
    "cat_pe": False,
    "mask_node_rate": 0.75,
    "mask_feature_rate": 0.25,
    "max_batch_size": 4000,
}
NAME = "20231027_85M"


def tiny(folder, genes):
    folder.mkdir(parents=True)
    settings = {**SETTINGS, "gene_list": [*genes[::-1], "ENSG99999999999"], "out_dim": len(genes) + 1}
    model = official(settings)
    with torch.no_grad():
        # The vectors of genes are next to nothing before training, and so are the differences of cells.
        model["embedder"].feat_enc.emb.normal_(std=0.1)
        for layer in model["encoder"].layers:
            layer.self_attn.query_projection.weight.mul_(4)
            layer.self_attn.key_projection.weight.mul_(4)
    torch.save({"model_state_dict": model.state_dict(), "epoch": 1}, folder / f"{NAME}.best.ckpt")
    (folder / f"{NAME}.config.json").write_text(json.dumps(settings))


def official(settings):
    """The parts of the package's model that make an embedding; its decoders and heads would need far more than is here."""
    place = Path(importlib.util.find_spec("CellPLM").submodule_search_locations[0])
    sys.modules.setdefault("CellPLM", types.ModuleType("CellPLM")).__path__ = [str(place)]
    if "sklearn" not in sys.modules and not importlib.util.find_spec("sklearn"):
        # Imported there, and not used by this model.
        sys.modules["sklearn"] = types.ModuleType("sklearn")
        sys.modules["sklearn"].mixture = None
    from CellPLM.embedder import OmicsEmbeddingLayer
    from CellPLM.encoder import setup_encoder
    from CellPLM.latent import LatentModel, PreLatentNorm

    size, norm = settings["enc_hid"], settings["norm"]
    latent = LatentModel()
    latent.add_layer(
        type="gmvae", enc_hid=size, latent_dim=settings["post_latent_dim"], num_clusters=settings["num_clusters"]
    )
    return torch.nn.ModuleDict(
        {
            "embedder": OmicsEmbeddingLayer(settings["gene_list"], size, norm, pe_type="sin", cat_pe=settings["cat_pe"]),
            "encoder": setup_encoder(settings["enc_mod"], size, settings["enc_layers"], 0.1, "gelu", norm, settings["enc_head"]),
            "pre_latent_norm": PreLatentNorm("ln", size),
            "latent": latent,
        }
    )


def judge(weights, genes, counts, model, group):
    """Of cells in groups of so many; the likeliest cluster of a cell takes the place of one drawn in proportion."""
    folder = weights / "CellPLM"
    settings = json.loads((folder / f"{NAME}.config.json").read_text())
    parts = official(settings).eval()
    parts.load_state_dict(torch.load(folder / model)["model_state_dict"])
    parts["latent"].layers[1].inference.inference_qyx[0].sample_gumbel = torch.zeros_like
    with open(weights / "Geneformer/geneformer/gene_name_id_dict_gc104M.pkl", "rb") as file:
        ids = pickle.load(file)
    aligned = np.zeros((len(counts), len(settings["gene_list"])))
    for column, gene in enumerate(genes):
        if ids.get(gene) in settings["gene_list"]:
            aligned[:, settings["gene_list"].index(ids[gene])] += counts[:, column]
    rows = []
    for first in range(0, len(counts), int(group)):
        values = torch.tensor(aligned[first : first + int(group)], dtype=torch.float32)
        known = values.any(1)
        row = np.full((len(values), SIZE), np.nan)
        if known.any():
            cells = {"x_seq": values[known].to_sparse(), "coord": torch.full((int(known.sum()), 2), -1.0)}
            with torch.no_grad():
                cells["h"] = parts["embedder"](cells, settings["gene_list"])
                cells["h"] = parts["encoder"](cells)["hidden"]
                cells["h"] = parts["pre_latent_norm"](cells)
                row[known.numpy()] = parts["latent"](cells)[0].numpy()
        rows.append(row)
    return np.concatenate(rows)
