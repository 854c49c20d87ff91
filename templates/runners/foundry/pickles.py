"""Pickled tables of genes and checkpoints, read without running the code that a pickle may hold."""

import codecs
import pickle
from types import SimpleNamespace

import numpy as np

from .task import Refusal

# What makes numbers of NumPy and the bytes that they are made of; its home has changed with the versions.
ALLOWED = {
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "scalar"): np.float64(0).__reduce__()[0],
    ("numpy._core.multiarray", "scalar"): np.float64(0).__reduce__()[0],
    ("_codecs", "encode"): codecs.encode,
    ("builtins", "bytes"): bytes,
    ("__builtin__", "bytes"): bytes,
}

# What tensors and arrays are made of besides.
TENSORS = {
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("torch._utils", "_rebuild_parameter"),
    ("torch._utils", "_rebuild_tensor_v2"),
}


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) in ALLOWED:
            return ALLOWED[module, name]
        raise pickle.UnpicklingError(f"it holds {module}.{name}, which is no plain table")


def load(path):
    """The dictionary in a pickle of dictionaries, lists, texts and numbers."""
    try:
        with open(path, "rb") as file:
            return Plain(file).load()
    except FileNotFoundError:
        raise Refusal(f"{path} is missing", hint="`scfoundry download --dry-run` names the files of each model") from None
    except (pickle.UnpicklingError, EOFError, UnicodeDecodeError) as error:
        raise Refusal(f"{path} is not a table of genes", cause=error) from None


class Empty:
    """Takes the place of an object of any other kind, and does nothing."""

    def __init__(self, *values, **named):
        pass

    def __setstate__(self, state):
        pass


class Checkpoint(pickle.Unpickler):
    """Makes tensors, arrays and plain values; any other object becomes empty, so that no code of a file is run."""

    def find_class(self, module, name):
        if (module, name) in ALLOWED:
            return ALLOWED[module, name]
        if (module, name) in TENSORS or module == "torch" and name.endswith("Storage"):
            return super().find_class(module, name)
        return Empty


def checkpoint(path):
    """What a file of torch holds: tensors, arrays, dictionaries, lists, texts and numbers."""
    import torch

    reader = SimpleNamespace(__name__="pickle", Unpickler=Checkpoint, load=lambda file, **named: Checkpoint(file, **named).load())
    try:
        return torch.load(path, map_location="cpu", pickle_module=reader, weights_only=False)
    except FileNotFoundError:
        raise Refusal(f"{path} is missing", hint="`scfoundry download --dry-run` names the files of each model") from None
    except (pickle.UnpicklingError, EOFError, OSError, RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise Refusal(f"{path} is no checkpoint of torch, or cut short", cause=str(error).splitlines()[0]) from None
