"""An .h5ad file as a runner needs it: stretches of cells, genes by the names that a model knows, an embedding beside its cells."""

import os
import re

import anndata
import numpy as np
from scipy import sparse

from .task import Refusal

ENSEMBL = re.compile(r"^(ENS[A-Z]*G\d+)\.\d+$")
IDENTIFIER = re.compile(r"^(ENS[A-Z]*G\d+(\.\d+)?|\d+)$")


def unversioned(gene):
    """An Ensembl identifier without its version; any other name as it is."""
    versioned = ENSEMBL.match(gene)
    return versioned[1] if versioned else gene


class Cells:
    """The cells of a file, whose matrix stays on the disk."""

    def __init__(self, task, path):
        self.task = task
        # Tasks are given links: the name that the user knows is that of the file.
        self.name = os.path.basename(os.path.realpath(path))
        self.data = anndata.read_h5ad(path, backed="r")
        self.count, self.genes = self.data.shape
        task.usage.update(cells=self.count, genes=self.genes)

    def stretches(self, length):
        """Gives `(first, counts)`: the number of the first of at most `length` cells, and their counts (CSR, float32)."""
        matrix = self.data.X
        if "CSC" in type(matrix).__name__:
            matrix = matrix.to_memory().tocsr()
        for first in range(0, self.count, length):
            counts = sparse.csr_matrix(matrix[first : first + length], dtype=np.float32)
            counts.sum_duplicates()
            counts.eliminate_zeros()
            self._check(counts)
            yield first, counts

    def _check(self, counts):
        values = counts.data
        if not np.isfinite(values).all() or (values < 0).any():
            raise Refusal(
                f"X of {self.name} holds values that are no counts",
                cause="a negative or infinite value, or none at all",
                hint="put raw counts into X; `scfoundry check` tells where they are",
            )
        if (values != np.rint(values)).any():
            self.task.warn("X holds values that are no whole numbers: this model wants raw counts")

    def match(self, vocabulary, aliases=None):
        """The genes that the model knows: `(columns, keys)`, the numbers of columns and their keys in `vocabulary`.

        The names are those of the index of var or of the column in which most are known, Ensembl identifiers without their
        version. `aliases` gives the key for other names, such as symbols. A key may come more than once.
        """
        best, source = [], "var_names"
        for name, names in self._names():
            found = [self._key(str(gene), vocabulary, aliases or {}) for gene in names]
            known = [(column, key) for column, key in enumerate(found) if key is not None]
            if len(known) > len(best):
                best, source = known, name
        self._judge(len(best), source)
        return np.array([column for column, _ in best]), [key for _, key in best]

    def symbols(self):
        """The names of the genes, for a model that reads them: var_names, or a column of them where those are identifiers."""
        for source, names in self._names():
            names = [str(name) for name in names]
            if sum(bool(IDENTIFIER.match(name)) for name in names) < len(names) / 2:
                self.task.note(f"genes are called by {source}")
                return names
        raise Refusal(
            f"the genes of {self.name} have no names",
            cause="var_names are identifiers or numbers, and no column such as var['feature_name'] has symbols",
            hint="put the gene symbols into var['feature_name']",
        )

    def _names(self):
        var = self.data.var
        yield "var_names", var.index
        for column in self.task.spec["genes"]["columns"]:
            if column in var.columns:
                yield f"var['{column}']", var[column]

    def _key(self, gene, vocabulary, aliases):
        gene = unversioned(gene)
        if gene in vocabulary:
            return gene
        alias = aliases.get(gene)
        return alias if alias in vocabulary else None

    def _judge(self, matched, source):
        wanted = self.task.spec["genes"]
        minimum = wanted.get("minimum_matched") or 0.0
        if matched == 0 or matched < minimum * self.genes:
            raise Refusal(
                f"only {matched} of {self.genes} genes of {self.name} are known to the model",
                cause=f"it knows {wanted['ids']}, and needs {100 * minimum:g} % of the genes",
                hint="`scfoundry check --method` tells what the genes are called, and which column to use",
            )
        self.task.note(f"{matched} of {self.genes} genes are known, by {source}")

    def write_embedding(self, matrix, path, lacking="gene that the model knows"):
        """Writes the matrix, cells x dimensions, with obs and the coordinates of the file; whole or not at all.

        `lacking` is what the cells have not, whose rows are NaN.
        """
        if matrix.shape[0] != self.count:
            raise RuntimeError(f"{matrix.shape[0]} rows for {self.count} cells")
        missing = int(np.isnan(matrix).any(axis=1).sum())
        if missing:
            self.task.warn(f"{missing} of {self.count} cells have no {lacking}: their rows are NaN")
        columns = [f"V{number}" for number in range(1, matrix.shape[1] + 1)]
        result = anndata.AnnData(X=np.asarray(matrix, dtype=np.float32), obs=self.data.obs.copy())
        result.var_names = columns
        if "spatial" in self.data.obsm:
            result.obsm["spatial"] = self.data.obsm["spatial"]
        partial = f"{path}.partial"
        result.write_h5ad(partial)
        os.replace(partial, path)
