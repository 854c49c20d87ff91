"""Checkpoints of MindSpore, read without MindSpore.

The file is a protocol buffer: a list of values, each with a name (field 1) and a tensor (field 2), which has its sizes (1), the
name of its type (2) and its bytes in little-endian order (3). A large tensor comes in several pieces under one name, and a
checksum of 17 bytes may follow the list.
"""

import mmap

import numpy as np
import torch

from .files import damaged, present

TYPES = {"Float16": "<f2", "Float32": "<f4", "Float64": "<f8", "Int32": "<i4", "Int64": "<i8"}
NUMBER, LONG, BYTES, SHORT = 0, 1, 2, 5  # kinds of fields
CHECKSUM = b"crc_num"


def load(path, wanted):
    """The tensors for whose names `wanted(name)` is true; they stay on the disk until they are used."""
    with open(present(path), "rb") as file:
        try:
            # A copy of what is written to, which is nothing.
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except ValueError:
            raise damaged(path, "it is empty") from None
    end = len(data)
    if data[end - 17 : end - 10] == CHECKSUM:
        end -= 17
    pieces = {}
    try:
        for _, (start, stop) in fields(data, 0, end):
            parts = dict(fields(data, start, stop))
            name = text(data, parts[1])
            if wanted(name) and 2 in parts:
                pieces.setdefault(name, []).append(parts[2])
        return {name: tensor(data, places) for name, places in pieces.items()}
    except (IndexError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise damaged(path, f"it is no checkpoint of MindSpore, or is cut short: {error}") from None


def tensor(data, places):
    arrays = []
    for start, stop in places:
        kind, content, sizes = None, None, []
        for field, value in fields(data, start, stop):
            if field == 1:
                sizes += [value] if isinstance(value, int) else numbers(data, *value)
            elif field == 2:
                kind = text(data, value)
            elif field == 3:
                content = value
        if kind not in TYPES or content is None:
            raise ValueError(f"a tensor of type {kind}")
        dtype = np.dtype(TYPES[kind])
        arrays.append(np.frombuffer(data, dtype, (content[1] - content[0]) // dtype.itemsize, content[0]))
    whole = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    # Each piece has the sizes of the whole; 0 is that of a single number.
    return torch.from_numpy(whole).reshape([size for size in sizes if size])


def fields(data, at, end):
    """Gives the fields of a message: their numbers, and a number or where their bytes begin and end."""
    while at < end:
        key, at = number(data, at)
        kind = key & 7
        if kind == NUMBER:
            value, at = number(data, at)
        elif kind == BYTES:
            size, at = number(data, at)
            value, at = (at, at + size), at + size
        elif kind in (LONG, SHORT):
            value, at = None, at + (8 if kind == LONG else 4)
        else:
            raise ValueError(f"a field of kind {kind}")
        if at > end:
            raise ValueError("a field reaches beyond the end")
        yield key >> 3, value


def number(data, at):
    """The number at a place, seven bits a byte, the lowest first; and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def numbers(data, at, end):
    values = []
    while at < end:
        value, at = number(data, at)
        values.append(value)
    return values


def text(data, place):
    return data[place[0] : place[1]].decode("utf-8")
