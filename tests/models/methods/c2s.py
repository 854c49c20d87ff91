"""A tiny Cell2Sentence, and its embedding cell by cell in plain steps."""

import numpy as np
import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import AutoTokenizer, GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

SIZE, GENES, LENGTH = 32, 200, 512


def tiny(folder, symbols):
    words = ByteLevelBPETokenizer()
    words.train_from_iterator([" ".join(symbols)], vocab_size=600, special_tokens=["<|endoftext|>"], show_progress=False)
    PreTrainedTokenizerFast(tokenizer_object=words._tokenizer, eos_token="<|endoftext|>").save_pretrained(folder)
    config = GPTNeoXConfig(
        vocab_size=words.get_vocab_size(),
        hidden_size=SIZE,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        # Wider than is usual, so that the order of the genes tells.
        initializer_range=0.2,
    )
    GPTNeoXForCausalLM(config).save_pretrained(folder)


def judge(weights, genes, counts, model):
    folder = weights / "C2S" / model
    tokenizer, whole = AutoTokenizer.from_pretrained(folder), GPTNeoXForCausalLM.from_pretrained(folder).eval()
    rows = []
    for cell in counts:
        expressed = sorted((-count, gene.upper()) for gene, count in zip(genes, cell) if count)[:GENES]
        tokens = read(tokenizer, [gene for _, gene in expressed])
        kept = len(expressed)
        while len(tokens) > LENGTH:
            kept = int(kept * LENGTH / len(tokens))
            tokens = read(tokenizer, [gene for _, gene in expressed[:kept]])
        with torch.no_grad():
            states = whole(input_ids=torch.tensor([tokens]), output_hidden_states=True).hidden_states
        rows.append(states[-1][0].mean(0).numpy() if expressed else np.full(SIZE, np.nan))
    return np.array(rows)


def read(tokenizer, genes):
    return tokenizer.encode(f"Genes of a single cell, the most expressed first: {' '.join(genes)}\nWhat type of cell is this?")
