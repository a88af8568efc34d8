"""The seam: an engine turns (adjacency, columns, Propagation) into Hops. Callers know this file alone.

    X^(0) = X,   X^(l) = Â X^(l−1),   l = 1 … K          cost O(K·E·F)

Columns do not know each other, so an engine says in which blocks of them it computes and brings each through all hops.
Without a memory limit blocks go straight into the result, an array; within one, into files that are joined at the end,
and a run that was killed goes on after its finished blocks. Every engine passes
tests/propagate/test_engine_contract.py. A new one is a file in this package and a line in `registry.py`.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from gamlp.errors import InputError, StorageError
from gamlp.graph.graph import Adjacency
from gamlp.propagate.cache import HopsCache
from gamlp.propagate.hops import Hops
from gamlp.propagate.hops_folder import is_hops_folder, load_hops, refuse_other_content, store_hops
from gamlp.propagate.job import Job
from gamlp.propagate.spec import Propagation

if TYPE_CHECKING:
    from gamlp.propagate.budget import Budget
    from gamlp.propagate.engines.registry import EngineChoice
    from gamlp.propagate.sinks import Sink


@dataclass(frozen=True)
class Engine(ABC):
    """Where a propagation runs; `cache` is a folder in which the same propagation is found again, None = none.

    `columns` is whatever has a shape (N, F) and gives columns[first:last, block] as float32: an array, in memory or
    mapped, or one of `propagate.sources`, which make their values where they are read.
    """

    name: ClassVar[str]
    memory: int | None = None  # the bytes it may use; None = as many as it takes
    cache: Path | None = None

    @classmethod
    @abstractmethod
    def from_choice(cls, choice: EngineChoice, device: str) -> Engine:
        """Return the engine that was chosen; refuse what it cannot do."""

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

    def propagate(self, adjacency: Adjacency, columns: Any, spec: Propagation) -> Hops:
        """Return the hops, from the cache where they have been computed before."""
        job = Job.of(adjacency, columns, spec)
        if self.cache is not None:
            return HopsCache(self.cache).get_or_write(job.key(self.key_device), partial(self._write, job))
        return self._in_memory(job) if self.memory is None else self._in_scratch(job)

    def propagate_to(
        self, folder: Path, adjacency: Adjacency, columns: Any, spec: Propagation, *, overwrite: bool = False
    ) -> Hops:
        """Write the hops into a folder of their own; others that are there are replaced only with `overwrite`."""
        job, folder = Job.of(adjacency, columns, spec), Path(folder)
        key = job.key(self.key_device)
        if is_hops_folder(folder):
            with suppress(InputError, StorageError) if overwrite else nullcontext():
                found = load_hops(folder, key)
                shutil.rmtree(folder.with_name(f"{folder.name}.partial"), ignore_errors=True)  # of a late kill
                return found
        refuse_other_content(folder)
        return self._write(job, folder, key)

    def session(self) -> AbstractContextManager[Any]:
        """Keep what is costly to begin, such as a connection, for all propagations of the block."""
        return nullcontext()

    def transient(self) -> Self:
        """Return the same engine without a cache, for hops that are needed once."""
        return replace(self, cache=None)

    def _in_memory(self, job: Job) -> Hops:
        """Compute straight into the result."""
        from gamlp.propagate.sinks import ArraySink
        from gamlp.storage.huge_pages import empty

        budget, stationary = self.budget(job), job.stationary(self.memory)
        values = empty((job.rows, len(job.spec.kept_hops), job.width), job.spec.storage)
        self.run(job, ArraySink(values, job.spec.kept_hops), budget, range(len(budget.blocks)))
        return Hops(values, job.spec.rows, stationary)

    def _write(self, job: Job, folder: Path, key: str) -> Hops:
        """Compute into a folder, block by block if there is a memory limit."""
        if self.memory is None:
            store_hops(folder, key, self._in_memory(job))
            return load_hops(folder, key)
        from gamlp.propagate.hops_writer import write_hops

        return write_hops(job, folder, key, self.budget(job), job.stationary(self.memory), partial(self.run, job))

    def _in_scratch(self, job: Job) -> Hops:
        """Compute into a temporary folder, which is removed when nobody reads the hops any more."""
        scratch = Path(tempfile.mkdtemp(prefix="gamlp-hops-"))
        try:
            hops = self._write(job, scratch / "hops", key="")
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        weakref.finalize(hops.values, shutil.rmtree, scratch, ignore_errors=True)
        return hops
