"""Blocks that are finished, on their way to one array: written one after the other, taken up again, joined at the end.

    <out>.partial/plan.json                    what is computed, and in which blocks of columns
    <out>.partial/block-00003.npy              ((K+1)·R, w) of one block, hop after hop; there whole or not at all
    <out>.partial/whole/                       the joined arrays, renamed to <out> when hops.json is in it

Everything is read and written in order, so a disk is used at its full speed. Killed at any point, the next call goes on
after the last finished block.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gamlp.errors import GamlpError, StorageError
from gamlp.graph.build.edge_chunks import boot
from gamlp.propagate.job import Job
from gamlp.propagate.sinks import RowSink, Sink, Target
from gamlp.storage.array_reader import ArrayReader, close_all
from gamlp.storage.checksums import write_hashed
from gamlp.storage.files import Array, array_header, read_array, read_json, sync_folder, write_json
from gamlp.storage.sizes import format_size
from gamlp.storage.threads import ranges

FORMAT = 2
JOIN_BYTES = 2**21  # of each of two buffers
BUFFER_BYTES = 2**23  # of rows on their way into a file
SMALL = 2**26  # bytes of a block that is sooner computed again than waited for


class BlockFiles(Sink):
    """The finished blocks below one folder."""

    in_order = True

    def __init__(self, folder: Path, job: Job, *, buffer_bytes: int | None = None, attempt: str = "") -> None:
        """Several attempts at a block, on several machines, need names of their own."""
        self.folder, self.rows, self.hops = folder, job.rows, job.spec.kept_hops
        self.storage, self.attempt = np.dtype(job.spec.storage), attempt
        self.buffer_bytes = BUFFER_BYTES if buffer_bytes is None else buffer_bytes

    def open(self, key: str, blocks: list[slice]) -> list[slice]:
        """Return the blocks to compute: those begun with if this is the same work, else these, from nothing."""
        widest = max(block.stop - block.start for block in blocks)
        since = "" if self._is_synced(widest) else boot()
        wanted = {"format": FORMAT, "key": key, "boot": since, "blocks": [[b.start, b.stop] for b in blocks]}
        try:
            there = read_json(self.folder / "plan.json")
        except GamlpError:
            there = {}
        same = isinstance(there, dict) and all(there.get(name) == wanted[name] for name in ("format", "key", "boot"))
        if same and all(stop - start <= widest for start, stop in there["blocks"]):
            return [slice(start, stop) for start, stop in there["blocks"]]
        shutil.rmtree(self.folder, ignore_errors=True)
        write_json(self.folder / "plan.json", wanted)
        return blocks

    def is_finished(self, block: int) -> bool:
        """Say whether a block has been computed."""
        return self._place(block).is_file()

    @contextmanager
    def block(self, number: int, columns: slice) -> Iterator[RowSink]:
        """Open a block, which takes its rows hop by hop and in order; it is finished if this ends without an error."""
        width = columns.stop - columns.start
        temporary, to_disk = self.folder / f"block-{number:05}{self.attempt}.tmp", self._is_synced(width)
        try:
            with temporary.open("wb") as file:
                file.write(array_header((len(self.hops) * self.rows, width), self.storage))
                yield FileRows(file, width, self.storage, self.buffer_bytes)
                file.flush()
                if to_disk:
                    os.fsync(file.fileno())
            temporary.replace(self._place(number))
            if to_disk:
                sync_folder(self.folder)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def join(self, path: Path, blocks: list[slice], rank: Array | None) -> str:
        """Write all blocks as one array (R, K+1, F); `rank` is the place of each wanted row among the sorted ones.

        Returns the hash of the file.
        """
        sources = [ArrayReader(read_array(self._place(block), memory_map=True)) for block in range(len(blocks))]
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return write_hashed(path, self._joined(sources, blocks, rank))
        finally:
            close_all(sources)

    def _joined(self, sources: list[ArrayReader], blocks: list[slice], rank: Array | None) -> Iterator[memoryview]:
        """Yield the bytes of the whole array a few MiB at a time, from two buffers in turn."""
        shape = (self.rows, len(self.hops), blocks[-1].stop)
        step = max(1, JOIN_BYTES // max(1, int(np.prod(shape[1:])) * self.storage.itemsize))
        buffers = [np.empty((min(step, self.rows), *shape[1:]), self.storage) for _ in range(2)]
        yield memoryview(array_header(shape, self.storage))
        for number, (first, last) in enumerate(ranges(self.rows, step)):
            part = buffers[number % 2][: last - first]
            for hop in range(len(self.hops)):
                for source, block in zip(sources, blocks, strict=True):
                    part[:, hop, block] = self._part(source, hop, first, last, rank)
            yield part.reshape(-1).view(np.uint8).data

    def _part(self, source: ArrayReader, hop: int, first: int, last: int, rank: Array | None) -> Array:
        """Return rows first … last−1 of a hop from a block's file."""
        start = hop * self.rows
        if rank is not None:
            return np.asarray(source.array[start + rank[first:last]])
        return source.rows(start + first, start + last, np.empty((last - first, source.shape[1]), self.storage))

    def _is_synced(self, width: int) -> bool:
        """Say whether blocks are brought to the disk at once: not small ones, if the boot tells a power cut."""
        size = self.rows * len(self.hops) * width * self.storage.itemsize
        return size > SMALL or bool(self.attempt) or not boot()

    def _place(self, block: int) -> Path:
        return self.folder / f"block-{block:05}.npy"


class FileRows(RowSink):
    """The file of one block, to which rows are appended."""

    in_order = True

    def __init__(self, file: BinaryIO, width: int, storage: np.dtype[Any], buffer_bytes: int) -> None:
        self._file, self._width, self._storage = file, width, storage
        self.rows_at_once = max(1, buffer_bytes // (width * storage.itemsize))

    def put(self, hop: int, at: Any, values: Array) -> None:
        """Append the rows."""
        _append(self._file, values)

    def target(self, hop: int, first: int, last: int) -> Target:
        """Return a buffer."""
        return Target(np.empty((last - first, 1, self._width), self._storage), 0, 0)

    def written(self, hop: int, first: int, target: Target) -> None:
        """Append the rows of the buffer."""
        _append(self._file, target.values)


def _append(file: BinaryIO, values: Array) -> None:
    file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def check_space(folder: Path, needed: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    free = shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.exists())).free
    if needed > free:
        raise StorageError(
            f"{folder} needs {format_size(needed)} of the disk while it is made, {format_size(free)} are free.\n"
            "Ask for fewer rows (--rows labelled), store hops as float16, or choose another disk."
        )
