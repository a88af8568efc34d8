"""The engine on disk: propagate what does not fit in memory, within a promised amount of it.

    blocks of columns outside, hops inside; two states of one block in memory, the adjacency streaming from the disk

    propagate_to(folder, adjacency, features, hops=6, rows=labelled, storage="float16", memory=8 * 2**30)

Propagation is independent for each column, so blocks are computed one after the other and kept as they finish
(`disk_parts`): a run that was killed goes on where it was. The wanted rows alone are written. The bits are those of the
engine in memory. Cost O(K·E·F) time and ⌈F/width⌉·K readings of the adjacency, O(N·width) memory (`disk_budget`), and
twice the result in disk space while blocks are joined.

Features may be anything with a shape that gives features[first:last, columns]: a mapped file, one that is
scaled where it is read (`scaling.ScaledFeatures`), or labels as `OneHot`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gamlp.errors import SettingsError, StorageError
from gamlp.graph.graph import Adjacency
from gamlp.progress import progress
from gamlp.propagate.cache import hops_key
from gamlp.propagate.disk_block import StreamedBlock
from gamlp.propagate.disk_budget import Budget, budget
from gamlp.propagate.disk_parts import Parts, check_space
from gamlp.propagate.disk_route import route
from gamlp.propagate.hops import Hops
from gamlp.propagate.hops_folder import is_hops_folder, load_hops, refuse_other_content, write_contents
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.stationary import stationary_features
from gamlp.storage.directories import put_in_place
from gamlp.storage.files import Array, write_array
from gamlp.storage.locks import locked
from gamlp.storage.sizes import format_size
from gamlp.storage.threads import available, workers

MEMORY = 4 * 2**30


def propagate_to(
    folder: Path,
    adjacency: Adjacency,
    features: Any,
    *,
    hops: int,
    normalization: Normalization = Normalization(),  # noqa: B008 — frozen
    rows: Array | None = None,
    keep: str = "all",
    stationary: bool = False,
    storage: str = "float32",
    memory: int = MEMORY,
    key: str | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    carry: Carry | None = None,
    at_once: int = 1,
) -> Hops:
    """Write X, ÂX, …, ÂᴷX of `rows` to a folder and map it: values (R, K+1, F), or (R, 1, F) with keep="last".

    `key` names what is computed (`cache.hops_key`, which is worked out if it is not given); hops of that key that are
    there already are not computed again, others are replaced only with `overwrite`. `carry` computes the missing
    blocks, `at_once` of them side by side; by default this process does, one after the other.
    """
    from gamlp.propagate.engine import check

    rows = check(adjacency, features, hops=hops, rows=rows, keep=keep, storage=storage)
    job = Job(adjacency, features, hops, normalization, rows, keep, stationary, storage)
    key = key or job.key
    folder = Path(folder)
    beside = folder.with_name(f"{folder.name}.partial")
    if (is_hops_folder(folder) and not overwrite) or _is_done(folder, key):
        found = load_hops(folder, key)
        shutil.rmtree(beside, ignore_errors=True)  # what a kill after the last step left behind
        return found
    refuse_other_content(folder)
    room = job.budget(memory, at_once)
    check_space(folder, 2 * job.bytes)
    limit = job.limit(memory) if stationary else None
    parts = Parts(beside, rows=job.count, hops=job.kept, storage=storage)
    try:
        with locked(folder):
            blocks = parts.open(key, room.blocks)
            missing = [number for number in range(len(blocks)) if not parts.is_finished(number)]
            if missing:
                carry = carry or partial(carry_here, threads=threads or available())
                carry(job, parts, blocks, missing, room=room)
            _finish(job, parts, blocks, limit, key, folder)
    except OSError as error:
        raise StorageError(
            f"{folder} could not be written: {error.strerror or error}.\n"
            "What was there before is untouched, and finished blocks are kept: free some space and run again."
        ) from error
    return load_hops(folder, key, verify=False)  # just written, and hashed


def propagate_labels_to(folder: Path, adjacency: Adjacency, labels: Array, classes: int, **options: Any) -> Hops:
    """Propagate labels (N,), −1 = unknown, as C columns of ones, which are never held together; keeps the last hop."""
    return propagate_to(folder, adjacency, OneHot(labels, classes), keep="last", **options)


class OneHot:
    """Labels (N,) seen as a matrix (N, C) of zeros and ones, made where it is read."""

    ndim, dtype = 2, np.dtype(np.float32)

    def __init__(self, labels: Array, classes: int) -> None:
        self.labels, self.shape = labels, (len(labels), classes)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def content(self) -> list[Array | str]:
        """Return what the values follow from, for a hash."""
        return [self.labels, f"{self.shape}"]

    def __getitem__(self, at: tuple[slice, slice]) -> Array:
        classes = np.arange(self.shape[1])[at[1]]
        return np.asarray(self.labels[at[0], None] == classes, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Job:
    """What is to be computed; inside, the wanted rows are in order."""

    adjacency: Adjacency
    features: Any
    hops: int
    normalization: Normalization
    rows: Array | None
    keep: str
    stationary: bool
    storage: str

    @property
    def count(self) -> int:
        """R, the number of wanted rows."""
        return self.adjacency.nodes if self.rows is None else len(self.rows)

    @property
    def kept(self) -> list[int]:
        """Return the hops that are kept."""
        return [self.hops] if self.keep == "last" else list(range(self.hops + 1))

    @property
    def bytes(self) -> int:
        """Return the size of the result."""
        return self.count * len(self.kept) * int(self.features.shape[1]) * np.dtype(self.storage).itemsize

    @cached_property
    def order(self) -> Array | None:
        """Return what sorts the wanted rows; None where they are sorted."""
        if self.rows is None or bool((np.diff(self.rows) >= 0).all()):
            return None
        return np.argsort(self.rows, kind="stable")

    @property
    def key(self) -> str:
        """Return the hash of everything that the result depends on."""
        options: dict[str, Any] = {
            "keep": self.keep,
            "stationary": self.stationary,
            "storage": self.storage,
            "rows": self.rows,
        }
        return hops_key(self.adjacency, self.features, hops=self.hops, normalization=self.normalization, **options)

    def budget(self, memory: int, at_once: int = 1) -> Budget:
        """Return the blocks that fit in so much memory each."""
        rows, columns = None if self.rows is None else self.count, self.features.shape[1]
        options: dict[str, Any] = {"rows": rows, "in_order": self.order is None, "at_once": at_once}
        return budget(self.adjacency, columns, storage=self.storage, memory=memory, **options)

    def limit(self, memory: int) -> Array:
        """Return X^(∞), where the connected components can be found within `memory`."""
        needed = 12 * self.adjacency.entries + 40 * self.adjacency.nodes
        if needed > memory:
            raise SettingsError(
                f"X^(∞) needs {format_size(needed)} to find the connected components, "
                f"{format_size(memory)} were given.\n"
                "Give more memory, or use a combiner other than smoothing."
            )
        found = stationary_features(self.adjacency, self.features, self.normalization, rows=self.rows)
        return found.astype(self.storage)


class Carry(Protocol):
    """Computes missing blocks and leaves them in `parts`."""

    def __call__(self, job: Job, parts: Parts, blocks: list[slice], missing: list[int], *, room: Budget) -> None:
        """Return when all of them are finished."""


def carry_here(job: Job, parts: Parts, blocks: list[slice], missing: list[int], *, room: Budget, threads: int) -> None:
    """Compute the missing blocks, one after the other."""
    with progress("propagate", total=len(blocks) * job.hops) as advance:
        advance((len(blocks) - len(missing)) * job.hops)
        carry_blocks(job, parts, blocks, missing, room=room, threads=threads, advance=advance)


def carry_blocks(
    job: Job,
    parts: Parts,
    blocks: list[slice],
    numbers: list[int],
    *,
    room: Budget,
    threads: int,
    advance: Callable[[], None],
) -> None:
    """Carry the blocks of these numbers through all hops, and keep each as it is finished."""
    rows = job.rows if job.rows is None or job.order is None else job.rows[job.order]
    with workers(threads) as run:
        way = route(job.adjacency, job.normalization, chunk_bytes=room.chunk_bytes)
        widest = max(blocks[number].stop - blocks[number].start for number in numbers)
        block = StreamedBlock(way, widest, job.storage, run, threads=threads, rows=rows, spare=room.spare)
        carry = partial(block.carry, job.features, hops=job.hops, last_only=job.keep == "last", advance=advance)
        try:
            for number in numbers:
                columns = blocks[number]
                with parts.writing(number, columns.stop - columns.start) as sink:
                    carry(columns, sink=sink)
        finally:
            block.close()


def _finish(job: Job, parts: Parts, blocks: list[slice], limit: Array | None, key: str, folder: Path) -> None:
    """Join the blocks, and put the whole in its place."""
    whole = parts.folder / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    joined = parts.join(whole / "values.npy", blocks, None if job.order is None else np.argsort(job.order))
    for name, array in (("rows", job.rows), ("stationary", limit)):
        if array is not None:
            write_array(whole / f"{name}.npy", array)
    write_contents(whole, key, {"values.npy": joined})
    put_in_place(whole, folder)
    shutil.rmtree(parts.folder, ignore_errors=True)


def _is_done(folder: Path, key: str) -> bool:
    try:
        load_hops(folder, key)
    except (ValueError, StorageError):
        return False
    return True
