"""Classifiers on embeddings in scikit-learn, for comparison with those of `scfoundry kernel classify`.

Usage: transfer.py make DIRECTORY CELLS DIMS    writes reference.h5ad and query.h5ad from a fixed seed
       transfer.py judge DIRECTORY              reads them with the predictions of each classifier in DIRECTORY/<name>/

`judge` prints, as JSON: classes, probabilities by classifier (cells x classes), the label that scikit-learn's MLP and the
others give each cell, and accuracy, macro F1 and confusion of the labels in the predicted_labels.tsv files. Where
DIRECTORY/projection/pca.json is, also the largest difference of the query's embedding from the formula of the projection,
applied to the counts of DIRECTORY/query_counts.h5ad.
"""

import json
import pathlib
import sys

import anndata
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

SEED = 20261202
TYPES = 12


def make(directory, cells, dims):
    """Overlapping types of unequal size; 5 % of the labels of the reference are missing."""
    rng = np.random.default_rng(SEED)
    shares = 0.8 ** np.arange(TYPES)
    centres = rng.normal(0, 0.9, (TYPES, dims))
    for name, count in (("reference", cells), ("query", cells // 5)):
        kinds = rng.choice(TYPES, count, p=shares / shares.sum())
        scale = 0.95 ** np.arange(dims) * 5
        values = ((centres[kinds] + rng.normal(0, 1, (count, dims))) * scale + 1).astype(np.float32)
        labels = np.array([f"type {kind}" for kind in kinds], dtype=object)
        if name == "reference":
            labels[rng.random(count) < 0.05] = np.nan
        obs = pd.DataFrame({"cell_type": pd.Categorical(labels)}, index=[f"{name}{cell:05}" for cell in range(count)])
        anndata.AnnData(values, obs=obs).write_h5ad(directory / f"{name}.h5ad")


def prototype(values, labels, classes, query):
    means = np.array([normalize(values[labels == name]).mean(axis=0) for name in classes])
    scores = normalize(query) @ normalize(means).T / 0.1
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def projected(directory, embedding):
    """Largest difference of an embedding from what the kept PCA makes of the counts."""
    kept = json.loads((directory / "projection/pca.json").read_text())
    model = {key: np.array(value) for key, value in kept["model"].items()}
    data = anndata.read_h5ad(directory / "query_counts.h5ad")
    counts = np.asarray(data.X.todense() if hasattr(data.X, "todense") else data.X, dtype=np.float64)
    total = counts.sum(axis=1, keepdims=True)
    log = pd.DataFrame(np.log1p(counts / total * model["target_sum"]), columns=data.var_names)
    log = log.loc[:, ~log.columns.duplicated()].reindex(columns=kept["genes"], fill_value=0.0).to_numpy()
    scaled = np.clip((log - model["mean"]) / model["sd"], -model["max_value"], model["max_value"])
    components = model["components"].reshape(-1, len(kept["genes"]))
    return float(np.abs((scaled - model["centre"]) @ components.T - embedding).max())


def judge(directory):
    reference, query = (anndata.read_h5ad(directory / f"{name}.h5ad") for name in ("reference", "query"))
    reference = reference[reference.obs["cell_type"].notna()]
    values, others = (np.asarray(data.X, dtype=np.float64) for data in (reference, query))
    labels, truth = (data.obs["cell_type"].astype(str).to_numpy() for data in (reference, query))
    classes = np.unique(labels)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000, tol=1e-12, solver="newton-cg"))
    neighbours = KNeighborsClassifier(15, algorithm="brute")
    perceptron = make_pipeline(
        StandardScaler(), MLPClassifier((values.shape[1],), early_stopping=True, max_iter=200, random_state=0)
    )
    result = {
        "classes": classes.tolist(),
        "truth": truth.tolist(),
        "prototype": prototype(values, labels, classes, others).tolist(),
        "knn": neighbours.fit(normalize(values), labels).predict_proba(normalize(others)).tolist(),
        "logreg": logistic.fit(values, labels).predict_proba(others).tolist(),
        "mlp": perceptron.fit(values, labels).predict_proba(others).tolist(),
        "coefficients": logistic[-1].coef_.tolist(),
        "intercepts": logistic[-1].intercept_.tolist(),
        "scores": {},
    }
    for path in directory.glob("*/predicted_labels.tsv"):
        predicted = pd.read_csv(path, sep="\t", index_col=0)["predicted_label"]
        assert list(predicted.index) == list(query.obs_names)
        result["scores"][path.parent.name] = {
            "accuracy": accuracy_score(truth, predicted),
            "macro_f1": f1_score(truth, predicted, average="macro", zero_division=0),
            "confusion": confusion_matrix(truth, predicted).tolist(),
        }
    if (directory / "projection").exists():
        result["projected"] = projected(directory, others)
    return result


command, directory, *sizes = sys.argv[1:]
directory = pathlib.Path(directory)
if command == "make":
    make(directory, *map(int, sizes))
else:
    json.dump(judge(directory), sys.stdout)
