"""Makes a file of counts and tables of gene vectors in every form, and the embedding that NumPy finds.

Usage: genept.py FOLDER DEMO. Writes FOLDER/NAME.pickle and .csv for each table, and prints JSON:
  tables    names of the files
  expected  row-major, cells x dims
  matched   genes of the file that have a vector
"""

import csv
import json
import pathlib
import pickle
import sys

import anndata
import numpy as np

DIMS = 77


def main():
    folder, demo = pathlib.Path(sys.argv[1]), sys.argv[2]
    data = anndata.read_h5ad(demo)
    rng = np.random.default_rng(5)
    # Every third gene has no vector, and most of the table's genes are not in the file.
    names = [name for number, name in enumerate(data.var_names) if number % 3] + [f"OTHER{n}" for n in range(2500)]
    rng.shuffle(names)
    table = dict(zip(names, rng.normal(size=(len(names), DIMS)).astype(np.float32), strict=True))
    shared = {**table, "TWIN": table[names[0]], names[1]: table["OTHER7"]}
    doubles = {name: vector.astype(np.float64) for name, vector in table.items()}
    tables = [dump(folder, f"lists{protocol}", lists(table), protocol) for protocol in (2, 3, 4, 5)]
    tables += [dump(folder, f"arrays{protocol}", table, protocol) for protocol in (2, 4, 5)]
    tables += [dump(folder, name, form, 4) for name, form in variants(doubles).items()]
    with open(folder / "text.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["symbol", *(f"d{number}" for number in range(DIMS))])
        rows.writerows([name, *(repr(float(value)) for value in vector)] for name, vector in table.items())
    dump(folder, "shared", lists_shared(shared), 4)
    answer = {
        "tables": [*tables, "text.csv"],
        "expected": embed(data, table).ravel().tolist(),
        "shared": embed(data, shared).ravel().tolist(),
        "matched": sum(name in table for name in data.var_names),
    }
    json.dump(answer, sys.stdout)


def lists(table):
    return {name: vector.astype(float).tolist() for name, vector in table.items()}


def lists_shared(table):
    """As `lists`, where the same array becomes the same list."""
    made = {id(vector): vector.astype(float).tolist() for vector in table.values()}
    return {name: made[id(vector)] for name, vector in table.items()}


def variants(doubles):
    numbers = {name: list(vector) for name, vector in doubles.items()}
    swapped = {name: vector.astype(">f8") for name, vector in doubles.items()}
    return {"doubles": doubles, "numbers": numbers, "swapped": swapped}


def dump(folder, name, table, protocol):
    with open(folder / f"{name}.pickle", "wb") as file:
        pickle.dump(table, file, protocol=protocol)
    return f"{name}.pickle"


def embed(data, table):
    counts = data.X.toarray().astype(np.float64)
    totals = counts.sum(axis=1, keepdims=True)
    totals[totals == 0] = 1e4
    vectors = np.array([table.get(name, np.zeros(DIMS)) for name in data.var_names], dtype=np.float64)
    return np.log1p(counts / totals * 1e4) @ vectors / data.n_vars


main()
