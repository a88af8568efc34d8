"""The seam: an engine turns (adjacency, columns, Propagation) into Hops. Callers know this file alone.

    X^(0) = X,   X^(l) = Â X^(l−1),   l = 1 … K          cost O(K·E·F)

Columns do not know each other, so an engine says in which blocks of them it computes and brings each through all hops.
Without a memory limit blocks go straight into the result; within one, into files (`block_files`). Every engine passes
tests/propagate/test_engine_contract.py. A new one is a file in this package and a line in `registry.py`. With
GAMLP_VERIFY=1 whatever an engine gives is sampled and computed again (`propagate.verify`).
"""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from gamlp.errors import InputError, StorageError
from gamlp.graph.graph import Adjacency
from gamlp.propagate.budget import Budget
from gamlp.propagate.hops import CONTENTS, Hops, cached_hops, load_hops, write_arrays
from gamlp.propagate.sinks import ArraySink, Sink
from gamlp.propagate.spec import Job, Propagation
from gamlp.storage.directories import making
from gamlp.storage.huge_pages import empty
from gamlp.storage.memory import room_within
from gamlp.storage.scratch import remove_scratch, removed_with, scratch_folder

if TYPE_CHECKING:
    from gamlp.propagate.engines.registry import EngineChoice


@dataclass(frozen=True)
class Engine(ABC):
    """Where a propagation runs; `cache` is a folder in which the same propagation is found again, None = none.

    `columns` is whatever has a shape (N, F) and gives columns[first:last, block] as float32: an array, in memory or
    mapped, or one of `propagate.sources`, which make their values where they are read.
    """

    name: ClassVar[str]
    memory: int | None = None  # the bytes it may use; None = as many as it takes
    cache: Path | None = None
    whole: bool = False  # whether `memory` is that of the whole process: what it holds already is then not there

    @classmethod
    def from_choice(cls, choice: EngineChoice, device: str) -> Engine:
        """Return the engine that was chosen, whatever the device of training is; refuse what it cannot do."""
        return cls(memory=choice.memory, cache=choice.cache, whole=choice.memory is not None)

    @abstractmethod
    def budget(self, job: Job) -> Budget:
        """Return the blocks of columns in which it computes."""

    @abstractmethod
    def run(self, job: Job, sink: Sink, budget: Budget, numbers: Sequence[int]) -> None:
        """Compute the blocks of these numbers into the sink."""

    @property
    def key_device(self) -> str:
        """What its last bits depend on."""
        return "cpu"

    @property
    def room(self) -> int | None:
        """The bytes that it may use now; None = as many as it takes."""
        return room_within(self.memory) if self.memory is not None and self.whole else self.memory

    def propagate(self, adjacency: Adjacency, columns: Any, spec: Propagation) -> Hops:
        """Return the hops, from the cache where they have been computed before."""
        job = Job.of(adjacency, columns, spec)
        if self.cache is not None:
            key = job.key(self.key_device)
            return self._verified(job, cached_hops(self.cache / key, key, partial(self._write, job)))
        return self._verified(job, self._in_memory(job) if self.memory is None else self._in_scratch(job))

    def propagate_once(self, adjacency: Adjacency, columns: Any, spec: Propagation) -> Hops:
        """Return hops that are read once, in order: within a limit, blocks that are joined where they are read."""
        job = Job.of(adjacency, columns, spec)
        _, order = job.spec.sorted_rows
        if self.memory is None or order is not None:
            return self.transient().propagate(adjacency, columns, spec)
        return self._verified(job, self._in_scratch(job, joined=False))

    def propagate_to(
        self, folder: Path, adjacency: Adjacency, columns: Any, spec: Propagation, *, overwrite: bool = False
    ) -> Hops:
        """Write the hops into a folder of their own; others that are there are replaced only with `overwrite`."""
        job, folder = Job.of(adjacency, columns, spec), Path(folder)
        key = job.key(self.key_device)
        if (folder / CONTENTS).is_file():
            with suppress(InputError, StorageError) if overwrite else nullcontext():
                found = load_hops(folder, key)
                shutil.rmtree(folder.with_name(f"{folder.name}.partial"), ignore_errors=True)  # of a late kill
                return self._verified(job, found)
        elif folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise StorageError(f"{folder} exists and holds no hops.\nIt was left alone; choose another folder.")
        return self._verified(job, self._write(job, folder, key))

    def propagate_as(self, name: str, make: Callable[[], Job]) -> Hops:
        """Return the hops of the job that `make` would make, found in the cache by a name that stands for it."""
        if self.cache is None:
            job = make()
            return self.propagate(job.adjacency, job.columns, job.spec)
        return cached_hops(self.cache / name, name, lambda folder, key: self._write(make(), folder, key))

    def session(self) -> AbstractContextManager[Any]:
        """Keep what is costly to begin, such as a connection, for all propagations of the block."""
        return nullcontext()

    def transient(self) -> Self:
        """Return the same engine without a cache, for hops that are needed once."""
        return replace(self, cache=None)

    def _verified(self, job: Job, hops: Hops) -> Hops:
        """Return the hops; with GAMLP_VERIFY=1 only if sampled values are right."""
        if os.environ.get("GAMLP_VERIFY", "0") not in ("", "0"):
            from gamlp.propagate.verify import verify

            verify(job, hops, self.name)
        return hops

    def _in_memory(self, job: Job) -> Hops:
        """Compute straight into the result."""
        budget, stationary = self.budget(job), job.stationary(self.room)
        values = empty((job.rows, len(job.spec.kept_hops), job.width), job.spec.storage)
        self.run(job, ArraySink(values, job.spec.kept_hops), budget, range(len(budget.blocks)))
        return Hops(values, job.spec.rows, stationary)

    def _write(self, job: Job, folder: Path, key: str) -> Hops:
        """Compute into a folder, block by block if there is a memory limit; states that are kept need no computing."""
        from gamlp.propagate.states import derived

        if (found := derived(self, job, folder, key)) is not None:
            return found
        if self.memory is None:
            hops = self._in_memory(job)
            with making(folder) as new:
                write_arrays(new, key, values=hops.values, rows=hops.rows, stationary=hops.stationary)
            return load_hops(folder, key)
        from gamlp.propagate.block_files import write_hops

        with self.session():
            return write_hops(self, job, folder, key)

    def _in_scratch(self, job: Job, *, joined: bool = True) -> Hops:
        """Compute into a temporary folder, which is removed when nobody reads the hops any more."""
        from gamlp.propagate.block_files import write_blocks

        scratch = scratch_folder("gamlp-hops")
        try:
            if joined:
                hops = self._write(job, scratch / "hops", key="")
            else:
                with self.session():
                    hops = write_blocks(self, job, scratch / "blocks")
        except BaseException:
            remove_scratch(scratch)
            raise
        removed_with(hops.values, scratch)
        return hops
