"""An array in a file by its name, as it travels to processes that see the same files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import StorageError
from gamlp.storage.files import Array, is_whole_file


@dataclass(frozen=True)
class FileArray:
    """A mapped array, by the name of its file."""

    path: str
    bytes: int
    offset: int
    dtype: str
    shape: tuple[int, ...]
    by_columns: bool

    @classmethod
    def of(cls, array: Any) -> FileArray:
        """Name the file of a mapped array."""
        path = Path(array.filename).resolve()
        by_columns = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
        return cls(str(path), path.stat().st_size, array.offset, array.dtype.str, array.shape, by_columns)

    def open(self) -> Array:
        """Map the file on this machine."""
        found = Path(self.path).stat().st_size if Path(self.path).is_file() else None
        if found != self.bytes:
            seen = "does not see" if found is None else f"sees {found:,} bytes, not {self.bytes:,}, of"
            raise StorageError(
                f"A machine of the cluster {seen} {self.path}.\n"
                "Keep the graph on storage that all machines share, under the same name."
            )
        order: Any = "F" if self.by_columns else "C"
        return np.memmap(self.path, np.dtype(self.dtype), "r", self.offset, self.shape, order)


def by_name(array: Any) -> Any:
    """Return a mapped array by the name of its file, anything else as it is."""
    return FileArray.of(array) if is_whole_file(array) else array


def opened(array: Any) -> Any:
    """Return what `by_name` was given."""
    return array.open() if isinstance(array, FileArray) else array
