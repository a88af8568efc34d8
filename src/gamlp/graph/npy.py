"""Look at the header of a .npy array before reading it: a declared size that the file does not have is refused.

A few bytes can declare an array of any size; taking the header's word would allocate it first and fail later.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO

import numpy as np

from gamlp.errors import FormatError, MissingFileError
from gamlp.files import Array, read_array

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npy(path: Path, *, memory_map: bool = False) -> Array:
    """Read or map one .npy file whose header tells the truth."""
    if not path.is_file():
        raise MissingFileError(f"{path} is not there.\nA .npy file was expected at this place.")
    try:
        with path.open("rb") as file:
            check_header(file, path.stat().st_size)
    except (ValueError, OSError) as error:
        raise FormatError(
            f"{path} is not a complete .npy array ({error}).\nIt may be cut short; copy or make it again."
        ) from error
    return read_array(path, memory_map=memory_map)


def check_header(file: IO[bytes], size: int) -> None:
    """Refuse a header that declares more than the `size` in bytes of the whole file."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"format version {version} is not admitted")
    try:
        shape, _, dtype = HEADERS[version](file)
    except Exception as error:  # the header is Python text: a damaged one fails in as many ways as Python has
        raise ValueError("its header is damaged") from error
    if dtype.hasobject or dtype.names:
        raise ValueError("it holds pickled objects or records, not plain values")
    if any(length < 0 for length in shape):
        raise ValueError(f"it declares the shape {shape}")
    declared = math.prod(shape) * dtype.itemsize
    if file.tell() + declared > size:
        raise ValueError(f"it declares {declared:,} bytes of values and has {size - file.tell():,}")
