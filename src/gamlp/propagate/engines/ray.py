"""On a Ray cluster: a task brings one block of columns through all hops.

Columns do not know each other, so tasks exchange nothing. What a task needs is named to it if it lies in files (every
machine must then see them under the same names), else put into Ray's store. Where a machine sees the folder of the
result, a finished block lands there, whole or not at all; where it does not, the block returns to the machine that
asked, which writes it. A task whose worker or machine is lost runs again elsewhere. The bits are those of the local
engine, if all machines have the same vector extensions. Time: ⌈blocks / at once⌉ times that of one block; memory on
each machine: `ray_cluster`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import gamlp
from gamlp.errors import ClusterError, GamlpError, MissingExtraError
from gamlp.graph.graph import Adjacency
from gamlp.progress import Advance, log, progress
from gamlp.propagate.block import run_blocks
from gamlp.propagate.block_files import BlockFiles
from gamlp.propagate.budget import Budget, budget
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.engines.ray_cluster import Slots, cluster, machines, slots
from gamlp.propagate.sinks import ArraySink, Sink
from gamlp.propagate.sources import FileArray, by_name
from gamlp.propagate.spec import Job, Propagation
from gamlp.storage.files import Array
from gamlp.storage.huge_pages import LINE

if TYPE_CHECKING:
    from gamlp.propagate.engines.registry import EngineChoice

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
        if find_spec("ray") is None:
            raise MissingExtraError("ray", "The engine for clusters")
        memory = MEMORY if choice.memory is None else choice.memory
        return cls(memory=memory, cache=choice.cache, address=choice.address)

    def budget(self, job: Job) -> Budget:
        """Return as many blocks as run at once, if the columns fill so many cache lines."""
        with self.session() as ray:
            return budget(job, self.memory, self._slots(ray, job).count)

    def run(self, job: Job, sink: Sink, budget: Budget, numbers: Sequence[int]) -> None:
        """Compute the blocks on the cluster."""
        assert isinstance(sink, BlockFiles)
        hops = job.spec.hops
        with self.session() as ray, progress("propagate", total=len(budget.blocks) * hops) as advance:
            advance((len(budget.blocks) - len(numbers)) * hops)
            there = self._slots(ray, job)
            log.info("ray: %d blocks at once, %d threads each", there.count, there.threads)
            token = sink.folder / f"here-{secrets.token_hex(8)}"
            token.touch()
            packed = PackedJob.of(ray, job, token, budget, threads=there.threads)
            watch = ray.remote(Watch).options(num_cpus=0, max_restarts=-1).remote()
            options = {"num_cpus": there.threads, "memory": there.memory, "max_retries": RETRIES}
            task = ray.remote(run_block).options(**options, scheduling_strategy="SPREAD")
            running = {task.remote(packed, number, watch): number for number in numbers}
            try:
                for done, number in _as_finished(ray, running, hops, watch.total.remote, advance):
                    _take(ray, done, sink, number, budget.blocks[number])
            finally:
                for left in running:
                    ray.cancel(left, force=True)
                token.unlink(missing_ok=True)

    def session(self) -> AbstractContextManager[Any]:
        """Stay connected, for all that is asked of the cluster."""
        return cluster(self.address)

    def _slots(self, ray: Any, job: Job) -> Slots:
        assert self.memory is not None
        lines = -(-job.width * np.dtype(job.spec.storage).itemsize // LINE)
        return slots(machines(ray), memory=self.memory, lines=lines)


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


@dataclass(frozen=True)
class PackedJob:
    """A job as it travels: arrays by the names of their files, or in Ray's store."""

    version: str
    arrays: tuple[Any, ...]  # indptr, indices, weights, columns, rows
    spec: Propagation
    token: Path  # a file beside the blocks: a machine that sees it can put a block in place
    budget: Budget
    threads: int

    @classmethod
    def of(cls, ray: Any, job: Job, token: Path, budget: Budget, *, threads: int) -> PackedJob:
        """Name or store what the tasks read."""
        graph = job.adjacency
        named = map(by_name, (graph.indptr, graph.indices, graph.weights, job.columns, job.spec.rows))
        sent = tuple(one if one is None or isinstance(one, FileArray) else ray.put(one) for one in named)
        return cls(gamlp.__version__, sent, replace(job.spec, rows=None), token.resolve(), budget, threads)


def run_block(packed: PackedJob, number: int, watch: Any) -> Array | None:
    """Bring one block through all hops, on whatever machine this is; return it where it could not be put in place."""
    import ray

    if packed.version != gamlp.__version__:
        raise ClusterError(
            f"A machine of the cluster has gamlp {gamlp.__version__}, the one that asks has {packed.version}.\n"
            "Install the same version on all of them."
        )
    arrays: list[Any] = [
        one if one is None else one.open() if isinstance(one, FileArray) else ray.get(one) for one in packed.arrays
    ]
    job = Job(Adjacency(*arrays[:3]), arrays[3], replace(packed.spec, rows=arrays[4]))
    budget, hops = packed.budget, iter(range(1, packed.spec.hops + 1))

    def advance() -> None:
        watch.reached.remote(number, next(hops))

    run = partial(run_blocks, threads=packed.threads, advance=advance)
    if packed.token.exists():
        files = BlockFiles(packed.token.parent, job, budget, attempt=f"-{secrets.token_hex(4)}")
        run(job, files, budget, [number])  # where another attempt was quicker, the same bits take the place of its own
        return None
    block = budget.blocks[number]
    values = np.empty((job.rows, len(job.spec.kept_hops), block.stop - block.start), job.spec.storage)
    in_order = replace(job, spec=replace(job.spec, rows=job.spec.sorted_rows[0]))
    run(in_order, ArraySink(values, job.spec.kept_hops, first_column=block.start), budget, [number])
    return values


class Watch:
    """Knows how far the blocks have come; one that is tried again does not count twice."""

    def __init__(self) -> None:
        self.blocks: dict[int, int] = {}  # block → hops

    def reached(self, block: int, hop: int) -> None:
        """Note a finished hop."""
        self.blocks[block] = max(hop, self.blocks.get(block, 0))

    def total(self) -> int:
        """Return the finished hops of all blocks."""
        return sum(self.blocks.values())
