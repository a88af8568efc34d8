"""Write edges in chunks: each holds as many edges as fit in memory, its entries in buckets of neighbouring rows.

    chunk-00002.keys       the entries' keys (see `sorting`), bucket after bucket      chunk-00002.weights?  theirs
    chunk-00002.npy        (buckets+1,) where each bucket starts; written last: with it the chunk is finished

Entries keep the order in which their edges came, within a bucket and from chunk to chunk, so that weights are added up
in the same order as in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from gamlp.graph.build.sorting import Edges, Shape, bucketed
from gamlp.storage.files import Array, read_array, write_array
from gamlp.storage.huge_pages import empty
from gamlp.storage.threads import Run


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


def full_chunks(batches: Iterator[Edges], shape: Shape, size: int) -> Iterator[Edges]:
    """Join batches of edges to chunks of exactly `size`; the last may be smaller. A chunk's arrays are used again."""
    weights = empty((size,), np.float32) if shape.weighted else None
    chunk = (empty((size,), shape.id_type), empty((size,), shape.id_type), weights)
    filled = 0
    for batch in batches:
        at = 0
        while at < len(batch[0]):
            count = min(len(batch[0]) - at, size - filled)
            for kept, given in zip(chunk, batch, strict=True):
                if kept is not None and given is not None:
                    kept[filled : filled + count] = given[at : at + count]
            filled, at = filled + count, at + count
            if filled == size:
                yield chunk
                filled = 0
    if filled:
        yield chunk[0][:filled], chunk[1][:filled], None if weights is None else weights[:filled]


class ChunkWriter:
    """Puts chunks into buckets and writes them, with one set of buffers for all."""

    def __init__(self, folder: Path, shape: Shape, size: int, *, run: Run, blocks: int) -> None:
        self.folder, self.shape, self.run, self.blocks = folder, shape, run, blocks
        self._buffers = shape.buffers(size * (1 + shape.symmetric))

    def write(self, number: int, chunk: Edges) -> None:
        """Write one chunk."""
        keys, weights, starts = bucketed(self.shape, chunk, self._buffers, run=self.run, blocks=self.blocks)
        place = self.folder / f"chunk-{number:05}.npy"
        for kind, values in ((".keys", keys), (".weights", weights)):
            if values is not None:
                with place.with_suffix(kind).open("wb") as file:
                    file.write(values[: starts[-1]].view(np.uint8).data)
                    file.flush()
                    if not boot():
                        os.fsync(file.fileno())
        write_array(place, starts)


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
