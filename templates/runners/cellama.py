"""CELLama (Choi et al. 2024): a sentence model reads the names of a cell's top genes; the mean over tokens, of unit length."""

import json

import numpy as np
import torch
from foundry import Cells, main
from foundry.encoders import complete, encoder
from foundry.sequences import embed as embed_sequences
from transformers import AutoTokenizer

BATCH = 32  # cells at a time, as the sentence model's own package has it
LENGTH = 256  # tokens of a sentence, where the model does not say


def embed(task):
    path = complete(task.model_folder())
    cells = Cells(task, task.spec["data"])
    names = np.array(cells.symbols(), dtype=object)
    top = int(task.spec["top_k"])
    with task.phase("load"):
        tokenizer, model = AutoTokenizer.from_pretrained(path), encoder(path)
    length = longest(path)

    def sentences(first, counts):
        texts = [sentence(names[top_genes(counts, cell, top)]) for cell in range(counts.shape[0])]
        read = tokenizer([text for text in texts if text])["input_ids"] if any(texts) else []
        cut = sum(len(tokens) > length for tokens in read)
        if cut:
            task.warn(f"sentences of {top} genes are longer than the {length} tokens that the model reads: a smaller top_k is read whole")
        tokens = iter(read)
        return [(cut_to(next(tokens), length) if text else np.empty(0, dtype=np.int64),) for text in texts]

    def forward(tokens, mask):
        hidden = model(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        mean = (hidden * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return torch.nn.functional.normalize(mean, dim=1)

    size = model.config.hidden_size
    matrix = embed_sequences(task, cells, sentences, model, forward, size, (tokenizer.pad_token_id,), batch=BATCH)
    cells.write_embedding(matrix, task.spec["output"])


def top_genes(counts, cell, top):
    """The columns of the highest counts, equal ones in the order of the file; genes without a count are never among them."""
    stretch = slice(counts.indptr[cell], counts.indptr[cell + 1])
    columns, values = counts.indices[stretch], counts.data[stretch]
    return columns[np.lexsort((columns, -values))[:top]]


def sentence(genes):
    if len(genes) > 1:
        return f"Top genes are {', '.join(genes[:-1])}, and {genes[-1]}."
    return f"Top gene is {genes[0]}." if len(genes) else ""


def cut_to(tokens, length):
    """At most `length` tokens; the last is the end of the sentence."""
    return np.array(tokens if len(tokens) <= length else [*tokens[: length - 1], tokens[-1]], dtype=np.int64)


def longest(path):
    file = path / "sentence_bert_config.json"
    return json.loads(file.read_text()).get("max_seq_length", LENGTH) if file.is_file() else LENGTH


main(embed=embed)
