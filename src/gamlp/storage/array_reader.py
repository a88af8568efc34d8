"""Read arrays a chunk at a time: mapped files through plain reads, anything else by slices.

A plain read goes into a buffer of known size, and a file that ends early or cannot be read is an error with its name;
through the map the same would count as resident memory without end, and kill the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gamlp.errors import StorageError, disk_errors
from gamlp.storage.files import Array, is_whole_file


def chunks(array: Array, size: int = 2**21) -> Iterator[Array]:
    """Yield a long array of one dimension a few MiB at a time; each chunk is gone when the next one comes."""
    source, buffer = ArrayReader(array), np.empty(min(size, len(array)), array.dtype)
    for first in range(0, len(array), size):
        yield source.rows(first, min(first + size, len(array)), buffer)
    source.close()


class ArrayReader:
    """An array, or anything with a shape that can be sliced, read by ranges of rows and columns."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape: tuple[int, ...] = tuple(array.shape)
        self._file = os.open(array.filename, os.O_RDONLY) if is_whole_file(array) else None
        self._at_first = self._state()

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def rows(self, first: int, last: int, buffer: Array) -> Array:
        """Return array[first:last], copied into the beginning of `buffer`, which has its type and width."""
        out = buffer[: last - first]
        if self._file is not None and self.array.flags.c_contiguous:
            self._read([out.reshape(-1).view(np.uint8).data], [first * self._row_bytes])
        elif self._file is not None and self.array.ndim == 2:
            out[...] = self.columns(first, last, slice(0, self.shape[1]))
        else:
            out[...] = self.array[first:last]
        return out

    def block(self, first: int, last: int, columns: slice, buffer: Array | None = None) -> Array:
        """Return array[first:last, columns] as float32, by rows, or by columns where the file is.

        A file of float32 by columns is read into `buffer`, float32 of one dimension, if there is one.
        """
        array = self.array
        if self._file is None or array.ndim != 2:
            return np.ascontiguousarray(array[first:last, columns], dtype=np.float32)
        if array.flags.c_contiguous:
            whole = self.rows(first, last, np.empty((last - first, self.shape[1]), array.dtype))
            return np.ascontiguousarray(whole[:, columns], dtype=np.float32)
        return self.columns(first, last, columns, buffer).astype(np.float32, copy=False)

    def columns(self, first: int, last: int, columns: slice, buffer: Array | None = None) -> Array:
        """Return array[first:last, columns] of a file by columns, as it is stored."""
        array, width, count = self.array, columns.stop - columns.start, last - first
        if buffer is None or array.dtype != buffer.dtype:
            buffer = np.empty(width * count, array.dtype)
        found, item = buffer[: width * count], array.dtype.itemsize
        whole, size = found.view(np.uint8).data, count * item
        offsets = [(column * self.shape[0] + first) * item for column in range(columns.start, columns.stop)]
        self._read([whole[number * size : (number + 1) * size] for number in range(width)], offsets)
        return found.reshape(width, count).T

    def bytes_a_row(self, width: int) -> int:
        """Return what reading one row of so many columns costs: a file by rows is read with all of them."""
        if hasattr(self.array, "bytes_a_row"):
            return int(self.array.bytes_a_row(width))
        by_rows = isinstance(self.array, np.memmap) and self.array.flags.c_contiguous
        return 4 * width + (self._row_bytes if by_rows else 4 * width)

    def check_unchanged(self) -> None:
        """Refuse to go on with a file that someone wrote to in the meantime."""
        if hasattr(self.array, "check_unchanged"):  # made of a file as it is read: it knows which
            self.array.check_unchanged()
        if self._state() != self._at_first:
            raise StorageError(
                f"{self.array.filename} was changed while it was being read.\n"
                "Nothing was made of it. Let one program at a time work on it, then run again."
            )

    @property
    def _row_bytes(self) -> int:
        return int(self.array.dtype.itemsize * np.prod(self.shape[1:], dtype=np.int64))

    def _state(self) -> tuple[int, int] | None:
        if self._file is None:
            return None
        found = os.fstat(self._file)
        return found.st_size, found.st_mtime_ns

    def _read(self, targets: Sequence[memoryview], offsets: Sequence[int]) -> None:
        """Fill each of the targets from the file, so many bytes into the array."""
        assert self._file is not None
        name = self.array.filename
        remedy = "Is the disk, or the network drive, still there? Copy or make the file again."
        with disk_errors(f"{name} could not be read", remedy):
            for target, offset in zip(targets, offsets, strict=True):
                place, left = self.array.offset + offset, target
                while len(left):
                    count = os.preadv(self._file, [left], place)
                    if not count:
                        raise StorageError(
                            f"{name} ends {len(left):,} bytes before its array does.\n"
                            "It was cut short while in use: copy or make it again."
                        )
                    place, left = place + count, left[count:]


def close_all(sources: Sequence[ArrayReader | None]) -> None:
    """Close what is open."""
    for source in sources:
        if source is not None:
            source.close()
