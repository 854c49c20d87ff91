"""Cell2Sentence (Levine et al., ICML 2024; Rizvi et al. 2025): a language model reads the names of a cell's top genes; the mean
over the tokens of its last layer.

The question around the genes is our own, and one for all cells: that of the authors' package is drawn from several.
"""

import numpy as np
from foundry import Cells, Refusal, main
from foundry.encoders import any_kind, complete
from foundry.files import HINT
from foundry.sequences import embed as embed_sequences
from transformers import AutoTokenizer

QUESTION = "Genes of a single cell, the most expressed first: {}\nWhat type of cell is this?"
LENGTH = 2048  # tokens that a model reads, where it does not say


def embed(task):
    path = complete(task.model_folder())
    cells = Cells(task, task.spec["data"])
    names = np.array([name.upper() for name in cells.symbols()], dtype=object)
    places = np.argsort(np.argsort(names, kind="stable"))
    top = int(task.spec["n_genes"])
    if top < 1:
        raise Refusal(f"a sentence of {top} genes is empty", hint="set n_genes to 1 or more")
    with task.phase("load"):
        tokenizer, model = reader(path), any_kind(path)
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        cause = f"it has {len(tokenizer)} tokens, the model fewer"
        raise Refusal(f"the tokenizer in {path} is not that of the model", cause=cause)
    settings = model.config
    length = getattr(settings, "max_position_embeddings", LENGTH)

    def sentences(first, counts):
        chosen = [names[top_genes(counts, cell, places, top)] for cell in range(counts.shape[0])]
        read = iter(tokens_of(tokenizer, [genes for genes in chosen if len(genes)]))
        return [(cut(next(read), genes) if len(genes) else np.empty(0, dtype=np.int64),) for genes in chosen]

    def cut(tokens, genes):
        """The tokens, without the last genes where they are more than the model reads."""
        while len(tokens) > length:
            task.warn(
                f"sentences of {top} genes are longer than the {length} tokens that the model reads: "
                "their last genes are left out"
            )
            genes = genes[: len(genes) * length // len(tokens)]
            if not len(genes):
                raise Refusal(f"the model in {path} reads {length} tokens, too few for a gene and the question")
            tokens = tokens_of(tokenizer, [genes])[0]
        return np.array(tokens, dtype=np.int64)

    def forward(tokens, mask):
        hidden = model(input_ids=tokens, attention_mask=mask.long(), use_cache=False).last_hidden_state
        # Of the cell's own tokens: filled up cells would depend on those that they are read with.
        return (hidden * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)

    matrix = embed_sequences(task, cells, sentences, model, forward, settings.hidden_size, (tokenizer.pad_token_id or 0,))
    cells.write_embedding(matrix, task.spec["output"])


def reader(path):
    # Without its files, some versions of the library make a tokenizer that knows nothing.
    if not any((path / name).is_file() for name in ("tokenizer.json", "vocab.json", "tokenizer.model")):
        raise Refusal(f"{path} has no tokenizer", cause="tokenizer.json is missing", hint=HINT)
    try:
        return AutoTokenizer.from_pretrained(path)
    except Exception as error:
        cause = (str(error).strip().splitlines() or ["it ends too early"])[0]
        raise Refusal(f"the tokenizer in {path} cannot be read", cause=cause, hint=HINT) from None


def top_genes(counts, cell, places, top):
    """The columns of the highest counts, equal ones in the order of their names; genes without a count are never among them."""
    stretch = slice(counts.indptr[cell], counts.indptr[cell + 1])
    columns, values = counts.indices[stretch], counts.data[stretch]
    return columns[np.lexsort((places[columns], -values))[:top]]


def tokens_of(tokenizer, cells):
    return tokenizer([QUESTION.format(" ".join(genes)) for genes in cells])["input_ids"] if cells else []


main(embed=embed)
