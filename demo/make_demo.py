#!/usr/bin/env python3
"""Make the demo data from the 700-cell file that the PyPI package scanpy ships.

    python demo/make_demo.py [OUTPUT_DIRECTORY]

needs anndata and scanpy (tests/judge/requirements.txt pins both) and no network. It
writes pbmc_700.h5ad, pbmc_reference_500.h5ad and pbmc_query_200.h5ad, byte for byte the
same every time.

scanpy's file holds no counts. Its `.raw.X` is log1p(count * 1e4 / n_counts), rounded to
three decimals, where n_counts is the cell's total over the whole transcriptome (765 genes
of it are left). The counts come back exactly, and `recover_counts` proves it on every
value or stops.
"""

import hashlib
import importlib.util
import sys
import warnings
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
from scipy import sparse

SOURCE_SHA256 = "e71d41e737c941559b7c57c9243bdb3d2c889c2adfdf00e3422ac6b46783676f"
TARGET_SUM = 1e4
DECIMALS = 3
SPLIT_SEED = 20170116
QUERY_CELLS = 200


class NotAsExpected(Exception):
    """The source, or what was made from it, is not what this script relies on."""


def require(condition: bool, sentence: str) -> None:
    if not condition:
        raise NotAsExpected(sentence)


def find_source() -> Path:
    """The file inside the installed scanpy, checked to be the one this script knows."""
    spec = importlib.util.find_spec("scanpy")
    require(spec is not None and spec.origin is not None, "scanpy is not installed")
    path = Path(spec.origin).parent / "datasets" / "10x_pbmc68k_reduced.h5ad"
    require(path.is_file(), f"{path} is missing")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    require(digest == SOURCE_SHA256, f"{path} has another SHA-256: {digest}")
    return path


def recover_counts(log_values: sparse.csr_matrix, n_counts: np.ndarray) -> sparse.csr_matrix:
    """Counts (cells x genes, float32 CSR) from rounded log1p(count * 1e4 / n_counts).

    Two independent ways must agree: dividing by the cell's smallest value, taken to be one
    count, and by 1e4 / n_counts. Computing forwards again must then give the stored values.
    """
    logs = sparse.csr_matrix(log_values, dtype=np.float64)
    logs.sort_indices()
    stored_per_cell = np.diff(logs.indptr)
    require(bool((stored_per_cell > 0).all()), "a cell has no value")
    require(bool((logs.data > 0).all()), "a stored value is not positive")
    rounding = np.abs(logs.data - np.round(logs.data, DECIMALS)).max()
    require(rounding < 1e-6, f"values are not rounded to {DECIMALS} decimals: {rounding}")
    require(bool((n_counts == np.rint(n_counts)).all()), "n_counts are not integers")

    values = np.expm1(logs.data)
    one_count = np.minimum.reduceat(values, logs.indptr[:-1])
    # Half a unit of the last decimal, carried through expm1, is all that may be missing.
    half_unit = 0.5 * 10.0**-DECIMALS
    allowed = 1.01 * half_unit * (1 + one_count) / one_count
    relative = np.abs(one_count * n_counts / TARGET_SUM - 1)
    require(
        bool((relative <= allowed).all()),
        f"smallest value x n_counts is not {TARGET_SUM:g}: off by {relative.max():.2e}",
    )

    counts = np.rint(values / np.repeat(one_count, stored_per_cell))
    total = np.repeat(n_counts, stored_per_cell)
    by_total = values * total / TARGET_SUM
    require(np.array_equal(counts, np.rint(by_total)), "the two ways give different counts")
    residual = np.abs(by_total - counts)
    require(bool((counts >= 1).all()), "a count is below 1")
    require(
        bool((residual <= 1.01 * half_unit * (by_total + total / TARGET_SUM)).all()),
        f"a value is further from an integer than rounding explains: {residual.max():.3f}",
    )

    again = np.round(np.log1p(counts * TARGET_SUM / total), DECIMALS)
    gap = np.log1p((counts + 1) * TARGET_SUM / total) - np.log1p(counts * TARGET_SUM / total)
    require(gap.min() > 4 * half_unit, f"neighbouring counts lie too close: {gap.min():.5f}")
    off = np.abs(again - logs.data)
    different = int((off > 1e-6).sum())
    # A handful sits on a rounding tie and was rounded in float32 the other way.
    require(off.max() < 1.01 * 2 * half_unit, f"forwards, a value is off by {off.max():.4f}")
    require(different <= 10, f"forwards, {different} values differ in the last decimal")

    whole = np.asarray(n_counts) >= np.add.reduceat(counts, logs.indptr[:-1])
    require(bool(whole.all()), "a cell has more counts here than in its whole transcriptome")
    print(
        f"counts: {counts.size} values, 1 to {counts.max():.0f}; largest distance from an"
        f" integer {residual.max():.3f}; smallest value x n_counts within"
        f" {relative.max():.1e} of {TARGET_SUM:g}; forwards again {counts.size - different}"
        f" equal, {different} off by one in decimal {DECIMALS}"
    )
    return sparse.csr_matrix(
        (counts.astype(np.float32), logs.indices.astype(np.int32), logs.indptr.astype(np.int32)),
        shape=logs.shape,
    )


