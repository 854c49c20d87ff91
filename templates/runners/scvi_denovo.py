"""scVI (Lopez et al., Nature Methods 2018), trained on the input, or on the reference of a transfer: the mean of q(z)."""

import logging
import os
import tempfile
import warnings
from pathlib import Path

import anndata
import numpy as np
import torch
from foundry import Cells, Refusal, devices, main
from foundry.aligned import alignment, embed as embed_aligned
from foundry.cells import unversioned
from foundry.groups import groups
from foundry.variable import variable
from foundry.variational import encoder, logarithms
from scipy import sparse

SEED = 0
SHARE = 0.9  # of the cells, that the model is trained on
BATCH = 128  # cells of a step of the training, at most
ENCODED = 1024  # cells at a time when the model is trained
LEAST_GENES = 0.1  # of those of the reference, that a query must have


def embed(task):
    cells = Cells(task, task.spec["data"])
    write(task, cells, *fitted(task, cells))


def fit(task):
    cells = Cells(task, task.spec["data"])
    genes, state = fitted(task, cells)
    folder = Path(task.spec["projection"])
    folder.mkdir(exist_ok=True)
    torch.save({"genes": genes, "state": state}, folder / "scvi.pt.partial")
    os.replace(folder / "scvi.pt.partial", folder / "scvi.pt")
    write(task, cells, genes, state)


def project(task):
    path = Path(task.spec["projection"]) / "scvi.pt"
    try:
        kept = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError) as error:
        raise Refusal(f"{path} holds no trained scVI", cause=str(error).splitlines()[0]) from None
    write(task, Cells(task, task.spec["data"]), kept["genes"], kept["state"], least=LEAST_GENES)


def write(task, cells, genes, state, least=0):
    """Embeds the cells with a trained model, whose batches the encoder does not see."""
    to_model = alignment(cells, genes)
    found = int((to_model.sum(axis=0) > 0).sum())
    if found < least * len(genes):
        raise Refusal(
            f"{cells.name} has only {found} of the {len(genes)} genes that the model was trained on",
            hint="give the query the genes of the reference, under the same names",
        )
    model = encoder(state)
    dimensions = model[-1].out_features
    matrix = embed_aligned(task, cells, to_model, logarithms, model, model, dimensions, devices.choose(task), batch=ENCODED)
    cells.write_embedding(matrix, task.spec["output"])


def fitted(task, cells):
    """The genes that were chosen, and the weights of the encoder of a model trained on their counts."""
    numbers, _ = groups(task, cells)
    genes = list(dict.fromkeys(unversioned(str(gene)) for gene in cells.data.var_names))
    to_genes = alignment(cells, genes)
    wanted = int(task.spec["integration_n_hvg"])
    if 0 < wanted < len(genes):
        with task.phase("genes"):
            chosen = variable(task, cells, to_genes, numbers, wanted)
        genes, to_genes = [genes[place] for place in chosen], to_genes[:, chosen]
    counts = sparse.vstack([counts @ to_genes for _, counts in cells.stretches(16384)], format="csr")
    known = np.flatnonzero(np.diff(counts.indptr))
    if len(known) < 4:
        raise Refusal(f"{len(known)} cells of {cells.name} have counts: no model can be trained on so few")
    data = anndata.AnnData(counts[known], obs={"batch": numbers[known].astype(str)})
    with task.phase("train"):
        model = train(task, data)
    state = {name: value.detach().cpu() for name, value in model.module.state_dict().items() if name.startswith("z_encoder.")}
    if not all(torch.isfinite(value).all() for value in state.values()):
        raise Refusal("the training has come to no result", cause="weights are not finite", hint="look for cells with extreme counts")
    return genes, state


def train(task, data):
    import scvi
    from lightning.pytorch.callbacks import Callback

    # Advice of Lightning on how to run it otherwise.
    for package in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(package).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    scvi.settings.verbosity = logging.ERROR
    scvi.settings.seed = SEED
    total = epochs(task.spec["scvi_max_epochs"], data.n_obs)

    class Progress(Callback):
        def on_train_epoch_end(self, trainer, module):
            task.tell(f"epoch {trainer.current_epoch + 1}/{total}", last=trainer.current_epoch + 1 == total)

    scvi.model.SCVI.setup_anndata(data, batch_key="batch")
    latent = int(task.spec["scvi_n_latent"])
    model = scvi.model.SCVI(data, n_layers=2, n_latent=latent, gene_likelihood="nb")
    on_gpu = devices.choose(task).type == "cuda"
    with tempfile.TemporaryDirectory() as folder:
        model.train(
            max_epochs=total,
            accelerator="gpu" if on_gpu else "cpu",
            devices=1,
            batch_size=step(int(np.ceil(SHARE * data.n_obs))),
            train_size=SHARE,
            enable_progress_bar=False,
            default_root_dir=folder,
            callbacks=[Progress()],
        )
    return model


def epochs(asked, cells):
    if asked == "auto":
        return max(1, min(round(20_000 / cells * 400), 400))
    if not str(asked).isdigit() or int(asked) < 1:
        raise Refusal(f"scvi_max_epochs {asked} is no number of epochs", hint="give a whole number from 1, or auto")
    return int(asked)


def step(cells):
    """A size of the steps that leaves no last step of one or two cells, which have no variance to speak of."""
    return next(size for size in range(BATCH, 2, -1) if cells % size not in (1, 2))


main(embed=embed, fit=fit, project=project)
