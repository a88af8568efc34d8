"""Arrays written to .npy files chunk by chunk: one that grows at its end, and a matrix stored by columns.

Propagation reads blocks of columns; of a file stored by rows it would read all of it for every block.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from gamlp.errors import NotFiniteError, ShapeError
from gamlp.storage.files import Array, array_header, sync_folder

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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


class ColumnMatrix:
    """A .npy file of (N, F) float32 in column order, there under its name only once it is whole."""

    def __init__(self, path: Path, shape: tuple[int, int]) -> None:
        self.path, self.shape = path, shape
        self._temporary = path.with_name(f".{path.name}.tmp")
        header = array_header(shape, np.float32, by_columns=True)
        self._offset, self._filled = len(header), 0
        self._file = self._temporary.open("wb", buffering=0)
        self._write(header, 0)

    def __enter__(self) -> ColumnMatrix:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._finish()
        self._file.close()
        if kind is None:
            self._temporary.replace(self.path)
            sync_folder(self.path.parent)

    def append(self, rows: Array) -> None:
        """Write the next rows, (n, F)."""
        finite = np.isfinite(rows)
        if not finite.all():
            row, column = (int(at[0]) for at in np.nonzero(~finite))
            raise NotFiniteError(
                f"Feature {column} of node {self._filled + row:,} is {rows[row, column]}.\n"
                "Features must be finite numbers: fill or drop missing values first."
            )
        turned = np.ascontiguousarray(rows.T, dtype=np.float32)
        for column, values in enumerate(turned):
            self._write(values.view(np.uint8).data, self._offset + 4 * (column * self.shape[0] + self._filled))
        self._filled += len(rows)

    def _write(self, content: bytes | memoryview, at: int) -> None:
        """Write at a place, in as many calls as it takes."""
        rest = memoryview(content)
        while rest:
            done = os.pwrite(self._file.fileno(), rest, at)
            rest, at = rest[done:], at + done

    def _finish(self) -> None:
        if self._filled != self.shape[0]:
            raise ShapeError(
                f"There are {self._filled:,} rows of features for {self.shape[0]:,} nodes.\n"
                "Every node needs one row, isolated nodes too."
            )
        os.fsync(self._file.fileno())
