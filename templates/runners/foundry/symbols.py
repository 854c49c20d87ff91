"""Symbols of human genes as Ensembl identifiers, for models that know no other names."""

from pathlib import Path

from .pickles import load

# The table of another method, which is for any: symbols of today and of before.
TABLE = "Geneformer/geneformer/gene_name_id_dict_gc104M.pkl"


def human(task):
    """The identifier of each symbol; nothing where the table is not among the weights, which is said."""
    path = Path(task.spec["weights"]) / TABLE
    if path.is_file():
        return load(path)
    task.note(f"genes are looked for by Ensembl identifiers only: symbols would need {path}")
    return {}
