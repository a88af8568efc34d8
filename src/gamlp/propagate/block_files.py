"""Write hops to a folder block by block: written one after the other, taken up again, joined at the end.

    <out>.partial/plan.json                    what is computed, and in which blocks of columns
    <out>.partial/block-00003.npy              ((K+1)·R, w) of one block, hop after hop; there whole or not at all
    <out>.partial/whole/                       the joined arrays, renamed to <out> when hops.json is in it

Everything is read and written in order, so a disk is used at its full speed. Killed at any point, the next call goes on
after the last finished block. The wanted rows alone are written; twice the result in disk space is needed while blocks
are joined. Hops that are read once, in order, stay as blocks (`Blocks`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from gamlp.errors import GamlpError, StorageError, disk_errors
from gamlp.graph.build.edge_chunks import boot
from gamlp.propagate.budget import Budget
from gamlp.propagate.hops import Hops, load_hops, write_arrays
from gamlp.propagate.sinks import Sink, Target
from gamlp.propagate.spec import Job
from gamlp.storage.array_reader import ArrayReader, close_all
from gamlp.storage.checksums import write_hashed
from gamlp.storage.directories import put_in_place
from gamlp.storage.files import Array, array_header, read_array, read_json, sync_folder, write_json
from gamlp.storage.locks import locked
from gamlp.storage.sizes import format_size
from gamlp.storage.threads import ranges

if TYPE_CHECKING:
    from gamlp.propagate.engines.base import Engine

FORMAT = 2
JOIN_BYTES = 2**21  # of each of two buffers
BUFFER_BYTES = 2**23  # of rows on their way into a file
SMALL = 2**26  # bytes of a block that is sooner computed again than waited for


class Blocks:
    """The files of blocks as an array (R, K+1, F), joined where it is read: quick for ranges of rows."""

    def __init__(self, files: Sequence[Path], columns: Sequence[slice], rows: int, hops: int) -> None:
        self._sources = [ArrayReader(read_array(file, memory_map=True)) for file in files]  # (K+1)·R rows, hop by hop
        self._columns = columns
        self.shape, self.dtype = (rows, hops, columns[-1].stop), self._sources[0].array.dtype
        self.ndim = len(self.shape)

    @property
    def nbytes(self) -> int:
        """How much is kept on disk."""
        return sum(source.array.nbytes for source in self._sources)

    def __getitem__(self, at: Any) -> Array:
        rows, hop = at if isinstance(at, tuple) else (at, None)
        ids = np.arange(*rows.indices(self.shape[0])) if isinstance(rows, slice) else np.asarray(rows)
        out = np.empty((len(ids), *self.shape[1:]), self.dtype)
        if isinstance(rows, slice) and rows.step in (None, 1):
            self.read(int(ids[0]) if len(ids) else 0, out)
        else:
            self.gather(ids, out)
        return out if hop is None else out[:, hop]

    def read(self, first: int, out: Array) -> None:
        """Fill `out` (n, K+1, F) with the rows from the first on."""
        for hop, source, block in self._parts():
            start, buffer = hop * self.shape[0] + first, np.empty((len(out), source.shape[1]), self.dtype)
            out[:, hop, block] = source.rows(start, start + len(out), buffer)

    def gather(self, rows: Array, out: Array) -> None:
        """Fill `out` (n, K+1, F) with rows of any order."""
        for hop, source, block in self._parts():
            out[:, hop, block] = source.array[hop * self.shape[0] + rows]

    def close(self) -> None:
        """Let the files go."""
        close_all(self._sources)

    def _parts(self) -> Iterator[tuple[int, ArrayReader, slice]]:
        for hop in range(self.shape[1]):
            for source, block in zip(self._sources, self._columns, strict=True):
                yield hop, source, block


def write_hops(engine: Engine, job: Job, folder: Path, key: str) -> Hops:
    """Have the engine compute the blocks that are missing and put the whole in its place; `key` names what it is."""
    stationary = job.stationary(engine.room)  # before the blocks: they take what is left
    budget = engine.budget(job)
    _check_space(folder, job, times=2, remedy="Ask for fewer rows, store hops as float16, or choose another disk.")
    files = BlockFiles(folder.with_name(f"{folder.name}.partial"), job, budget)
    try:
        with locked(folder):
            budget = files.compute(engine, budget, key)
            whole, (_, order) = files.folder / "whole", job.spec.sorted_rows
            shutil.rmtree(whole, ignore_errors=True)
            joined = files.join(whole / "values.npy", budget.blocks, None if order is None else np.argsort(order))
            write_arrays(whole, key, {"values.npy": joined}, rows=job.spec.rows, stationary=stationary)
            put_in_place(whole, folder)
            shutil.rmtree(files.folder, ignore_errors=True)
    except OSError as error:
        raise StorageError(
            f"{folder} could not be written: {error.strerror or error}.\n"
            "What was there before is untouched, and finished blocks are kept: free some space and run again."
        ) from error
    return load_hops(folder, key, verify=False)  # just written, and hashed


def write_blocks(engine: Engine, job: Job, folder: Path) -> Hops:
    """Have the engine compute blocks into `folder`; they are joined where they are read, and nothing is written twice.

    Of rows in order alone.
    """
    remedy = "Free some space, or name a folder on a larger disk by TMPDIR, and run again."
    stationary = job.stationary(engine.room)
    budget = engine.budget(job)
    _check_space(folder, job, times=1, remedy=remedy)
    files = BlockFiles(folder, job, budget)
    with disk_errors(f"{folder} could not be written", remedy):
        budget = files.compute(engine, budget, key="")
        blocks = files.blocks(budget.blocks)
    return Hops(cast(Array, blocks), job.spec.rows, stationary)


def _check_space(folder: Path, job: Job, *, times: int, remedy: str) -> None:
    """Refuse to begin what the disk cannot hold: twice the result, where blocks are joined."""
    needed = times * job.rows * len(job.spec.kept_hops) * job.width * np.dtype(job.spec.storage).itemsize
    free = shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.exists())).free
    if needed > free:
        raise StorageError(
            f"{folder} needs {format_size(needed)} of the disk while it is made, {format_size(free)} are free.\n"
            f"{remedy}"
        )


class BlockFiles(Sink):
    """The finished blocks below one folder."""

    in_order = True

    def __init__(self, folder: Path, job: Job, budget: Budget, *, attempt: str = "") -> None:
        """Several attempts at a block, on several machines, need names of their own."""
        self.folder, self.job, self.rows, self.hops = folder, job, job.rows, job.spec.kept_hops
        self.storage, self.attempt = np.dtype(job.spec.storage), attempt
        self.key: str | None = None  # of what is computed, once `open` said so
        self.buffer_bytes = BUFFER_BYTES if budget.chunk_bytes is None else budget.chunk_bytes // 8

    def open(self, key: str, blocks: list[slice]) -> list[slice]:
        """Return the blocks to compute: those begun with if this is the same work, else these, from nothing."""
        self.key = key
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

    def compute(self, engine: Engine, budget: Budget, key: str) -> Budget:
        """Have the engine compute the blocks that are missing; return the budget with those that are there."""
        budget = replace(budget, blocks=self.open(key, budget.blocks))
        missing = [number for number in range(len(budget.blocks)) if not self.place(number).is_file()]
        if missing:
            engine.run(self.job, self, budget, missing)
        return budget

    def blocks(self, columns: Sequence[slice]) -> Blocks:
        """Return the finished blocks as one array."""
        return Blocks(list(map(self.place, range(len(columns)))), columns, self.rows, len(self.hops))

    def place(self, block: int) -> Path:
        """Return where a block is once it has been computed."""
        return self.folder / f"block-{block:05}.npy"

    @contextmanager
    def block(self, number: int, columns: slice) -> Iterator[Sink]:
        """Open a block, to whose file rows are appended; it is finished if this ends without an error."""
        self._width = width = columns.stop - columns.start
        self.rows_at_once = max(1, self.buffer_bytes // (width * self.storage.itemsize))
        temporary, to_disk = self.folder / f"block-{number:05}{self.attempt}.tmp", self._is_synced(width)
        try:
            with temporary.open("wb") as file:
                self._file: BinaryIO = file
                file.write(array_header((len(self.hops) * self.rows, width), self.storage))
                yield self
                file.flush()
                if to_disk:
                    os.fsync(file.fileno())
            temporary.replace(self.place(number))
            if to_disk:
                sync_folder(self.folder)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def put(self, hop: int, at: Any, values: Array) -> None:
        """Append the rows."""
        self._file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)

    @contextmanager
    def target(self, hop: int, first: int, last: int) -> Iterator[Target]:
        """Lend a buffer, and append its rows."""
        buffer = np.empty((last - first, 1, self._width), self.storage)
        yield Target(buffer, 0, 0)
        self.put(hop, slice(first, last), buffer)

    def join(self, path: Path, columns: list[slice], rank: Array | None) -> str:
        """Write all blocks as one array (R, K+1, F), whose hash is returned; `rank` of a row is its place in order."""
        blocks = self.blocks(columns)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return write_hashed(path, self._joined(blocks, rank))
        finally:
            blocks.close()

    def _joined(self, blocks: Blocks, rank: Array | None) -> Iterator[memoryview]:
        """Yield the bytes of the whole array a few MiB at a time, from two buffers in turn."""
        step = max(1, JOIN_BYTES // max(1, int(np.prod(blocks.shape[1:])) * self.storage.itemsize))
        buffers = [np.empty((min(step, self.rows), *blocks.shape[1:]), self.storage) for _ in range(2)]
        yield memoryview(array_header(blocks.shape, self.storage))
        for number, (first, last) in enumerate(ranges(self.rows, step)):
            part = buffers[number % 2][: last - first]
            if rank is None:
                blocks.read(first, part)
            else:
                blocks.gather(rank[first:last], part)
            yield part.reshape(-1).view(np.uint8).data

    def _is_synced(self, width: int) -> bool:
        """Say whether blocks are brought to the disk at once: not those without a key, which nobody takes up again.

        And not small ones, if the boot tells a power cut.
        """
        if self.key == "":
            return False
        size = self.rows * len(self.hops) * width * self.storage.itemsize
        return size > SMALL or bool(self.attempt) or not boot()
