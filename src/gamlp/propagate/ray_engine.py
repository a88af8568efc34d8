"""The engine for clusters: a Ray task carries one block of columns through all hops.

    propagate_on_cluster(folder, adjacency, features, hops=6, address="head:6379", memory=16 * 2**30)

Columns do not know each other, so tasks exchange nothing. What a task needs is named to it if it lies in files (every
machine must then see them under the same names), else put into Ray's store. Where a machine sees the folder of the
result, a finished block lands there, whole or not at all; where it does not, the block returns to the machine that
asked, which writes it. A task whose worker or machine is lost runs again elsewhere, and a run that was killed goes on
after its finished blocks (`disk_parts`). The bits are those of the engine in memory, if all machines have the same
vector extensions.

Time: ⌈blocks / at once⌉ times that of one block (`disk_block`); memory on each machine: `ray_cluster`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

import gamlp
from gamlp.errors import ClusterError, GamlpError
from gamlp.graph.graph import Adjacency
from gamlp.progress import Advance, log, progress
from gamlp.propagate.disk import MEMORY, Job, carry_blocks, propagate_to
from gamlp.propagate.disk_budget import Budget
from gamlp.propagate.disk_parts import Parts
from gamlp.propagate.hops import Hops
from gamlp.propagate.ray_cluster import Slots, cluster, machines, slots
from gamlp.propagate.ray_work import Packed
from gamlp.storage.files import Array
from gamlp.storage.huge_pages import LINE

RETRIES = 20  # of one block, for lost workers and machines
SECONDS = 0.5  # between two looks at the progress


def propagate_on_cluster(
    folder: Path,
    adjacency: Adjacency,
    features: Any,
    *,
    address: str | None = None,
    memory: int = MEMORY,
    storage: str = "float32",
    **options: Any,
) -> Hops:
    """Write what `disk.propagate_to` writes, computed by a cluster; `memory` is for each block."""
    with cluster(address) as ray:
        lines = -(-features.shape[1] * np.dtype(storage).itemsize // LINE)
        there = slots(machines(ray), memory=memory, lines=lines)
        log.info("ray: %d blocks at once, %d threads each", there.count, there.threads)
        carry = partial(carry_there, ray, there)
        options |= {"memory": memory, "storage": storage, "carry": carry, "at_once": there.count}
        return propagate_to(folder, adjacency, features, **options)


def carry_there(
    ray: Any, there: Slots, job: Job, parts: Parts, blocks: list[slice], missing: list[int], *, room: Budget
) -> None:
    """Compute the missing blocks on the cluster."""
    token = parts.folder / f"here-{secrets.token_hex(8)}"
    token.touch()
    packed = Packed.of(ray, job, token, blocks, room=room, threads=there.threads)
    watch = ray.remote(Watch).options(name="gamlp", get_if_exists=True, num_cpus=0, max_restarts=-1).remote()
    task = ray.remote(carry_block).options(
        num_cpus=there.threads, memory=there.memory, max_retries=RETRIES, scheduling_strategy="SPREAD"
    )
    running = {task.remote(packed, number, watch): number for number in missing}
    before = (len(blocks) - len(missing)) * job.hops
    try:
        with progress("propagate", total=len(blocks) * job.hops) as advance:
            advance(before)
            for done, number in _as_finished(ray, running, job.hops, partial(watch.total.remote, token.name), advance):
                _take(ray, done, parts, number, blocks[number])
    finally:
        for left in running:
            ray.cancel(left, force=True)
        watch.forget.remote(token.name)
        token.unlink(missing_ok=True)


def carry_block(packed: Packed, number: int, watch: Any) -> dict[int, Array] | None:
    """Carry one block through all hops, on whatever machine this is; return it where it could not be put in place."""
    import ray

    if packed.version != gamlp.__version__:
        raise ClusterError(
            f"A machine of the cluster has gamlp {gamlp.__version__}, the one that asks has {packed.version}.\n"
            "Install the same version on all of them."
        )
    job = packed.unpack(ray)
    hops = iter(range(1, job.hops + 1))
    carry = partial(
        carry_blocks,
        blocks=packed.blocks,
        numbers=[number],
        room=packed.room,
        threads=packed.threads,
        advance=lambda: watch.reached.remote(packed.token.name, number, next(hops)),
    )
    if not packed.token.exists():
        kept = Returned(job.count, job.storage)
        carry(job, cast("Parts", kept))  # takes the rows of a block, as parts do
        return kept.values
    attempt = f"-{secrets.token_hex(4)}"
    parts = Parts(packed.token.parent, rows=job.count, hops=job.kept, storage=job.storage, attempt=attempt)
    carry(job, parts)  # where another attempt was quicker, the same bits take the place of its own
    return None


class Returned:
    """Takes the rows of one block and keeps them in memory."""

    def __init__(self, rows: int, storage: str) -> None:
        self.rows, self.storage = rows, storage
        self.values: dict[int, Array] = {}  # hop → (R, w)

    @contextmanager
    def writing(self, block: int, width: int) -> Iterator[Any]:
        """Begin a block."""

        def sink(hop: int, first: int, part: Array) -> None:
            if hop not in self.values:
                self.values[hop] = np.empty((self.rows, width), self.storage)
            self.values[hop][first : first + len(part)] = part

        yield sink


class Watch:
    """Knows how far the blocks of each run have come; a block that is tried again does not count twice."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[int, int]] = {}  # run → block → hops

    def reached(self, run: str, block: int, hop: int) -> None:
        """Note a finished hop."""
        blocks = self.runs.setdefault(run, {})
        blocks[block] = max(hop, blocks.get(block, 0))

    def total(self, run: str) -> int:
        """Return the finished hops of all blocks."""
        return sum(self.runs.get(run, {}).values())

    def forget(self, run: str) -> None:
        """Let a finished run go."""
        self.runs.pop(run, None)


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


def _take(ray: Any, done: Any, parts: Parts, number: int, columns: slice) -> None:
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
    with parts.writing(number, columns.stop - columns.start) as sink:
        for hop, part in values.items():
            sink(hop, 0, part)
