"""Layers of torch of the sizes that the weights have: its own transformer, and parts of smaller networks."""

import torch
from torch import nn

from .checkpoints import fill, tensor
from .files import damaged

# The kernel for padded batches is slower on the CPU, and makes rows depend on their batch. Older versions have no switch.
if hasattr(torch.backends, "mha"):
    torch.backends.mha.set_fastpath_enabled(False)


def stack(state, prefix, heads, path):
    """The encoder layers whose tensors are called `prefix` and a number: post-norm, ReLU, cells first."""
    layers = nn.ModuleList()
    while f"{prefix}{len(layers)}.self_attn.in_proj_weight" in state:
        name = f"{prefix}{len(layers)}."
        size = tensor(state, f"{name}self_attn.in_proj_weight", path).shape[-1]
        wide = tensor(state, f"{name}linear1.weight", path).shape[0]
        if size % heads:
            raise damaged(path, f"{heads} heads do not share a width of {size}")
        layers.append(fill(nn.TransformerEncoderLayer(size, heads, wide, batch_first=True), state, name, path))
    if not len(layers):
        raise damaged(path, f"there is no layer {prefix}0")
    return layers


class SparseLinear(nn.Linear):
    """A first layer over counts of which few are not zero: its input is a sparse tensor."""

    def forward(self, values):
        return values @ self.weight.T + self.bias


def filled(module, state, prefix=""):
    """The module with the weights that have the prefix."""
    module.load_state_dict({name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)})
    return module
