"""Writes .h5ad files in every encoding anndata has used, and what must be read from them.

usage: h5ad_make.py DIRECTORY
Writes DIRECTORY/*.h5ad and DIRECTORY/expected.json. Floats travel as the bits of float64, so that equal means equal.
"""

import json
import sys
import warnings
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
from scipy import sparse

warnings.filterwarnings("ignore")
ROWS, COLUMNS = 61, 23
DIRECTORY = Path(sys.argv[1])
random = np.random.default_rng(7)
expected = {}

DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">i2", ">i4", ">i8", ">u4", ">f4", ">f8", "?"]
FILTERS = {
    "plain": {},
    "gzip": {"compression": "gzip"},
    "gzip_shuffle": {"compression": "gzip", "shuffle": True},
    "gzip_shuffle_fletcher": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "lzf_shuffle_fletcher": {"compression": "lzf", "shuffle": True, "fletcher32": True},
    "fletcher": {"fletcher32": True},
    "scaleoffset": {"scaleoffset": 0},
}


def values(dtype, count):
    """Random values of a type, its extremes among them, none of them zero."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.ones(count, dtype)
    if dtype.kind == "f":
        numbers = random.normal(size=count).astype(dtype)
        numbers[numbers == 0] = 1
        numbers[: min(3, count)] = [np.nan, np.inf, np.finfo(dtype).tiny][: min(3, count)]
        return numbers
    limits = np.iinfo(dtype)
    numbers = random.integers(1, min(limits.max, 1000), count).astype(dtype)
    # The float64 that every value becomes holds 53 bits.
    numbers[: min(2, count)] = [max(limits.min, -(2**53)) or 1, min(limits.max, 2**53)][: min(2, count)]
    return numbers


def triplets(matrix):
    """CSR arrays of the sorted, deduplicated matrix without zeros, values as bits."""
    matrix = sparse.csr_matrix(matrix, copy=True) if not sparse.issparse(matrix) else matrix.tocsr().copy()
    matrix = sparse.csr_matrix((matrix.data.astype("f8"), matrix.indices, matrix.indptr), shape=matrix.shape)
    matrix.sum_duplicates()
    matrix.data[matrix.data == 0] = 0
    matrix.eliminate_zeros()
    bits = np.where(np.isnan(matrix.data), np.float64("nan"), matrix.data).view("u8")
    return {
        "shape": list(matrix.shape),
        "indptr": matrix.indptr.tolist(),
        "indices": matrix.indices.tolist(),
        "bits": [str(bit) for bit in bits],
    }


def random_csr(dtype):
    positions = random.random((ROWS, COLUMNS)) < 0.3
    positions[5] = positions[6] = False
    rows, columns = np.nonzero(positions)
    data = values(dtype, len(rows))
    order = random.permutation(len(data))
    indptr = np.concatenate([[0], np.cumsum(positions.sum(1))])
    return data[order], columns, indptr


def frame_group(file, name, index):
    group = file.create_group(name)
    group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
    group.attrs["column-order"] = np.array([], dtype="f8")
    group.create_dataset("_index", data=np.array(index, dtype=object), dtype=h5py.string_dtype())


def new_file(name, **options):
    file = h5py.File(DIRECTORY / f"{name}.h5ad", "w", **options)
    frame_group(file, "obs", [f"c{i}" for i in range(ROWS)])
    frame_group(file, "var", [f"g{i}" for i in range(COLUMNS)])
    return file


def add_sparse(file, path, kind, data, indices, indptr, **options):
    group = file.create_group(path)
    group.attrs.update({"encoding-type": f"{kind}_matrix", "encoding-version": "0.1.0", "shape": [ROWS, COLUMNS]})
    for member, array in {"data": data, "indices": indices, "indptr": indptr}.items():
        dataset_options = dict(options)
        if dataset_options.get("chunks"):
            dataset_options["chunks"] = (min(dataset_options["chunks"], max(len(array), 1)),)
        group.create_dataset(member, data=array, **dataset_options)


def matrices():
    """Every dtype x every filter, as CSR, CSC and dense, with different index types and chunk shapes."""
    index_types = ["i4", "i8", "u4", "u8", ">i4", ">i8", "i2", "u1"]
    chunk_shapes = [(7, 5), (ROWS, 1), (1, COLUMNS), (64, 32), (10, COLUMNS), (8, 30)]
    turn = 0
    for dtype in DTYPES:
        for filter_name, options in FILTERS.items():
            # Lossless for integers only; HDF5 1.14.6 fails on chunks of full range, with an error.
            if filter_name == "scaleoffset" and np.dtype(dtype).kind not in "iu":
                continue
            name = f"matrix_{dtype.replace('>', 'big_').replace('?', 'bool')}_{filter_name}"
            turn += 1
            with new_file(name, libver=("earliest", "v114") if turn % 5 == 0 else None) as file:
                data, indices, indptr = random_csr(dtype)
                if filter_name == "scaleoffset":
                    data = (np.arange(len(data)) % 100 + 1).astype(dtype)
                matrix = sparse.csr_matrix((data.astype("f8"), indices, indptr), shape=(ROWS, COLUMNS))
                index_type = index_types[turn % len(index_types)]
                pointer_type = "i8" if index_type in ("i2", "u1") else index_types[(turn * 3) % 6]
                chunks = {"chunks": [None, 7, 1, 1000][turn % 4]}
                if chunks["chunks"] is None and not options:
                    chunks = {}
                add_sparse(file, "X", "csr", data, indices.astype(index_type), indptr.astype(pointer_type), **options, **chunks)
                order = np.argsort(indices, kind="stable")
                row_of = np.repeat(np.arange(ROWS), np.diff(indptr))
                column_pointers = np.concatenate([[0], np.cumsum(np.bincount(indices, minlength=COLUMNS))])
                add_sparse(
                    file, "layers/by_column", "csc", data[order], row_of[order].astype(index_type), column_pointers.astype(pointer_type), **options, **chunks
                )
                dense = np.zeros((ROWS, COLUMNS), dtype)
                dense[row_of, indices] = data
                shape = chunk_shapes[turn % len(chunk_shapes)]
                larger = {"maxshape": (None, None)} if shape[0] > ROWS or shape[1] > COLUMNS else {}
                file.create_dataset("layers/dense", data=dense, **options, **({"chunks": shape, **larger} if options or turn % 2 else {}))
            same = triplets(matrix)
            names = {"X": same, "layers/by_column": same, "layers/dense": same}
            expected[name] = {"matrices": names, "dtypes": {slot: np.dtype(dtype).name for slot in names}}


def odd_matrices():
    """Layouts that anndata does not write, but other programs do."""
    data, indices, indptr = random_csr("f4")
    rows = np.repeat(np.arange(ROWS), np.diff(indptr))

    with new_file("odd_unsorted") as file:
        shuffled = np.concatenate([random.permutation(np.arange(a, b)) for a, b in zip(indptr, indptr[1:])]).astype(int)
        add_sparse(file, "X", "csr", data[shuffled], indices[shuffled], indptr)
        doubled = np.repeat(np.arange(len(data)), 2)
        twice = sparse.csr_matrix((np.r_[data, data].astype("f8"), (np.r_[rows, rows], np.r_[indices, indices])), shape=(ROWS, COLUMNS))
        add_sparse(file, "layers/doubled", "csr", data[doubled], indices[doubled], indptr * 2)
        with_zeros = data.copy()
        with_zeros[::3] = 0
        add_sparse(file, "layers/zeros", "csr", with_zeros, indices, indptr, compression="gzip")
    once = sparse.csr_matrix((data.astype("f8"), indices, indptr), shape=(ROWS, COLUMNS))
    zeros = sparse.csr_matrix((with_zeros.astype("f8"), indices, indptr), shape=(ROWS, COLUMNS))
    expected["odd_unsorted"] = {
        "matrices": {"X": triplets(once), "layers/doubled": triplets(twice), "layers/zeros": triplets(zeros)}
    }

    dense = once.toarray().astype("f4")
    whole = np.nan_to_num(dense, nan=4.0, posinf=5.0)
    with new_file("odd_storage", userblock_size=512) as file:
        file.create_dataset("X", data=dense, compression="gzip")
    expected["odd_storage"] = {"matrices": {"X": triplets(dense)}}

    with new_file("odd_dense") as file:
        unwritten = file.create_dataset("X", (ROWS, COLUMNS), "f4", chunks=(10, 10), fillvalue=2.5, compression="gzip")
        unwritten[3:12, 4:8] = whole[3:12, 4:8]
        never = file.create_dataset("layers/never_written", (ROWS, COLUMNS), "i4", chunks=(9, 23))
        contiguous_never = file.create_dataset("layers/never_allocated", (ROWS, COLUMNS), "i4", fillvalue=3)
        masked = file.create_dataset("layers/masked", (ROWS, COLUMNS), "f4", chunks=(ROWS, COLUMNS), compression="gzip", shuffle=True)
        masked.id.write_direct_chunk((0, 0), np.ascontiguousarray(whole).tobytes(), filter_mask=3)
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((ROWS, COLUMNS))
        layers = file["layers"]
        compact = h5py.h5d.create(layers.id, b"compact", h5py.h5t.IEEE_F32LE, space, creation)
        compact.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(whole))
        truncated = h5py.h5t.IEEE_F32LE.copy()
        truncated.set_fields(31, 23, 8, 7, 16)
        odd_float = h5py.h5d.create(layers.id, b"odd_float", truncated, space)
        odd_float.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(whole))
        odd_read = file["layers/odd_float"].id
        odd_values = np.empty((ROWS, COLUMNS))
        odd_read.read(h5py.h5s.ALL, h5py.h5s.ALL, odd_values, h5py.h5t.NATIVE_DOUBLE)
        three_bytes = h5py.h5t.STD_I32LE.copy()
        three_bytes.set_precision(24)
        three_bytes.set_size(3)
        integers = np.arange(ROWS * COLUMNS, dtype="i4").reshape(ROWS, COLUMNS) - 70
        odd_integer = h5py.h5d.create(layers.id, b"odd_integer", three_bytes, space)
        odd_integer.write(h5py.h5s.ALL, h5py.h5s.ALL, integers)
        expected["odd_dense"] = {
            "matrices": {
                "X": triplets(unwritten[:]),
                "layers/never_written": triplets(never[:]),
                "layers/never_allocated": triplets(contiguous_never[:]),
                "layers/masked": triplets(whole),
                "layers/compact": triplets(whole),
                "layers/odd_float": triplets(odd_values),
                "layers/odd_integer": triplets(integers),
            }
        }


def legacy():
    """anndata before 0.7: tables for obs and var, `raw.X`, categories in uns, one table for obsm."""
    obs = np.zeros(ROWS, dtype=[("index", "S6"), ("kind", "i1"), ("score", "f4"), ("note", "S5"), ("count", "i8"), ("ok", "?")])
    obs["index"] = [f"c{i}".encode() for i in range(ROWS)]
    obs["kind"] = random.integers(-1, 3, ROWS)
    obs["score"], obs["count"] = random.normal(size=ROWS), random.integers(0, 99, ROWS)
    obs["note"] = [f"n{i % 7}".encode() for i in range(ROWS)]
    obs["ok"] = random.random(ROWS) < 0.5
    var = np.array([(f"g{i}".encode(),) for i in range(COLUMNS)], dtype=[("index", "S6")])
    raw_var = np.array([(f"r{i}".encode(),) for i in range(COLUMNS)], dtype=[("index", "S6")])
    obsm = np.zeros(ROWS, dtype=[("X_pca", "f8", (4,)), ("X_umap", "f4", (2,))])
    obsm["X_pca"], obsm["X_umap"] = random.normal(size=(ROWS, 4)), random.normal(size=(ROWS, 2))
    data, indices, indptr = random_csr("f4")
    with h5py.File(DIRECTORY / "legacy.h5ad", "w") as file:
        file["obs"], file["var"], file["raw.var"], file["obsm"] = obs, var, raw_var, obsm
        file.create_dataset("uns/kind_categories", data=np.array(["low", "mid", "high"], dtype=object), dtype=h5py.string_dtype())
        for path in ("X", "raw.X"):
            add_sparse(file, path, "csr", data, indices, indptr)
            for attribute in ("encoding-type", "encoding-version", "shape"):
                del file[path].attrs[attribute]
            file[path].attrs.update({"h5sparse_format": "csr", "h5sparse_shape": [ROWS, COLUMNS]})
    matrix = sparse.csr_matrix((data.astype("f8"), indices, indptr), shape=(ROWS, COLUMNS))
    table = pd.DataFrame(
        {
            "kind": pd.Categorical.from_codes(obs["kind"], ["low", "mid", "high"]),
            "score": obs["score"],
            "note": [note.decode() for note in obs["note"]],
            "count": obs["count"],
            "ok": obs["ok"],
        },
        index=[f"c{i}" for i in range(ROWS)],
    )
    expected["legacy"] = {
        "matrices": {"X": triplets(matrix), "raw/X": triplets(matrix)},
        "obs": described(table),
        "obsm": ["X_pca", "X_umap"],
    }


def described(table):
    """Index and columns of a frame as the reader must see them."""
    return {"index": [str(name) for name in table.index], "columns": {name: column(table[name]) for name in table.columns}}


def name_of(value):
    if isinstance(value, (float, np.floating)) and np.isfinite(value) and float(value).is_integer():
        return str(int(value))
    return str(value)


def column(series):
    dtype = series.dtype
    kind = {"b": "boolean", "i": "integer", "u": "integer", "f": "float"}.get(getattr(dtype, "kind", "O"), "text")
    if isinstance(dtype, pd.CategoricalDtype):
        kind, classes = "categorical", [name for name in dtype.categories if (series == name).any()]
    else:
        classes = sorted(series.dropna().unique().tolist())
    codes = [None if pd.isna(value) else classes.index(value) for value in series]
    return {"kind": kind, "classes": [name_of(name) for name in classes], "codes": codes}


def modern():
    """A frame with every kind of column that anndata 0.12 writes, and as 0.7 wrote it."""
    anndata.settings.allow_write_nullable_strings = True
    length = ROWS
    some = np.arange(length) % 5 == 0
    obs = pd.DataFrame(index=[f"cell-{i}-é" for i in range(length)])
    obs["category"] = pd.Categorical(random.choice(["b", "a", "ü"], length), categories=["ü", "b", "a", "unused"])
    obs["ordered"] = pd.Categorical(random.choice(["s", "m", "l"], length), categories=["s", "m", "l"], ordered=True)
    obs.loc[obs.index[:4], "ordered"] = np.nan
    obs["numeric_category"] = pd.Categorical(random.choice([10, 2, 3], length))
    obs["float_category"] = pd.Categorical(random.choice([0.5, 1.0], length))
    obs["bool_category"] = pd.Categorical(random.random(length) < 0.5)
    obs["many"] = pd.Categorical([f"k{i % 50}" for i in range(length)])
    obs["text"] = np.array([f"t{i % 3}" for i in range(length)], dtype=object)
    obs["empty_text"] = ""
    for dtype in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]:
        obs[dtype] = random.integers(0, 100, length).astype(dtype)
    obs["with_nan"] = np.where(some, np.nan, random.integers(0, 3, length).astype("f4"))
    obs["flag"] = random.random(length) < 0.5
    obs["nullable_flag"] = pd.array(np.where(some, None, obs["flag"]), dtype="boolean")
    obs["nullable_integer"] = pd.array(np.where(some, None, obs["i2"]), dtype="Int64")
    obs["nullable_small"] = pd.array(np.where(some, None, obs["u1"]), dtype="UInt8")
    obs["nullable_text"] = pd.array(np.where(some, None, obs["text"]), dtype="string")
    data, indices, indptr = random_csr("f4")
    data = np.abs(np.nan_to_num(data, nan=1, posinf=2)) + 1
    matrix = sparse.csr_matrix((data, indices, indptr), shape=(ROWS, COLUMNS))
    file = anndata.AnnData(matrix, obs=obs, var=pd.DataFrame(index=[f"g{i}" for i in range(COLUMNS)]))
    file.obsm["spatial"] = random.normal(size=(length, 2))
    file.obsm["X_small"] = random.normal(size=(length, 3)).astype("f4")
    file.obsm["counts"] = matrix.copy()
    file.obsm["table"] = pd.DataFrame({"a": random.normal(size=length), "b": obs["category"].to_numpy()}, index=obs.index)
    file.raw = file.copy()
    answer = {
        "matrices": {"X": triplets(matrix), "raw/X": triplets(matrix)},
        "obs": described(obs),
        "obsm": ["X_small", "counts", "spatial", "table"],
    }
    for compression in (None, "gzip", "lzf"):
        name = f"modern_{compression}"
        file.write_h5ad(DIRECTORY / f"{name}.h5ad", compression=compression, convert_strings_to_categoricals=False)
        expected[name] = answer

    named = file.copy()
    named.obs.index.name = "barcode"
    named.write_h5ad(DIRECTORY / "modern_named_index.h5ad", convert_strings_to_categoricals=False)
    expected["modern_named_index"] = answer

    # As anndata 0.7 stored it: no marks, categories by reference.
    old_columns = ["category", "ordered", "text", "i4", "f4", "flag", "with_nan", "numeric_category"]
    with h5py.File(DIRECTORY / "frame_0_1_0.h5ad", "w") as old:
        frame_group(old, "var", [f"g{i}" for i in range(COLUMNS)])
        add_sparse(old, "X", "csr", data, indices, indptr)
        frame = old.create_group("obs")
        frame.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.1.0", "_index": "barcode"})
        frame.attrs["column-order"] = np.array(old_columns, dtype=object)
        text = h5py.string_dtype()
        frame.create_dataset("barcode", data=obs.index.to_numpy(object), dtype=text)
        for name in old_columns:
            series = obs[name]
            if not isinstance(series.dtype, pd.CategoricalDtype):
                options = {"dtype": text} if series.dtype == object else {}
                frame.create_dataset(name, data=series.to_numpy(), **options)
                continue
            names = series.cat.categories.to_numpy()
            categories = frame.create_dataset(f"__categories/{name}", data=names, **({"dtype": text} if names.dtype == object else {}))
            categories.attrs["ordered"] = series.cat.ordered
            frame.create_dataset(name, data=series.cat.codes.to_numpy())
            frame[name].attrs["categories"] = categories.ref
        for group in ("layers", "obsm", "uns"):
            old.create_group(group)
        old["obsm/X_pca"] = file.obsm["X_small"]
        old["obsm/spatial"] = file.obsm["spatial"]
    expected["frame_0_1_0"] = {
        "matrices": {"X": triplets(matrix)},
        "obs": described(obs[old_columns]),
        "obsm": ["X_pca", "spatial"],
    }


def refused():
    """Files that must be refused, with words that the error must hold."""
    data, indices, indptr = random_csr("f4")
    last = len(data)

    def broken(name, words, change):
        arrays = {"data": data.copy(), "indices": indices.astype("i8"), "indptr": indptr.astype("i8")}
        shape = [ROWS, COLUMNS]
        change(arrays, shape)
        with new_file(name) as file:
            add_sparse(file, "X", "csr", **arrays)
            file["X"].attrs["shape"] = shape
        expected[name] = {"error": ["X", *words]}

    def put(member, position, value):
        return lambda arrays, _: arrays[member].__setitem__(position, value)

    broken("refused_start", ["indptr", "first pointer is 1"], put("indptr", 0, 1))
    broken("refused_fall", ["indptr", "falls from", "row 9"], put("indptr", 10, 0))
    broken("refused_overflow", ["indptr", "-2147483648", "overflowed"], put("indptr", 60, -(2**31)))
    broken("refused_end", ["indptr", f"{last} values are stored"], put("indptr", 61, last + 4))
    broken("refused_index", ["indices", "index 23 in row 0", "0..=22"], put("indices", 0, COLUMNS))
    broken("refused_negative", ["indices", "index -4 in row"], put("indices", last - 1, -4))
    broken("refused_far", ["indices", "index 4294967297 in row"], put("indices", 3, 2**32 + 1))
    broken("refused_shape", ["60 x 23", "61 rows"], lambda arrays, shape: (shape.__setitem__(0, 60), arrays.update(indptr=np.r_[arrays["indptr"][:60], last])))
    broken("refused_rows", ["indptr", "62 pointers for 99 rows"], lambda arrays, shape: shape.__setitem__(0, 99))
    broken("refused_lengths", ["data", "values for"], lambda arrays, _: arrays.update(data=data[:-1]))
    broken("refused_float_index", ["indices", "float64, not integers"], lambda arrays, _: arrays.update(indices=indices.astype("f8")))

    with new_file("refused_filter") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((ROWS, COLUMNS))
        creation.set_filter(32001, h5py.h5z.FLAG_OPTIONAL, (0,))
        space = h5py.h5s.create_simple((ROWS, COLUMNS))
        h5py.h5d.create(file.id, b"X", h5py.h5t.IEEE_F32LE, space, creation)
    expected["refused_filter"] = {"error": ["X", "32001", "blosc"]}
    # HDF5 2 alone reads what it writes under this name.
    if h5py.version.hdf5_version_tuple >= (2, 0, 0):
        with new_file("refused_newer", libver="latest") as file:
            file.create_dataset("X", data=np.ones((ROWS, COLUMNS)), chunks=(9, 9), compression="gzip")
        expected["refused_newer"] = {"error": ["X", "version"]}
    with new_file("refused_text") as file:
        file.create_dataset("X", data=np.full((ROWS, COLUMNS), b"x"))
    expected["refused_text"] = {"error": ["X", "string, not numbers"]}
    with new_file("refused_checksum") as file:
        X = file.create_dataset("X", data=np.ones((ROWS, COLUMNS)), chunks=(ROWS, COLUMNS), fletcher32=True)
        place = X.id.get_chunk_info(0).byte_offset
    raw = bytearray((DIRECTORY / "refused_checksum.h5ad").read_bytes())
    raw[place + 8] ^= 1
    (DIRECTORY / "refused_checksum.h5ad").write_bytes(raw)
    expected["refused_checksum"] = {"error": ["X", "checksum"]}
    with h5py.File(DIRECTORY / "refused_other.h5ad", "w") as file:
        file["matrix/data"] = np.arange(3)
    expected["refused_other"] = {"error": ["not AnnData"]}
    with h5py.File(DIRECTORY / "refused_index_missing.h5ad", "w") as file:
        frame_group(file, "var", ["g"])
        file.create_group("obs")
    expected["refused_index_missing"] = {"error": ["obs", "no index"]}


matrices()
odd_matrices()
legacy()
modern()
refused()
(DIRECTORY / "expected.json").write_text(json.dumps(expected))
print(len(expected))
