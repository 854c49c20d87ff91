"""scVI (Lopez et al., Nature Methods 2018) of a reference such as the CELLxGENE Census: the mean of q(z), without training.

The package is not needed: a model that does not tell its encoder the batch gives a new batch what its weights say. The script
is not called scvi.py, by which name Python would find it in place of the package that scvi_denovo.py needs.
"""

from foundry import Cells, Refusal, devices, main
from foundry.aligned import alignment, embed as embed_aligned
from foundry.pickles import checkpoint
from foundry.variational import encoder, logarithms

ENOUGH = 0.8  # of the model's genes; with fewer, its own package warns


def embed(task):
    path = task.model_folder() / "model.pt"
    with task.phase("load"):
        genes, model = load(path)
    cells = Cells(task, task.spec["data"])
    to_model = alignment(cells, genes)
    found = int((to_model.sum(axis=0) > 0).sum())
    if found < ENOUGH * len(genes):
        task.warn(f"only {found} of the {len(genes)} genes of the model are in the file: the others count as zero")
    device = devices.choose(task, use_gpu=task.spec.get("scvi_use_gpu", True))
    matrix = embed_aligned(task, cells, to_model, logarithms, model, model, model[-1].out_features, device)
    cells.write_embedding(matrix, task.spec["output"])


def load(path):
    """The genes of the model, and its encoder."""
    kept = checkpoint(path)
    try:
        state, settings = kept["model_state_dict"], options(kept["attr_dict"]["init_params_"])
        genes = [str(gene) for gene in kept["var_names"]]
        model = encoder(state, layer_norm=settings.get("use_layer_norm") in ("encoder", "both"))
    except (IndexError, KeyError, TypeError, RuntimeError) as error:
        raise Refusal(f"{path} holds no scVI model", cause=f"it lacks {error}") from None
    if settings.get("encode_covariates") or model[0].in_features != len(genes):
        raise Refusal(
            f"{path} tells its encoder the batch of each cell",
            cause="what a new batch is to it can only be learned by training",
            hint="use a model that was trained with encode_covariates=False, as the Census is",
        )
    if settings.get("latent_distribution", "normal") != "normal" or settings.get("log_variational") is False:
        raise Refusal(
            f"{path} is a model of another kind",
            cause="its latent_distribution is not normal, or log_variational is off",
        )
    return genes, model


def options(table):
    """The options of the model, whatever tables within the table they stand in."""
    found = {}
    for name, value in table.items() if isinstance(table, dict) else ():
        found.update(options(value) if isinstance(value, dict) else {name: value})
    return found


main(embed=embed)
