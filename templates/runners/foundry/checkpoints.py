"""Checkpoints of torch, read without running the code that a pickle may hold."""

import collections
import inspect
import pickle
import types
import zipfile

import torch

from .files import damaged, present
from .pickles import ALLOWED

# What tensors are put together by; the names of their storages are torch's own business.
TENSORS = {
    ("torch._utils", "_rebuild_tensor"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
    ("torch._tensor", "_rebuild_from_type_v2"),
    ("torch", "Size"),
    ("torch", "device"),
    ("torch", "Tensor"),
    ("torch.nn.parameter", "Parameter"),
}


class Inert(dict):
    """Stands for an object of a class of its author's: it holds what a dictionary would, and does nothing."""

    def __init__(self, *values, **more):
        super().__init__()

    def __setstate__(self, state):
        pass


class Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) in ALLOWED:
            return ALLOWED[module, name]
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) in TENSORS or (module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)):
            return super().find_class(module, name)
        if module in ("torch", "torch.storage") and name.endswith("Storage"):
            return super().find_class(module, name)
        return Inert


def load(path):
    """What a checkpoint holds: tensors, which stay on the disk until they are used, and plain settings."""
    options = {"map_location": "cpu", "weights_only": False}
    options["pickle_module"] = types.SimpleNamespace(
        __name__="foundry", Unpickler=Unpickler, load=lambda file, **more: Unpickler(file, **more).load()
    )
    present(path)
    if "mmap" in inspect.signature(torch.load).parameters and zipfile.is_zipfile(path):
        options["mmap"] = True
    try:
        return torch.load(str(path), **options)
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, AttributeError, TypeError, pickle.UnpicklingError) as error:
        words = str(error).strip().splitlines()
        raise damaged(path, words[0].split(". ")[0] if words else "it ends too early") from None


def fill(module, state, prefix, path):
    """Puts the tensors whose names begin with `prefix` into the module, which has to find all of its own."""
    wanted = module.state_dict()
    for name, value in wanted.items():
        found = state.get(prefix + name)
        if not isinstance(found, torch.Tensor):
            raise damaged(path, f"the tensor {prefix}{name} is missing")
        if found.shape != value.shape:
            raise damaged(path, f"{prefix}{name} is {shape(found)}, not {shape(value)}")
    module.load_state_dict({name: state[prefix + name] for name in wanted})
    return module.float()


def tensor(state, name, path):
    """The tensor of this name, in float32."""
    if not isinstance(state.get(name), torch.Tensor):
        raise damaged(path, f"the tensor {name} is missing")
    return state[name].float()


def shape(tensor):
    return " x ".join(str(size) for size in tensor.shape) or "one number"
