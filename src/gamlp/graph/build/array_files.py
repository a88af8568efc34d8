"""Arrays written to .npy files chunk by chunk: one that grows at its end, and a matrix stored by columns.

Propagation reads blocks of columns; of a file stored by rows it would read all of it for every block.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gamlp.graph.graph import check_finite
from gamlp.storage.files import Array, array_header, replacing

HEADER = 128  # bytes; numpy pads every header of one dimension to this


class GrowingArray:
    """An array of one dimension on disk; `length` values are there already when it is opened again."""

    def __init__(self, path: Path, dtype: npt.DTypeLike, length: int = 0) -> None:
        self.dtype: np.dtype[np.generic] = np.dtype(dtype)
        self.length = length
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(HEADER + length * self.dtype.itemsize)
        self._file.seek(0, os.SEEK_END)

    def __enter__(self) -> GrowingArray:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, values: Array) -> None:
        """Write values at the end."""
        self._file.write(np.ascontiguousarray(values, dtype=self.dtype).view(np.uint8).data)
        self.length += len(values)

    def sync(self, *, to_disk: bool = True) -> None:
        """Make the file as it stands readable, and bring it to the disk, or leave that to the system."""
        header = array_header((self.length,), self.dtype)
        if len(header) != HEADER:
            raise AssertionError("numpy writes headers of another size")
        self._file.seek(0)
        self._file.write(header)
        self._file.seek(0, os.SEEK_END)
        self._file.flush()
        if to_disk:
            os.fsync(self._file.fileno())


def write_chunks(path: Path, chunks: Iterable[Array], length: int, dtype: npt.DTypeLike) -> None:
    """Write an array of one dimension, of a known length, whole or not at all."""
    with replacing(path) as file:
        file.write(array_header((length,), dtype))
        for values in chunks:
            file.write(np.ascontiguousarray(values, dtype=dtype).view(np.uint8).data)


def write_by_columns(path: Path, chunks: Iterable[Array], nodes: int) -> None:
    """Write features (N, F) float32, which come by rows, in column order, whole or not at all."""
    filled = start = 0
    with replacing(path) as file:
        for rows in chunks:
            check_finite(rows, filled)
            if not filled:
                start = file.write(array_header((nodes, rows.shape[1]), np.float32, by_columns=True))
            for column, values in enumerate(np.ascontiguousarray(rows.T, dtype=np.float32)):
                file.seek(start + 4 * (column * nodes + filled))
                file.write(values.view(np.uint8).data)
            filled += len(rows)
