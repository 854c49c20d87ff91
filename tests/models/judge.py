"""Judges an embedding of a tiny model: every cell by itself, in plain steps, through other parts of the package.

    python tests/models/judge.py METHOD DATA.h5ad WEIGHTS EMBEDDING.h5ad [MODEL [CELLS]]

CELLS is the batch size of a model whose cells attend to each other. Prints the largest difference of a value. Fails where cells are lost or in another order, or obs has changed.
"""

import contextlib
import csv
import json
import pickle
import sys
from pathlib import Path

import anndata
import numpy as np
import pandas
import tiny
import torch
import variants
from methods import c2s, cellfm, cellplm, scbert, scfoundation
from scipy import sparse
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertModel


def main(method, data, weights, embedding, model=None, *more):
    data, embedding = anndata.read_h5ad(data), anndata.read_h5ad(embedding)
    assert list(data.obs_names) == list(embedding.obs_names), "cells are lost or in another order"
    pandas.testing.assert_frame_equal(data.obs, embedding.obs)
    assert list(embedding.var_names) == [f"V{number + 1}" for number in range(embedding.n_vars)]
    counts = sparse.csr_matrix(data.X).toarray().astype(np.float64)
    # What the packages print is no result.
    with contextlib.redirect_stdout(sys.stderr):
        expected = METHODS[method](Path(weights), list(data.var_names), counts, model, *more)
    assert expected.shape == embedding.shape, (expected.shape, embedding.shape)
    assert (np.isnan(expected) == np.isnan(embedding.X)).all(), "other rows are NaN"
    print(np.nanmax(np.abs(expected - embedding.X)))


