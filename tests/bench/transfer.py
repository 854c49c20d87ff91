#!/usr/bin/env python3
"""Times `scfoundry kernel classify` (fit and predict) against scikit-learn, as whole processes on the same files.

    python tests/bench/transfer.py --binary target/release/scfoundry [--cells 700,5000,20000,50000] [--classifiers logreg,knn]

Run it with a Python that has the packages of tests/judge/requirements.txt, on a quiet machine. The embeddings are synthetic:
20 overlapping types in 50 dimensions, from a fixed seed; the query has a fifth as many cells as the reference. They stay in
--directory and are used again. Both sides read the two .h5ad files, fit, predict and write labels and probabilities as TSV.
Prints wall time, CPU time and peak memory of each process, their ratios, and the share of labels that are equal.

Logistic regression is timed as each side does it by default: scikit-learn stops at a gradient of 1e-4, ours at 1e-8.
"""

import argparse
import json
import pathlib
import subprocess
import sys

from processes import child, in_turn, print_header, print_pair

TYPES = 20
DIMS = 50
SEED = 20261202


def write_pair(directory, cells):
    import anndata
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(SEED)
    shares = 0.88 ** np.arange(TYPES)
    centres = rng.normal(0, 0.7, (TYPES, DIMS))
    scale = 8 * 0.95 ** np.arange(DIMS)
    for name, count in (("reference", int(cells)), ("query", int(cells) // 5)):
        kinds = rng.choice(TYPES, count, p=shares / shares.sum())
        values = ((centres[kinds] + rng.standard_normal((count, DIMS))) * scale).astype(np.float32)
        labels = pd.Categorical([f"type{kind:02}" for kind in kinds])
        obs = pd.DataFrame({"cell_type": labels}, index=[f"cell{index:07}" for index in range(count)])
        path = pathlib.Path(directory) / f"{name}_{cells}.h5ad"
        anndata.AnnData(values, obs=obs).write_h5ad(path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)


def run_python(classifier, reference, query, output):
    """The classifier in scikit-learn; the child process that is timed."""
    import anndata
    import pandas as pd
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    if classifier == "knn":
        from sklearn.neighbors import KNeighborsClassifier

        model = make_pipeline(Normalizer(), KNeighborsClassifier(15))
    elif classifier == "prototype":
        model = Prototype()
    elif classifier == "logreg":
        from sklearn.linear_model import LogisticRegression

        model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=2000))
    else:
        from sklearn.neural_network import MLPClassifier

        network = MLPClassifier((DIMS,), early_stopping=True, batch_size=64, alpha=1e-4, random_state=0)
        model = make_pipeline(StandardScaler(), network)
    reference, query = anndata.read_h5ad(reference), anndata.read_h5ad(query)
    model.fit(reference.X, reference.obs["cell_type"].astype(str))
    probabilities = pd.DataFrame(model.predict_proba(query.X), index=query.obs_names, columns=model.classes_)
    labels = pd.DataFrame({"predicted_label": model.classes_[probabilities.to_numpy().argmax(axis=1)]}, query.obs_names)
    labels.to_csv(f"{output}_labels.tsv", sep="\t")
    probabilities.to_csv(f"{output}_probs.tsv", sep="\t")


class Prototype:
    """Cosine to the class means, as the prototype classifier has it."""

    def fit(self, values, labels):
        import numpy as np
        from sklearn.preprocessing import normalize

        values, labels = normalize(values), labels.to_numpy()
        self.classes_ = np.unique(labels)
        self.means = normalize(np.array([values[labels == name].mean(axis=0) for name in self.classes_]))

    def predict_proba(self, values):
        from scipy.special import softmax
        from sklearn.preprocessing import normalize

        return softmax(normalize(values) @ self.means.T / 0.1, axis=1)


def specification(classifier, reference, query, folder):
    """What `scfoundry kernel classify` is told."""
    at = {name: str(folder / name) for name in ("model", "labels.tsv", "probs.tsv", "report.json")}
    return {
        "reference": str(reference),
        "query": str(query),
        "fitted": None,
        "projection": None,
        "output": at["model"],
        "labels": at["labels.tsv"],
        "probabilities": at["probs.tsv"],
        "report": at["report.json"],
        "method": "pca",
        "label_key": "cell_type",
        "classifier": classifier,
        "knn_k": 15,
    }


def equal_labels(ours, theirs):
    """Share of equal labels, in percent."""
    ours, theirs = (path.read_text().splitlines()[1:] for path in (ours, theirs))
    return 100 * sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(ours)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/scfoundry", help="the program to time")
    parser.add_argument("--cells", default="700,5000,20000,50000", help="numbers of reference cells")
    parser.add_argument("--classifiers", default="prototype,knn,logreg,mlp")
    parser.add_argument("--runs", type=int, default=1, help="take the best of so many rounds, both sides in turn")
    parser.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("target/bench-transfer"))
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, *arguments = options.child
        return {"pair": write_pair, "python": run_python}[name](*arguments)
    directory = options.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    binary = str(pathlib.Path(options.binary).resolve())
    print_header()
    for cells in map(int, options.cells.split(",")):
        reference, query = (directory / f"{name}_{cells}.h5ad" for name in ("reference", "query"))
        if not query.exists():
            subprocess.run(child(__file__, "pair", directory, cells), check=True)
        for classifier in options.classifiers.split(","):
            folder = directory / f"{classifier}_{cells}"
            folder.mkdir(exist_ok=True)
            spec = folder / "spec.json"
            spec.write_text(json.dumps(specification(classifier, reference, query, folder)))
            theirs = folder / "python"
            ours, other = in_turn(
                options.runs,
                [binary, "kernel", "classify", "--spec", str(spec)],
                child(__file__, "python", classifier, reference, query, theirs),
            )
            print_pair(cells, ours, f"scikit-learn, {classifier}", other)
            same = equal_labels(folder / "labels.tsv", folder / "python_labels.tsv")
            print(f"{'':>9}  {same:.2f} % of labels are equal", flush=True)


if __name__ == "__main__":
    sys.exit(main())
