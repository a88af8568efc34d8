"""A block of columns as a task of Ray: what travels to the machine that computes it, and what it does there."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gamlp
from gamlp.errors import ClusterError
from gamlp.graph.graph import Adjacency
from gamlp.propagate.block_files import BlockFiles
from gamlp.propagate.budget import Budget
from gamlp.propagate.file_array import FileArray, by_name
from gamlp.propagate.job import Job, run_blocks
from gamlp.propagate.sinks import ArraySink
from gamlp.propagate.spec import Propagation
from gamlp.storage.files import Array


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
        arrays = (graph.indptr, graph.indices, graph.weights, job.columns, job.spec.rows)
        named = [by_name(array) for array in arrays]
        sent = tuple(one if one is None or isinstance(one, FileArray) else ray.put(one) for one in named)
        spec = replace(job.spec, rows=None)
        return cls(gamlp.__version__, sent, spec, token.resolve(), budget, threads)

    def unpack(self, ray: Any) -> Job:
        """Return the job with its arrays, on the machine that computes."""
        there: list[Any] = [
            one if one is None else one.open() if isinstance(one, FileArray) else ray.get(one) for one in self.arrays
        ]
        indptr, indices, weights, columns, rows = there
        return Job(Adjacency(indptr, indices, weights), columns, replace(self.spec, rows=rows))


def run_block(packed: PackedJob, number: int, watch: Any) -> Array | None:
    """Bring one block through all hops, on whatever machine this is; return it where it could not be put in place."""
    import ray

    if packed.version != gamlp.__version__:
        raise ClusterError(
            f"A machine of the cluster has gamlp {gamlp.__version__}, the one that asks has {packed.version}.\n"
            "Install the same version on all of them."
        )
    job, budget, hops = packed.unpack(ray), packed.budget, iter(range(1, packed.spec.hops + 1))

    def advance() -> None:
        watch.reached.remote(number, next(hops))

    run = partial(run_blocks, threads=packed.threads, advance=advance)
    if packed.token.exists():
        buffer = None if budget.chunk_bytes is None else budget.chunk_bytes // 8
        attempt = f"-{secrets.token_hex(4)}"
        files = BlockFiles(packed.token.parent, job, buffer_bytes=buffer, attempt=attempt)
        run(job, files, budget, [number])  # where another attempt was quicker, the same bits take the place of its own
        return None
    columns = budget.blocks[number]
    values = np.empty((job.rows, len(job.spec.kept_hops), columns.stop - columns.start), job.spec.storage)
    in_order = replace(job, spec=replace(job.spec, rows=job.spec.sorted_rows[0]))
    run(in_order, ArraySink(values, job.spec.kept_hops, first_column=columns.start), budget, [number])
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
