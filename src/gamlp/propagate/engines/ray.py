"""On a Ray cluster: a task brings one block of columns through all hops.

Columns do not know each other, so tasks exchange nothing. What a task needs is named to it if it lies in files (every
machine must then see them under the same names), else put into Ray's store. Where a machine sees the folder of the
result, a finished block lands there, whole or not at all; where it does not, the block returns to the machine that
asked, which writes it. A task whose worker or machine is lost runs again elsewhere, and a run that was killed goes on
after its finished blocks (`block_files`). The bits are those of the local engine, if all machines have the same vector
extensions.

Time: ⌈blocks / at once⌉ times that of one block; memory on each machine: `ray_cluster`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gamlp.errors import ClusterError, GamlpError, MissingExtraError
from gamlp.progress import Advance, log, progress
from gamlp.propagate.block_files import BlockFiles
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.engines.ray_cluster import Slots, cluster, machines, slots
from gamlp.propagate.engines.ray_task import PackedJob, Watch, run_block
from gamlp.propagate.hops import Hops
from gamlp.propagate.job import Job
from gamlp.storage.huge_pages import LINE

if TYPE_CHECKING:
    from gamlp.propagate.budget import Budget
    from gamlp.propagate.engines.registry import EngineChoice
    from gamlp.propagate.sinks import Sink

MEMORY = 4 * 2**30  # of a block, where no limit is given
RETRIES = 20  # of one block, for lost workers and machines
SECONDS = 0.5  # between two looks at the progress


@dataclass(frozen=True)
class RayEngine(Engine):
    """One task a block of columns; `memory` is for each block, `address` None means this machine."""

    name: ClassVar[str] = "ray"
    memory: int | None = MEMORY
    address: str | None = None

    @classmethod
    def from_choice(cls, choice: EngineChoice, device: str) -> RayEngine:
        """Refuse it at once where ray is not installed."""
        from importlib.util import find_spec

        if find_spec("ray") is None:
            raise MissingExtraError("ray", "The engine for clusters")
        memory = MEMORY if choice.memory is None else choice.memory
        return cls(memory=memory, cache=choice.cache, address=choice.address)

    def budget(self, job: Job) -> Budget:
        """Return as many blocks as run at once, if the columns fill so many cache lines."""
        with cluster(self.address) as ray:
            return job.budget(self.memory, self._slots(ray, job).count)

    def run(self, job: Job, sink: Sink, budget: Budget, numbers: Sequence[int]) -> None:
        """Compute the blocks on the cluster."""
        assert isinstance(sink, BlockFiles)
        with cluster(self.address) as ray:
            run_on_ray(ray, self._slots(ray, job), job, sink, budget, numbers)

    def session(self) -> AbstractContextManager[Any]:
        """Stay connected."""
        return cluster(self.address)

    def _write(self, job: Job, folder: Path, key: str) -> Hops:
        """Connect once for all that is asked of the cluster."""
        with self.session():
            return super()._write(job, folder, key)

    def _slots(self, ray: Any, job: Job) -> Slots:
        assert self.memory is not None
        lines = -(-job.width * np.dtype(job.spec.storage).itemsize // LINE)
        return slots(machines(ray), memory=self.memory, lines=lines)


def run_on_ray(ray: Any, there: Slots, job: Job, files: BlockFiles, budget: Budget, numbers: Sequence[int]) -> None:
    """Compute the blocks of these numbers on the cluster."""
    log.info("ray: %d blocks at once, %d threads each", there.count, there.threads)
    token = files.folder / f"here-{secrets.token_hex(8)}"
    token.touch()
    packed = PackedJob.of(ray, job, token, budget, threads=there.threads)
    watch = ray.remote(Watch).options(num_cpus=0, max_restarts=-1).remote()
    task = ray.remote(run_block).options(
        num_cpus=there.threads, memory=there.memory, max_retries=RETRIES, scheduling_strategy="SPREAD"
    )
    running = {task.remote(packed, number, watch): number for number in numbers}
    hops = job.spec.hops
    try:
        with progress("propagate", total=len(budget.blocks) * hops) as advance:
            advance((len(budget.blocks) - len(numbers)) * hops)
            for done, number in _as_finished(ray, running, hops, watch.total.remote, advance):
                _take(ray, done, files, number, budget.blocks[number])
    finally:
        for left in running:
            ray.cancel(left, force=True)
        token.unlink(missing_ok=True)


def _as_finished(
    ray: Any, running: dict[Any, int], hops: int, ask: Callable[[], Any], advance: Advance
) -> Iterator[tuple[Any, int]]:
    """Yield tasks as they finish, and report the hops in between; what has been yielded no longer runs."""
    asked, all_, shown, seen = ask(), len(running), 0, 0
    while running:
        done, _ = ray.wait(list(running), timeout=SECONDS)
        for one in done:
            yield one, running.pop(one)
        if ray.wait([asked], timeout=0)[0]:
            try:
                seen = int(ray.get(asked))
            except ray.exceptions.RayError:  # the machine that watched is lost; the blocks go on
                log.info("ray: the progress of single hops is lost")
            asked = ask()
        reached = max(seen, shown, (all_ - len(running)) * hops)
        advance(reached - shown)
        shown = reached


def _take(ray: Any, done: Any, files: BlockFiles, number: int, columns: slice) -> None:
    """Make sure that a block is in its place, or put it there."""
    try:
        values = ray.get(done)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, GamlpError | OSError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"Block {number + 1} was lost {RETRIES + 1} times: {type(error).__name__}.\n"
            "Finished blocks are kept. Are the machines out of memory? Give less --memory, then run again."
        ) from error
    if values is None:
        return
    with files.block(number, columns) as sink:
        for place, hop in enumerate(files.hops):
            sink.put(hop, slice(0, len(values)), values[:, place])
