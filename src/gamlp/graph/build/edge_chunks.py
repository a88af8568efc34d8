"""Write edges in chunks: each holds as many edges as fit in memory, its entries in buckets of neighbouring rows.

    chunk-00002.keys       the entries' keys (see `sorting`), bucket after bucket      chunk-00002.weights?  theirs
    chunk-00002.npy        (buckets+1,) where each bucket starts; written last: with it the chunk is finished

Entries keep the order in which their edges came, within a bucket and from chunk to chunk, so that weights are added up
in the same order as in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gamlp.graph.build import sorting
from gamlp.storage.files import Array, read_array, write_array
from gamlp.storage.huge_pages import empty
from gamlp.storage.threads import Run

Edges = tuple[Array, Array, Array | None]  # source, target, weight


class EdgeStream(Protocol):
    """Edges in chunks, as rows of the node table; it can be begun again after some of them."""

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""

    @property
    def estimate(self) -> int | None:
        """How many edges there are, about; None = unknown."""

    @property
    def key(self) -> str:
        """Say what it reads: another key, other edges."""

    def batches(self, skip: int) -> Iterator[Edges]:
        """Yield (source, target, weight) of the edges from number `skip` on."""


@dataclass(frozen=True)
class Shape:
    """What the keys of all chunks have in common."""

    nodes: int
    shift: int  # a bucket holds 2^shift rows
    weighted: bool
    symmetric: bool
    self_loops: bool

    @property
    def columns(self) -> int:
        """Return the bits of a column."""
        return max(1, (self.nodes - 1).bit_length())

    @property
    def spare(self) -> int:
        """Return the bits after the column: one for the direction, where weights need it."""
        return int(self.weighted)

    @property
    def bits(self) -> int:
        """Return the bits of a key."""
        return self.shift + self.columns + self.spare

    @property
    def buckets(self) -> int:
        """Return how many buckets there are."""
        return (self.nodes >> self.shift) + 1

    @property
    def id_type(self) -> type[np.integer[Any]]:
        """Return the type of a node's number."""
        return np.int32 if self.nodes < 2**31 else np.int64


def full_chunks(batches: Iterator[Edges], shape: Shape, size: int) -> Iterator[Edges]:
    """Join batches of edges to chunks of exactly `size`; the last may be smaller. A chunk's arrays are used again."""
    ends = [empty((size,), shape.id_type) for _ in range(2)]
    weights = empty((size,), np.float32) if shape.weighted else None
    filled = 0
    for source, target, weight in batches:
        at = 0
        while at < len(source):
            count = min(len(source) - at, size - filled)
            for kept, given in zip(ends, (source, target), strict=True):
                kept[filled : filled + count] = given[at : at + count]
            if weights is not None and weight is not None:
                weights[filled : filled + count] = weight[at : at + count]
            filled, at = filled + count, at + count
            if filled == size:
                yield ends[0], ends[1], weights
                filled = 0
    if filled:
        yield ends[0][:filled], ends[1][:filled], None if weights is None else weights[:filled]


class ChunkWriter:
    """Puts chunks into buckets and writes them, with one set of buffers for all."""

    def __init__(self, folder: Path, shape: Shape, size: int, *, run: Run, blocks: int) -> None:
        self.folder, self.shape, self.run, self.blocks = folder, shape, run, blocks
        entries = size * (1 + shape.symmetric)
        self._keys = empty((entries,), np.int64)
        self._weights = empty((entries,), np.float32) if shape.weighted else None

    def write(self, number: int, chunk: Edges) -> None:
        """Write one chunk."""
        shape, parts = self.shape, sorting.even(len(chunk[0]), self.blocks)
        counts = np.zeros((len(parts), shape.buckets), np.int64)
        both, loops = shape.symmetric, shape.self_loops
        self.run(
            [
                partial(sorting.count, *chunk[:2], both, loops, shape.shift, *part, counts[block])
                for block, part in enumerate(parts)
            ]
        )
        starts, places = sorting.places_of(counts)
        fixed: tuple[Any, ...] = (*chunk, both, loops, shape.shift, shape.columns, shape.spare)
        self.run(
            [
                partial(sorting.place, *fixed, *part, places[block], self._keys, self._weights)
                for block, part in enumerate(parts)
            ]
        )
        self._store(f"chunk-{number:05}", starts)

    def _store(self, name: str, starts: Array) -> None:
        for kind, values in (("keys", self._keys), ("weights", self._weights)):
            if values is not None:
                with (self.folder / f"{name}.{kind}").open("wb", buffering=0) as file:
                    write_all(file.fileno(), values[: starts[-1]])
                    if not boot():
                        os.fsync(file.fileno())
        write_array(self.folder / f"{name}.npy", starts)


def boot() -> str:
    """Return what names the time since the machine was started; empty where the system does not say.

    What was written since is there for us, on the disk or still on its way. Runs are not waited for: after a power cut
    another name shows that they cannot be trusted.
    """
    name = Path("/proc/sys/kernel/random/boot_id")
    return name.read_text(encoding="ascii").strip() if name.is_file() else ""


def finished_chunks(folder: Path) -> list[Array]:
    """Return where the buckets of each finished chunk start."""
    return [read_array(path) for path in sorted(folder.glob("chunk-*.npy"))]


def write_all(file: int, values: Array) -> None:
    """Write an array to a file, in as many calls as it takes."""
    rest = values.view(np.uint8).data
    while rest:
        rest = rest[os.write(file, rest) :]