def build(source: anndata.AnnData) -> anndata.AnnData:
    """The demo object: counts in X, cell_type and batch_id, and what the source computed."""
    require(source.raw is not None, "the source has no raw")
    require(source.obs_names.is_unique, "a cell name occurs twice")
    require(source.raw.var_names.is_unique, "a gene name occurs twice")
    counts = recover_counts(source.raw.X, source.obs["n_counts"].to_numpy(np.float64))

    well = source.obs_names.str.rsplit("-", n=1).str[-1]
    wells = [str(number) for number in range(1, 9)]
    require(set(well) == set(wells), f"barcode suffixes are {sorted(set(well))}")
    cell_type = source.obs["bulk_labels"].astype(str)
    require(cell_type.nunique() == 10, f"{cell_type.nunique()} cell types, not 10")

    obs = pd.DataFrame(index=pd.Index(source.obs_names.astype(str), name="barcode"))
    obs["cell_type"] = pd.Categorical(cell_type, categories=sorted(set(cell_type)))
    obs["batch_id"] = pd.Categorical(well, categories=wells)
    for column in ("n_genes", "n_counts", "percent_mito", "S_score", "G2M_score"):
        obs[column] = source.obs[column].to_numpy()
    for column in ("phase", "louvain"):
        obs[column] = pd.Categorical(source.obs[column])

    return anndata.AnnData(
        X=counts,
        obs=obs,
        var=pd.DataFrame(index=pd.Index(source.raw.var_names.astype(str), name="symbol")),
        obsm={key: np.asarray(source.obsm[key]) for key in ("X_pca", "X_umap")},
        uns={"provenance": provenance()},
    )


def provenance() -> dict[str, str]:
    return {
        "data": "Fresh 68k PBMCs (Donor A), 10x Genomics, CC BY 4.0; 700 cells, 765 genes",
        "citation": "Zheng et al. (2017) Nature Communications 8:14049",
        "source": "scanpy/datasets/10x_pbmc68k_reduced.h5ad of the PyPI package scanpy, BSD-3-Clause",
        "source_sha256": SOURCE_SHA256,
        "counts": "recovered exactly from .raw.X = log1p(count * 1e4 / n_counts), 3 decimals",
        "cell_type": "bulk_labels: nearest purified bulk population, Zheng et al.",
        "batch_id": "barcode suffix: GEM well 1 to 8",
        "n_counts, n_genes": "of the whole transcriptome, not of these 765 genes",
    }


def query_mask(cell_type: pd.Series, query_cells: int) -> np.ndarray:
    """A seeded choice of `query_cells`, every type in proportion (largest remainder).

    A type with two cells or more has at least one cell on either side.
    """
    sizes = cell_type.value_counts(sort=False).sort_index()
    exact = sizes * query_cells / len(cell_type)
    chosen = np.floor(exact).clip(upper=sizes - 1).astype(int)
    chosen = chosen.mask((chosen == 0) & (sizes >= 2), 1)
    by_remainder = (exact - np.floor(exact)).sort_values(ascending=False, kind="stable").index
    for name in by_remainder[: query_cells - chosen.sum()]:
        chosen[name] += 1
    generator = np.random.default_rng(SPLIT_SEED)
    mask = np.zeros(len(cell_type), dtype=bool)
    for name, number in chosen.items():
        cells = np.flatnonzero(cell_type.to_numpy() == name)
        mask[generator.choice(cells, size=number, replace=False)] = True
    return mask


def write(data: anndata.AnnData, path: Path) -> None:
    """Write whole or not at all, then read back and compare."""
    partial = path.with_name(f".{path.name}.partial")
    data.write_h5ad(partial, compression="gzip", compression_opts=9)
    back = anndata.read_h5ad(partial)
    require((back.X != data.X).nnz == 0, f"{path}: X does not read back")
    require(back.obs.equals(data.obs), f"{path}: obs does not read back")
    require(list(back.var_names) == list(data.var_names), f"{path}: var does not read back")
    partial.replace(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    print(f"{digest}  {path} ({data.n_obs} x {data.n_vars}, {path.stat().st_size} bytes)")


def main(arguments: list[str]) -> None:
    directory = Path(arguments[0]) if arguments else Path(__file__).resolve().parent
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="anndata")
        source = anndata.read_h5ad(find_source())
    whole = build(source)
    require(whole.shape == (700, 765), f"the demo is {whole.shape}, not 700 x 765")
    in_query = query_mask(whole.obs["cell_type"], QUERY_CELLS)
    reference, query = whole[~in_query].copy(), whole[in_query].copy()
    for part in (reference, query):
        require(part.obs["cell_type"].nunique() == 10, "a cell type is missing from one part")
        require(part.obs["batch_id"].nunique() == 8, "a batch is missing from one part")
    require((reference.n_obs, query.n_obs) == (500, 200), "the parts are not 500 and 200 cells")
    write(whole, directory / "pbmc_700.h5ad")
    write(reference, directory / "pbmc_reference_500.h5ad")
    write(query, directory / "pbmc_query_200.h5ad")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except NotAsExpected as reason:
        sys.exit(f"error: {reason}")
