"""Novae (Blampey et al., Nature Methods 2025), without training: its encoder over the cells around each cell of a slide.

The script is not called novae.py, by which name Python would find it in place of the package.
"""

import logging
import os
import warnings

# The log is no terminal; read when the first library asks for it.
os.environ.setdefault("TQDM_DISABLE", "1")

import anndata
import numpy as np
from foundry import Cells, Refusal, devices, main
from scipy import sparse

GRIDS = ("visium", "visium_hd")  # the other technologies only say where in obs the coordinates are
OPTIONS = ("radius", "coord_type", "n_neighs", "delaunay")


def embed(task):
    cells = Cells(task, task.spec["data"])
    places = coordinates(cells)
    # Advice of libraries to each other.
    warnings.filterwarnings("ignore", module="lightning|torch")
    import novae

    logging.getLogger("novae").setLevel(logging.ERROR)
    with task.phase("load"):
        model = load(task.model_folder(), novae.Novae)
    data = slide(cells, model.cell_embedder.gene_names, places)
    device = devices.choose(task)
    technology = task.spec["novae_technology"]
    options = {name: task.spec.get(f"novae_{name}") for name in OPTIONS}
    model.swav_head.num_prototypes = int(task.spec["novae_prototypes"])
    try:
        with task.phase("neighbours"):
            novae.spatial_neighbors(data, technology=technology if technology in GRIDS else None, **options)
        with task.phase("model"):
            model.compute_representations(data, zero_shot=True, accelerator=device.type)
    except (AssertionError, ValueError) as error:
        raise Refusal(
            f"novae cannot embed the cells of {cells.name}",
            cause=error,
            hint="each cell needs others within `--novae_radius`, and a slide as many such cells as `--novae_prototypes`",
        ) from None
    task.advance(cells.count)
    devices.record(task)
    matrix = np.asarray(data.obsm["novae_latent"], dtype=np.float32)
    matrix[~data.obs["neighborhood_valid"].to_numpy(dtype=bool)] = np.nan
    cells.write_embedding(matrix, task.spec["output"], lacking="valid neighbourhood")


def coordinates(cells):
    """Where the cells are on the slide, in micrometres."""
    if "spatial" not in cells.data.obsm:
        raise Refusal(f"{cells.name} does not tell where its cells are", hint="put their coordinates into obsm['spatial']")
    places = np.asarray(cells.data.obsm["spatial"], dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != 2 or not np.isfinite(places).all():
        raise Refusal(
            f"obsm['spatial'] of {cells.name} holds no coordinates in a plane",
            cause=f"it has {places.shape[-1]} columns, or values that are not finite",
            hint="give each cell two numbers, in micrometres",
        )
    return places


def load(path, kind):
    for name in ("config.json", "model.safetensors"):
        if not (path / name).is_file():
            raise Refusal(f"{path / name} is missing", hint="`scfoundry download --method novae --dry-run` names the files")
    from safetensors import SafetensorError

    try:
        return kind.from_pretrained(str(path))
    except (SafetensorError, RuntimeError, TypeError, ValueError, KeyError) as error:
        raise Refusal(f"{path} holds no model of novae, or one cut short", cause=str(error).splitlines()[-1]) from None


def slide(cells, vocabulary, places):
    """The cells with log-normalised counts, and the genes by the names that the model has for them."""
    import scanpy

    columns = cells.task.spec["genes"]["columns"]
    var = cells.data.var
    written = [*var.index, *(gene for column in columns if column in var.columns for gene in var[column])]
    places_of, found = cells.match(set(vocabulary), {str(gene): str(gene).lower() for gene in written})
    names = np.array([f"unknown-{number}" for number in range(cells.genes)], dtype=object)
    names[places_of] = found
    counts = sparse.vstack([counts for _, counts in cells.stretches(16384)], format="csr")
    data = anndata.AnnData(counts)
    data.var_names = names
    data.var_names_make_unique()
    data.obsm["spatial"] = places
    # Whatever the largest count: the package itself takes counts below 10 for logarithms.
    scanpy.pp.normalize_total(data)
    scanpy.pp.log1p(data)
    return data


main(embed=embed)
