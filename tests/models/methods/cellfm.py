"""A tiny CellFM in MindSpore's form, and its embedding cell by cell in plain steps."""

import csv

import numpy as np
import torch

SIZE, BINS, LAYERS = 64, 8, 2
EXTRA = [f"EXTRA{number}" for number in range(2000)]  # genes that no file has but that of variants.py


def tiny(folder, symbols):
    (folder / "csv").mkdir(parents=True)
    genes = [*symbols[::-1], *EXTRA]
    with open(folder / "csv" / "expand_gene_info.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["HGNC_gene", "biotype"])
        rows.writerows((gene, "RNA, of some kind") for gene in genes)
    names(folder / "csv" / "updated_hgcn.tsv", symbols)
    written(folder / "CellFM_80M_weight.ckpt", tensors(len(genes)))


def names(path, symbols):
    """Each gene has an older and another name; the other name of the third is the approved symbol of the fourth."""
    with open(path, "w", newline="") as file:
        rows = csv.writer(file, delimiter="\t")
        rows.writerow(["HGNC ID", "Approved symbol", "Status", "Previous symbols", "Alias symbols"])
        for number, symbol in enumerate(symbols):
            other = symbols[3] if number == 2 else f"OTHER-{symbol}"
            rows.writerow([number, symbol, "Approved", f"OLD-{symbol}, OLDER-{symbol}", f"{other}, AS-{symbol}"])
        rows.writerow([-1, symbols[0], "Symbol Withdrawn", "", f"WITHDRAWN-{symbols[0]}"])


def tensors(genes):
    random = np.random.default_rng(0)

    def some(*sizes):
        return random.normal(0, sizes[-1] ** -0.5, sizes).astype(np.float32)

    state = {
        # Eight vectors make a row of the device that the model was trained on.
        "gene_emb": some(genes + 1 + (-genes - 1) % 8, SIZE),
        "cls_token": some(1, 1, SIZE),
        "zero_emb": some(1, 1, SIZE),
        "value_enc.mask_emb": some(1, 1, SIZE),
        "value_enc.value_enc.w1.weight": some(BINS, 1),
        "value_enc.value_enc.w3.weight": some(BINS, BINS),
        "value_enc.value_enc.table.weight": some(SIZE, BINS),
        "value_enc.value_enc.a": some(1, 1),
    }
    for layer in range(LAYERS):
        for part in [*(f"attn.{name}_proj" for name in "qkvuo"), *(f"ffn.{name}_proj" for name in "uvo")]:
            state[f"encoder.{layer}.{part}.weight"] = some(SIZE, SIZE)
        for norm in ("post_norm1", "post_norm2"):
            state[f"encoder.{layer}.{norm}.gamma"] = 1 + 0.1 * some(SIZE)
            state[f"encoder.{layer}.{norm}.beta"] = some(SIZE)
    state |= {f"moment1.{name}": np.zeros_like(value) for name, value in state.items()}
    return state | {"global_step": np.array(7, dtype=np.int32)}


def written(path, state):
    """The tensors in MindSpore's form: the first in two pieces, and a checksum at the end."""
    kinds = {"float32": b"Float32", "int32": b"Int32"}
    with open(path, "wb") as file:
        for number, (name, value) in enumerate(state.items()):
            content = value.tobytes()
            for piece in [content[: len(content) // 2], content[len(content) // 2 :]] if number == 0 else [content]:
                sizes = b"".join(b"\x08" + digits(size) for size in value.shape or (0,))
                tensor = sizes + field(2, kinds[str(value.dtype)]) + field(3, piece)
                file.write(field(1, field(1, name.encode()) + field(2, tensor)))
        file.write(b"crc_num" + bytes(10))


def field(number, content):
    return digits(number << 3 | 2) + digits(len(content)) + content


def digits(value):
    return bytes([value & 127 | 128]) + digits(value >> 7) if value > 127 else bytes([value])


def judge(weights, genes, counts, model):
    folder = weights / "CellFM"
    with open(folder / "csv" / "expand_gene_info.csv") as file:
        order = [row["HGNC_gene"] for row in csv.DictReader(file)]
    # What was written, not what a reader makes of it.
    state = {name: torch.from_numpy(value).double() for name, value in tensors(len(order)).items()}
    known = [(column, order.index(name) + 1) for column, name in enumerate(map(plain, genes)) if name in order]
    rows = []
    for cell in counts:
        cell = np.rint(cell / max(1, cell.sum() / 1e5))
        sums = {}
        for column, gene in known:
            if cell[column]:
                sums[gene] = sums.get(gene, 0) + cell[column]
        total = sum(sums.values())
        chosen = sorted(sums, key=lambda gene: (-sums[gene], gene))[:2048]
        values = [np.log1p(sums[gene] / total * 1e4) for gene in chosen]
        rows.append(row(state, chosen, values) if sums else np.full(SIZE, np.nan))
    return np.array(rows)


def plain(name):
    """The symbol of a gene by the names that the tiny table gives it."""
    for start in ("OLDER-", "OLD-", "OTHER-", "AS-"):
        if name.startswith(start):
            return name[len(start) :]
    return name


def row(state, genes, values):
    tokens = [state["gene_emb"][gene] + valued(state, value) for gene, value in zip(genes, values)]
    hidden = torch.stack([state["cls_token"][0, 0], *tokens])
    for number in range(LAYERS):
        start = f"encoder.{number}."
        part = {name[len(start) :]: value for name, value in state.items() if name.startswith(start)}
        hidden = normed(part, "post_norm1", hidden * (2 * LAYERS) ** 0.25 + retained(part, hidden))
        gated = (hidden @ part["ffn.u_proj.weight"].T) * (hidden @ part["ffn.v_proj.weight"].T)
        hidden = normed(part, "post_norm2", hidden * (2 * LAYERS) ** 0.25 + gated @ part["ffn.o_proj.weight"].T)
    return hidden[0].numpy()


def valued(state, value):
    start = "value_enc.value_enc."
    part = {name[len(start) :]: tensor for name, tensor in state.items() if name.startswith(start)}
    inner = part["w1.weight"][:, 0] * value
    inner = torch.where(inner > 0, inner, 0.2 * inner)
    scores = part["w3.weight"] @ inner + part["a"][0, 0] * inner
    return part["table.weight"] @ (scores.exp() / scores.exp().sum())


def retained(part, hidden):
    """Head by head, with each pair of genes by itself."""
    asked, keys, values, gate = (hidden @ part[f"attn.{name}_proj.weight"].T for name in "qkvu")
    values = values / (len(hidden) - 1) ** 0.5
    heads = []
    for first in range(0, SIZE, 32):
        columns = slice(first, first + 32)
        pairs = asked[:, columns].clamp(min=0) @ keys[:, columns].clamp(min=0).T / 32
        found = pairs @ values[:, columns]
        found = found / found.square().mean(1, keepdim=True).sqrt()
        heads.append(found * gate[:, columns] * torch.sigmoid(gate[:, columns]))
    return torch.cat(heads, dim=1) @ part["attn.o_proj.weight"].T


def normed(part, name, hidden):
    centred = hidden - hidden.mean(1, keepdim=True)
    return centred / (centred.square().mean(1, keepdim=True) + 1e-7).sqrt() * part[f"{name}.gamma"] + part[f"{name}.beta"]
