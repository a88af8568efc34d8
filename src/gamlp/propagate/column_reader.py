"""Some columns of all nodes, read a range of rows at a time by several threads.

Without a memory limit every thread takes the next range when it is done with one. Within a limit ranges go in rounds
of a few, each with a buffer of its own: files are read in order, and no more is held than the buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np

from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array
from gamlp.storage.huge_pages import empty
from gamlp.storage.threads import Run, ranges

VALUES_AT_ONCE = 2**18  # that a thread reads and works on
READERS = 4  # threads that read from files: more would read in small parts

Found = TypeVar("Found")


class ColumnReader:
    """Reads blocks of columns, one after the other, within `chunk_bytes` if that is not None."""

    def __init__(self, chunk_bytes: int | None, run: Run, *, threads: int) -> None:
        self.chunk_bytes, self.run, self.readers = chunk_bytes, run, min(threads, READERS)
        self._buffers: list[Array] = []

    def each(self, source: Any, columns: slice, work: Callable[[int, Array], Found]) -> Iterator[tuple[int, Found]]:
        """Yield (first, work(first, values)) for ranges of rows, in order; values (n, w) are float32."""
        if self.chunk_bytes is None:
            yield from self._all(source, columns, work)
            return
        reader, width = ArrayReader(source), columns.stop - columns.start
        some = ranges(len(source), max(1, self.chunk_bytes // 2 // READERS // reader.bytes_a_row(width)))
        if not self._buffers or len(self._buffers[0]) < some[0][1] * width:
            self._buffers = [empty((some[0][1] * width,), np.float32) for _ in range(self.readers)]

        def task(first: int, last: int, buffer: Array) -> tuple[int, Found]:
            return first, work(first, reader.block(first, last, columns, buffer))

        for at in range(0, len(some), self.readers):
            yield from self.run(
                [partial(task, *rows, buffer) for rows, buffer in zip(some[at:], self._buffers, strict=False)]
            )
        reader.check_unchanged()
        reader.close()

    def _all(self, source: Any, columns: slice, work: Callable[[int, Array], Found]) -> list[tuple[int, Found]]:
        def task(first: int, last: int) -> tuple[int, Found]:
            return first, work(first, np.ascontiguousarray(source[first:last, columns], dtype=np.float32))

        step = max(1, VALUES_AT_ONCE // (columns.stop - columns.start))
        return self.run([partial(task, *rows) for rows in ranges(len(source), step)])