def table(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def sentences(genes, counts, tokens, medians, ids, room):
    """The tokens of each cell, gene by gene."""
    for cell in counts:
        sums = {}
        for symbol, count in zip(genes, cell):
            gene = ids.get(symbol)
            if gene in tokens and count > 0:
                sums[gene] = sums.get(gene, 0.0) + count
        values = {gene: count / cell.sum() * 10_000 / medians[gene] for gene, count in sums.items()}
        ordered = sorted(values, key=lambda gene: (-values[gene], gene))
        yield [int(tokens[gene]) for gene in ordered[:room]]


def geneformer(weights, genes, counts, model):
    folder = weights / "Geneformer"
    second = "V2" in model
    place, ending = ("geneformer", "gc104M") if second else ("geneformer/gene_dictionaries_30m", "gc30M")
    tokens, medians, ids = (
        table(folder / place / f"{name}_{ending}.pkl")
        for name in ("token_dictionary", "gene_median_dictionary", "gene_name_id_dict")
    )
    bert = BertForMaskedLM.from_pretrained(folder / model).eval()
    rows = []
    for sentence in sentences(genes, counts, tokens, medians, ids, 298 if second else 300):
        if not sentence:
            rows.append(np.full(32, np.nan))
            continue
        whole = [tokens["<cls>"], *sentence, tokens["<eos>"]] if second else sentence
        hidden = states(bert, whole)[-2][0]
        rows.append((hidden[0] if second else hidden.mean(0)).numpy())
    return np.array(rows)


def langcell(weights, genes, counts, model):
    folder = weights / "LangCell"
    tokens, medians, ids = (
        table(folder / "dictionaries" / f"{name}.pkl")
        for name in ("token_dictionary", "gene_median_dictionary", "gene_name_id_dict")
    )
    bert = BertModel(BertConfig.from_pretrained(folder / "ckpt/cell_bert"), add_pooling_layer=False).eval()
    bert.load_state_dict(torch.load(folder / "ckpt/cell_bert/pytorch_model.bin"))
    linear = torch.nn.Linear(32, 16)
    linear.load_state_dict(torch.load(folder / "ckpt/cell_proj.bin"))
    rows = []
    for sentence in sentences(genes, counts, tokens, medians, ids, 299):
        row = linear(states(bert, [len(tokens), *sentence])[-1][0, 0]).detach().numpy()
        rows.append(row / np.linalg.norm(row) if sentence else np.full(16, np.nan))
    return np.array(rows)


def sccello(weights, genes, counts, model):
    folder = weights / "scCello"
    tokens, medians = (
        table(folder / "token_vocabulary" / f"{name}.pkl") for name in ("token_dictionary", "gene_median_dictionary")
    )
    with open(folder / "token_vocabulary/vocab_id2name.csv") as file:
        ids = {row["name"]: row["id"] for row in csv.DictReader(file)}
    whole = torch.load(folder / "scCello-zeroshot/pytorch_model.bin")
    state = {key.removeprefix("bert."): value for key, value in whole.items() if key.startswith("bert.")}
    kinds = [state.pop(f"embeddings.{kind}_embeddings.weight") for kind in ("tf_class", "tf_superclass", "expbin")]
    bert = BertModel(BertConfig.from_pretrained(folder / "scCello-zeroshot"), add_pooling_layer=False).eval()
    bert.load_state_dict(state)
    words = bert.embeddings.word_embeddings.weight
    rows = []
    for sentence in sentences(genes, counts, tokens, medians, ids, 299):
        vectors = words[torch.tensor([[len(tokens), *sentence]])] + sum(kinds)
        with torch.no_grad():
            row = bert(inputs_embeds=vectors, output_hidden_states=True).hidden_states[-1][0, 0].numpy()
        rows.append(row if sentence else np.full(32, np.nan))
    return np.array(rows)


def scgpt(weights, genes, counts, model):
    folder = weights / "scGPT" / model
    settings, vocabulary = (json.loads((folder / name).read_text()) for name in ("args.json", "vocab.json"))
    official = tiny.official_scgpt(settings, vocabulary).eval()
    state = torch.load(folder / "best_model.pt")
    official.load_state_dict({name.replace(".Wqkv.", ".in_proj_"): value for name, value in state.items()})
    rows = []
    for number, cell in enumerate(counts):
        expressed = [column for column, gene in enumerate(genes) if gene in vocabulary and cell[column] > 0]
        if not expressed:
            rows.append(np.full(settings["embsize"], np.nan))
            continue
        values = cell[expressed]
        edges = np.quantile(values, np.linspace(0, 1, 50))
        # Equal values that fill several bins: any of them, by the chance of the cell.
        chance = np.random.default_rng([0, number]).random(len(values))
        bins = [top - int(share * (top - low)) for top, low, share in zip(
            np.searchsorted(edges, values, "right"), np.searchsorted(edges, values, "left"), chance)]
        tokens = [vocabulary["<cls>"], *(vocabulary[genes[column]] for column in expressed)]
        inputs = torch.tensor([tokens]), torch.tensor([[settings["pad_value"], *bins]], dtype=torch.float32)
        with torch.no_grad():
            row = official._encode(*inputs, src_key_padding_mask=torch.zeros(1, len(tokens), dtype=torch.bool))[0, 0].numpy()
        rows.append(row / np.linalg.norm(row))
    return np.array(rows)


def scimilarity(weights, genes, counts, model):
    folder = weights / "SCimilarity" / model
    order = (folder / "gene_order.tsv").read_text().split()
    encoder = tiny.official_scimilarity(len(order)).eval()
    encoder.load_state_dict(torch.load(folder / "encoder.ckpt")["state_dict"])
    aligned = np.zeros((len(counts), len(order)))
    for column, gene in enumerate(genes):
        if gene in order:
            aligned[:, order.index(gene)] += counts[:, column]
    totals = aligned.sum(1, keepdims=True)
    with torch.no_grad():
        rows = encoder(torch.tensor(np.log1p(aligned / np.maximum(totals, 1) * 1e4), dtype=torch.float32)).numpy()
    return np.where(totals > 0, rows, np.nan)


def cellama(weights, genes, counts, model):
    folder = weights / "CELLama" / model
    tokenizer, bert = AutoTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder).eval()
    rows = []
    for cell in counts:
        order = sorted(np.flatnonzero(cell), key=lambda column: (-cell[column], column))[:30]
        names = [genes[column] for column in order]
        tokens = tokenizer(f"Top genes are {', '.join(names[:-1])}, and {names[-1]}.", truncation=True, max_length=256)
        row = states(bert, tokens["input_ids"])[-1][0].mean(0).numpy()
        rows.append(row / np.linalg.norm(row))
    return np.array(rows)


def scvi(weights, genes, counts, model):
    from scvi.model import SCVI

    folder = str(weights / model)
    data = anndata.AnnData(counts.astype(np.float32), obs={"batch": ["unassigned"] * len(counts)})
    data.var_names = genes
    SCVI.prepare_query_anndata(data, folder)
    query = SCVI.load_query_data(data, folder)
    query.is_trained = True
    return query.get_latent_representation()


def novae(weights, genes, counts, model):
    from novae import Novae, spatial_neighbors

    data = anndata.AnnData(counts.astype(np.float32))
    data.var_names = genes
    data.obsm["spatial"] = variants.places(len(counts))
    spatial_neighbors(data, technology="visium")
    official = Novae.from_pretrained(str(weights / "Novae" / model))
    official.compute_representations(data)
    rows = data.obsm["novae_latent"]
    rows[~data.obs["neighborhood_valid"].to_numpy(dtype=bool)] = np.nan
    return rows


def states(bert, sentence):
    with torch.no_grad():
        return bert(input_ids=torch.tensor([sentence]), output_hidden_states=True).hidden_states


METHODS = {method.__name__: method for method in (cellama, geneformer, langcell, novae, sccello, scgpt, scimilarity, scvi)}
for module in (c2s, cellfm, cellplm, scbert, scfoundation):
    METHODS[module.__name__.split(".")[-1]] = module.judge

if __name__ == "__main__":
    main(*sys.argv[1:])
