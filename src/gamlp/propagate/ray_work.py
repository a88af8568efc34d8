"""A job as it travels to other machines: arrays in files by the names of these, others through Ray's store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import gamlp
from gamlp.errors import StorageError
from gamlp.graph.graph import Adjacency
from gamlp.propagate.disk import Job
from gamlp.propagate.disk_budget import Budget
from gamlp.storage.files import Array, is_whole_file


@dataclass(frozen=True)
class OnFile:
    """An array that lies in a file which every machine sees."""

    path: str
    bytes: int
    offset: int
    dtype: str
    shape: tuple[int, ...]
    by_columns: bool

    @classmethod
    def of(cls, array: Any) -> OnFile:
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


@dataclass(frozen=True)
class Packed:
    """A job as it travels: arrays by the names of their files, or in Ray's store."""

    version: str
    arrays: tuple[Any, ...]  # indptr, indices, weights, features, rows
    rest: Job
    token: Path  # a file beside the parts: a machine that sees it can put a block in place
    blocks: list[slice]
    room: Budget
    threads: int

    @classmethod
    def of(cls, ray: Any, job: Job, token: Path, blocks: list[slice], *, room: Budget, threads: int) -> Packed:
        """Name or store what the tasks read."""
        graph = job.adjacency
        arrays = (graph.indptr, graph.indices, graph.weights, job.features, job.rows)
        sent = [None if one is None else OnFile.of(one) if is_whole_file(one) else ray.put(one) for one in arrays]
        none = Adjacency(np.zeros(1, np.int64), np.zeros(0, np.int32))
        rest = replace(job, adjacency=none, features=None, rows=None)
        return cls(gamlp.__version__, tuple(sent), rest, token.resolve(), blocks, room, threads)

    def unpack(self, ray: Any) -> Job:
        """Return the job with its arrays, on the machine that computes."""
        opened: list[Any] = [
            one if one is None else one.open() if isinstance(one, OnFile) else ray.get(one) for one in self.arrays
        ]
        adjacency = Adjacency(opened[0], opened[1], opened[2])
        return replace(self.rest, adjacency=adjacency, features=opened[3], rows=opened[4])
