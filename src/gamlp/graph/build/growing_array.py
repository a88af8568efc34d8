"""A .npy file that grows at its end: its header, which names the length, is written last."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from gamlp.storage.files import Array, array_header

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
