"""Read the pickles of old data sets without running anything that they say.

A pickle is a small program: it names classes and functions and calls them. Here every name it may use is answered with
a stand-in of ours that only collects plain data: array, dtype, sparse matrix, dictionary. Any other name ends the
reading before anything is called.
"""

from __future__ import annotations

import pickle
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError
from gamlp.storage.files import Array


class SavedType:
    """Stands in for numpy.dtype; its state's second item is the byte order."""

    def __init__(self, code: str, *_: object) -> None:
        if not re.fullmatch(r"[biuf][1248]", code):
            raise pickle.UnpicklingError(f"arrays of type {code!r} are not admitted")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1] if state[1] in ("<", ">") else "=")


class SavedArray:
    """Stands in for numpy.ndarray: version, shape, dtype, column order and the bytes."""

    values: Array

    def __init__(self, *_: object) -> None:  # as numpy's _reconstruct is called
        pass

    def __setstate__(self, state: tuple[int, tuple[int, ...], SavedType, bool, str | bytes]) -> None:
        _, shape, kind, by_columns, raw = state
        content = raw.encode("latin1") if isinstance(raw, str) else raw
        self.values = np.frombuffer(content, dtype=kind.dtype).reshape(shape, order="F" if by_columns else "C")


class SavedMatrix:
    """Stands in for scipy's csr_matrix: data, indices, indptr and the shape, as attributes."""


def latin1(text: str, encoding: str) -> bytes:
    """Stand in for _codecs.encode, with which newer Pythons spell bytes."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"encoding {encoding!r} is not admitted")
    return text.encode("latin1")


ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): SavedArray,
    ("numpy", "dtype"): SavedType,
    ("numpy.core.multiarray", "_reconstruct"): SavedArray,
    ("numpy._core.multiarray", "_reconstruct"): SavedArray,
    ("scipy.sparse.csr", "csr_matrix"): SavedMatrix,
    ("scipy.sparse._csr", "csr_matrix"): SavedMatrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("_codecs", "encode"): latin1,
}


class Reader(pickle.Unpickler):
    """An unpickler that knows the stand-ins and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Answer a name of the pickle, or end the reading."""
        if (module, name) not in ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return ADMITTED[module, name]


def read_pickle(path: Path) -> Any:
    """Read one file of a legacy data set: an array, a csr_array or a dictionary of lists."""
    if not path.is_file():  # nor a pipe or a device, which may never end
        raise FormatError(f"{path} is not a file.\nFetch it again from its source.")
    try:
        with path.open("rb") as file:
            return unwrap(Reader(file, encoding="latin1").load())
    except (Exception, RecursionError) as error:  # a foreign pickle can fail in any way; it must fail with its name
        raise FormatError(
            f"{path} is a hostile or foreign pickle, or cut short ({error}); nothing in it was run.\n"
            "Expected numpy arrays, a scipy csr_matrix or a dictionary of lists. Fetch the file again from its source."
        ) from error


def unwrap(content: Any) -> Any:
    """Turn a stand-in into what it stands for; a sparse matrix is checked in full."""
    if isinstance(content, SavedArray):
        return content.values
    if isinstance(content, dict):
        return content
    if not isinstance(content, SavedMatrix):
        raise pickle.UnpicklingError(f"it holds a {type(content).__name__}")
    from scipy.sparse import csr_array

    state = vars(content)
    data, indices, indptr = (state[key].values for key in ("data", "indices", "indptr"))
    shape = state.get("_shape", state.get("shape"))
    matrix = csr_array((data, indices.astype(np.int64), indptr.astype(np.int64)), shape=shape)
    matrix.check_format(full_check=True)
    return matrix
