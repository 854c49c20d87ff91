"""A tiny scBERT, and its embedding cell by cell through the Performer of another author, with the same random projections."""

import sys
import types

import anndata
import numpy as np
import torch

SIZE, HEADS, WIDE, LAYERS = 24, 4, 8, 2


def tiny(folder, symbols):
    folder.mkdir(parents=True)
    genes = [*symbols[::-1], "NOT_IN_THE_FILE"]
    order = anndata.AnnData(np.zeros((1, len(genes)), dtype=np.float32))
    order.var_names = genes
    order.write_h5ad(folder / "panglao_10000.h5ad")
    model = performer(len(genes))
    torch.nn.init.normal_(model.token_emb.weight)
    state = {name: value for name, value in model.state_dict().items() if "proj_updater" not in name}
    optimizer = torch.optim.Adam(model.parameters())
    whole = {"epoch": 3, "model_state_dict": state, "optimizer_state_dict": optimizer.state_dict(), "losses": 0.5}
    torch.save(whole, folder / "panglao_pretrain.pth")


def performer(genes):
    """The class of the package, which imports two others that this model has no use for."""
    for name, missing in [("local_attention", "LocalAttention"), ("axial_positional_embedding", "AxialPositionalEmbedding")]:
        module = sys.modules.setdefault(name, types.ModuleType(name))
        setattr(module, missing, None)
    from performer_pytorch import PerformerLM

    return PerformerLM(
        num_tokens=7,
        dim=SIZE,
        depth=LAYERS,
        max_seq_len=genes + 1,
        heads=HEADS,
        dim_head=WIDE,
        rotary_position_emb=False,
        attn_out_bias=True,
        auto_check_redraw=False,
    )


def judge(weights, genes, counts, model):
    folder = weights / "scBERT"
    order = list(anndata.read_h5ad(folder / "panglao_10000.h5ad").var_names)
    official = performer(len(order)).eval()
    state = torch.load(folder / model, weights_only=True)["model_state_dict"]
    missing, unexpected = official.load_state_dict(state, strict=False)
    assert not unexpected and all("proj_updater" in name for name in missing), (missing, unexpected)
    rows = []
    for cell in counts:
        known = {gene: count for gene, count in zip(genes, cell) if gene in set(order)}
        total = sum(known.values())
        values = [np.log2(1 + known.get(gene, 0) / max(total, 1) * 1e4) for gene in order]
        tokens = torch.tensor([[min(int(np.floor(value)), 5) for value in values] + [0]])
        with torch.no_grad():
            row = official(tokens, return_encodings=True)[0, -1].numpy()
        rows.append(row if total else np.full(SIZE, np.nan))
    return np.array(rows)
