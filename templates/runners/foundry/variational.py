"""The encoder of scVI (Lopez et al., Nature Methods 2018), read from its weights: the mean of q(z) of a cell's counts."""

import numpy as np
from scipy import sparse
from torch import nn

from .layers import SparseLinear, filled

EPSILON = 0.001  # added to the variance of each unit
PLACE = "z_encoder."


def encoder(state, layer_norm=False):
    """The network from log1p of the counts to the means, of the shapes of the weights."""
    layers = []
    blocks = sorted({int(name.split("Layer ")[1].split(".")[0]) for name in state if name.startswith(f"{PLACE}encoder.")})
    for block in blocks:
        name = f"{PLACE}encoder.fc_layers.Layer {block}."
        size, inputs = state[f"{name}0.weight"].shape
        layers.append(filled((nn.Linear if layers else SparseLinear)(inputs, size), state, f"{name}0."))
        if f"{name}1.weight" in state:
            layers.append(filled(nn.BatchNorm1d(size, eps=EPSILON), state, f"{name}1."))
        if layer_norm:
            layers.append(nn.LayerNorm(size, elementwise_affine=False))
        layers.append(nn.ReLU())
    dimensions, size = state[f"{PLACE}mean_encoder.weight"].shape
    layers.append(filled(nn.Linear(size, dimensions), state, f"{PLACE}mean_encoder."))
    return nn.Sequential(*layers).float()


def logarithms(counts):
    """log1p of the counts (CSR)."""
    counts = sparse.csr_matrix(counts, dtype=np.float32)
    counts.data = np.log1p(counts.data)
    return counts
