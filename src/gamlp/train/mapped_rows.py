"""Rows of hops that lie in a file and not in memory: sorted, neighbours read in one piece, several pieces at a time.

Looking at far-apart rows through the map makes the system fetch a page, and what lies around it, whenever a row is
touched first, one row after the other. Here each run of neighbouring rows is one read of just its bytes, and as many
reads are under way as there are threads, which is what a disk is quick at. Files that fit in half of the memory are
looked at through the map: the system's cache soon holds them whole.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gamlp.machine.facts import memory_bytes
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array, is_whole_file
from gamlp.storage.threads import workers

THREADS = 16  # reads under way at a time


class MappedRows:
    """Reads rows of a mapped file (R, …), of which the first `hops` hops are wanted."""

    def __init__(self, whole: Array, hops: int) -> None:
        self.whole, self.hops = whole, hops
        self._source = ArrayReader(whole)

    def take(self, rows: Array) -> Array:
        """Return values[rows]; in whatever order and however often they are named."""
        wanted, place = np.unique(rows, return_inverse=True)
        out = np.empty((len(wanted), *self.whole.shape[1:]), self.whole.dtype)
        cuts = np.flatnonzero(np.diff(wanted) != 1) + 1
        starts, stops = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(wanted)]])

        def read(share: int) -> None:
            for start, stop in zip(starts[share::THREADS].tolist(), stops[share::THREADS].tolist(), strict=True):
                if stop > start:
                    self._source.rows(int(wanted[start]), int(wanted[stop - 1]) + 1, out[start:stop])

        with workers(THREADS) as run:
            run([partial(read, share) for share in range(THREADS)])
        found = out if len(wanted) == len(rows) and bool((place[1:] > place[:-1]).all()) else out[place]
        return found[..., : self.hops, :]


def mapped_rows(values: Any, *, limit: int | None = None) -> MappedRows | None:
    """Return a reader for hops in a file of more than `limit` bytes, by default half of the memory; else None."""
    base = getattr(values, "base", None)
    whole = values if is_whole_file(values) else base
    if not is_whole_file(whole) or whole is None or not whole.flags.c_contiguous:
        return None
    beginning = values.ctypes.data == whole.ctypes.data and values.shape[-1] == whole.shape[-1]
    if not beginning or values.ndim != whole.ndim or values.ndim < 3 or values.shape[:-2] != whole.shape[:-2]:
        return None
    if limit is None:
        limit = (memory_bytes() or 2**34) // 2
    return MappedRows(whole, values.shape[-2]) if whole.nbytes > limit else None
