"""Geneformer (Theodoris et al. 2023; V2: Chen et al. 2024): the last layer but one, <cls> in V2, the mean over genes in V1."""

from pathlib import Path

from foundry import Cells, Refusal, main
from foundry.encoders import complete, config, encoder, mean, of_first, untrained
from foundry.finetuning import actions
from foundry.learners import Recipe
from foundry.pickles import load
from foundry.rank_learners import keep, rank_learner
from foundry.ranks import Ranks, embed as embed_ranks

# Folder and ending of the tables of each version.
VERSIONS = {"V2": ("geneformer", "gc104M"), "V1": ("geneformer/gene_dictionaries_30m", "gc30M")}

# Fine-tuning as it is known for this model; its authors advise to tune the rate for each data set.
RECIPE = Recipe(rate=5e-5, decay=0.01, schedule="cosine", warmup=None, clip=1.0)
FROZEN = 2


def embed(task):
    path, settings, tables, around, length = published(task)
    cells = Cells(task, task.spec["data"])
    workers = task.spec.get("geneformer_nproc") or 1
    ranks = Ranks(task, cells, *tables, length=length, workers=workers, **around)
    with task.phase("load"):
        model = encoder(path)
        # What the last layer makes of it is not asked for.
        del model.encoder.layer[-1]
    pool = of_first if around else mean
    matrix = embed_ranks(task, cells, ranks, model, pool, settings.hidden_size, padding=tables[0]["<pad>"])
    cells.write_embedding(matrix, task.spec["output"])


def learner(task, kept):
    """The encoder as it is trained: its first layers stay as they are. The recipe's least number of steps is not taken over."""
    if kept is None:
        path, settings, tables, around, length = published(task)
        kept = keep(settings, *tables, padding=tables[0]["<pad>"], length=length, **around)
        model = encoder(path)
    else:
        model = untrained(kept["config"])
    model.encoder.layer[:FROZEN].requires_grad_(False)
    workers = task.spec.get("geneformer_nproc") or 1
    pool = of_first if kept["first"] else mean
    trained = f"all but the first {FROZEN} layers; the head takes {'<cls>' if kept['first'] else 'the mean over genes'}"
    return rank_learner(kept, model, pool, RECIPE, trained, workers)


def published(task):
    """Of the published model: its directory, its configuration, tables of genes, what stands around the genes, and tokens of a cell."""
    path = complete(task.model_folder())
    settings = config(path)
    tables = of_version(Path(task.spec["weights"]) / "Geneformer", settings.vocab_size)
    tokens = tables[0]
    around = {"first": [tokens["<cls>"]], "last": [tokens["<eos>"]]} if "<cls>" in tokens else {}
    return path, settings, tables, around, min(settings.max_position_embeddings, 4096 if around else 2048)


def of_version(weights, size):
    """Tokens, medians and symbols of the version whose vocabulary has this size: another's would give plausible nonsense."""
    sizes = []
    for version, (place, ending) in VERSIONS.items():
        file = weights / place / f"token_dictionary_{ending}.pkl"
        if not file.is_file():
            continue
        tokens = load(file)
        if len(tokens) == size:
            others = (f"gene_median_dictionary_{ending}.pkl", f"gene_name_id_dict_{ending}.pkl")
            return tokens, *(load(weights / place / other) for other in others)
        sizes.append(f"{len(tokens)} in {version}")
    raise Refusal(
        f"no token dictionary in {weights} is that of the model",
        cause=f"the model knows {size} tokens; there are {', '.join(sizes) or 'no dictionaries'}",
        hint="`scfoundry download --method geneformer --dry-run` names the files that belong together",
    )


main(embed=embed, **actions("geneformer", learner))
