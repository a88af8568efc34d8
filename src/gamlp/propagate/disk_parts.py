"""Blocks that are finished, on their way to one array: written one after the other, taken up again, joined at the end.

    <out>.partial/plan.json                    what is computed, and in which blocks of columns
    <out>.partial/block-00003/hop-2.npy        (R, w) of one block and hop; the folder is there whole or not at all
    <out>.partial/whole/                       the joined arrays, renamed to <out> when hops.json is in it

Everything is read and written in order, so a disk is used at its full speed. Killed at any point, the next call goes on
after the last finished block.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from gamlp.errors import GamlpError, StorageError
from gamlp.files import Array, array_header, read_array, read_json, sync_folder, write_json
from gamlp.graph.out_of_core.groups import boot
from gamlp.seals import write_hashed
from gamlp.sizes import in_words
from gamlp.spans import Spans, close_all
from gamlp.threads import spans

FORMAT = 1
JOIN_BYTES = 2**23  # of each of two buffers
SMALL = 2**26  # bytes of a block that is sooner computed again than waited for


class Parts:
    """The finished blocks below one folder."""

    def __init__(self, folder: Path, *, rows: int, hops: Sequence[int], storage: str, attempt: str = "") -> None:
        """Several attempts at a block, on several machines, need names of their own."""
        self.folder, self.rows, self.hops, self.storage = folder, rows, list(hops), np.dtype(storage)
        self.attempt = attempt

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
        return self._place(block).is_dir()

    @contextmanager
    def writing(self, block: int, width: int) -> Iterator[BlockWriter]:
        """Open a block for writing; it counts as finished only if this ends without an error."""
        temporary = self.folder / f"block-{block:05}{self.attempt}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        writer = BlockWriter(temporary, (self.rows, width), self.storage)
        try:
            yield writer
            writer.finish(to_disk=self._is_synced(width))
            temporary.rename(self._place(block))
            if self._is_synced(width):
                sync_folder(self.folder)
        finally:
            writer.close()
            shutil.rmtree(temporary, ignore_errors=True)

    def join(self, path: Path, blocks: list[slice], rank: Array | None) -> str:
        """Write all blocks as one array (R, K+1, F); `rank` is the place of each wanted row among the sorted ones.

        Returns the hash of the file.
        """
        sources = [
            [Spans(read_array(self._place(b) / f"hop-{hop}.npy", memory_map=True)) for b in range(len(blocks))]
            for hop in self.hops
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return write_hashed(path, self._joined(sources, blocks, rank))
        finally:
            close_all([source for of_hop in sources for source in of_hop])

    def _joined(self, sources: list[list[Spans]], blocks: list[slice], rank: Array | None) -> Iterator[memoryview]:
        """Yield the bytes of the whole array a few MiB at a time, from two buffers in turn."""
        shape = (self.rows, len(self.hops), blocks[-1].stop)
        step = max(1, JOIN_BYTES // max(1, int(np.prod(shape[1:])) * self.storage.itemsize))
        buffers = [np.empty((min(step, self.rows), *shape[1:]), self.storage) for _ in range(2)]
        yield memoryview(array_header(shape, self.storage))
        for number, (first, last) in enumerate(spans(self.rows, step)):
            part = buffers[number % 2][: last - first]
            for at, of_hop in enumerate(sources):
                for source, block in zip(of_hop, blocks, strict=True):
                    part[:, at, block] = _part(source, first, last, rank)
            yield part.reshape(-1).view(np.uint8).data

    def _is_synced(self, width: int) -> bool:
        """Say whether blocks are brought to the disk at once: not small ones, if the boot tells a power cut."""
        size = self.rows * len(self.hops) * width * self.storage.itemsize
        return size > SMALL or bool(self.attempt) or not boot()

    def _place(self, block: int) -> Path:
        return self.folder / f"block-{block:05}"


class BlockWriter:
    """Takes the rows of one block, hop by hop and in order."""

    def __init__(self, folder: Path, shape: tuple[int, int], storage: np.dtype[np.generic]) -> None:
        self.folder, self.shape, self.storage = folder, shape, storage
        self._files: dict[int, BinaryIO] = {}

    def __call__(self, hop: int, first: int, values: Array) -> None:
        """Write the next rows of a hop."""
        if hop not in self._files:
            self._files[hop] = (self.folder / f"hop-{hop}.npy").open("wb")
            self._files[hop].write(array_header(self.shape, self.storage))
        self._files[hop].write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)

    def finish(self, *, to_disk: bool) -> None:
        """Write everything out, and bring it to the disk or leave that to the system."""
        for file in self._files.values():
            file.flush()
            if to_disk:
                os.fsync(file.fileno())

    def close(self) -> None:
        """Let the files go."""
        for file in self._files.values():
            file.close()


def check_space(folder: Path, needed: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    free = shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.exists())).free
    if needed > free:
        raise StorageError(
            f"{folder} needs {in_words(needed)} of the disk while it is made, {in_words(free)} are free.\n"
            "Ask for fewer rows (--rows labelled), store hops as float16, or choose another disk."
        )


def _part(source: Spans, first: int, last: int, rank: Array | None) -> Array:
    if rank is not None:
        return np.asarray(source.array[rank[first:last]])
    return source.rows(first, last, np.empty((last - first, *source.shape[1:]), source.array.dtype))
