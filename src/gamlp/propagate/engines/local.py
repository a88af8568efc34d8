"""On this machine's processors, in memory or within a limit of it: one set of kernels, one loop (`propagate.block`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gamlp.progress import progress
from gamlp.propagate.budget import Budget, budget
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.sinks import Sink
from gamlp.propagate.spec import Job
from gamlp.storage.threads import available


@dataclass(frozen=True)
class LocalEngine(Engine):
    """numba kernels on all cores; the bits depend neither on the number of threads nor on the memory limit."""

    name: ClassVar[str] = "local"
    threads: int | None = None

    def budget(self, job: Job) -> Budget:
        """Return the widest blocks that the memory allows."""
        return budget(job, self.room)

    def run(self, job: Job, sink: Sink, budget: Budget, numbers: Sequence[int]) -> None:
        """Compute one block after the other."""
        from gamlp.propagate.block import run_blocks

        hops = job.spec.hops
        with progress("propagate", total=len(budget.blocks) * hops) as advance:
            advance((len(budget.blocks) - len(numbers)) * hops)
            run_blocks(job, sink, budget, numbers, threads=self.threads or available(), advance=advance)
