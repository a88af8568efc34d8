"""A propagation with everything that it needs: the adjacency, the columns and the specification, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gamlp.errors import SettingsError, ShapeError
from gamlp.graph.graph import Adjacency
from gamlp.propagate.spec import Propagation
from gamlp.storage.files import Array, digest
from gamlp.storage.sizes import format_size

if TYPE_CHECKING:
    from gamlp.propagate.budget import Budget
    from gamlp.propagate.sinks import Sink

FORMAT = 2


@dataclass(frozen=True, eq=False)
class Job:
    """What is to be computed; `Job.of` checks it."""

    adjacency: Adjacency
    columns: Any  # (N, F), see `sources`
    spec: Propagation

    @classmethod
    def of(cls, adjacency: Adjacency, columns: Any, spec: Propagation) -> Job:
        """Refuse what cannot be propagated."""
        shape = tuple(columns.shape)
        if len(shape) != 2 or shape[0] != adjacency.nodes or not shape[1]:
            raise ShapeError(
                f"Features have the shape {shape}, the graph has {adjacency.nodes:,} nodes.\n"
                "Every node needs one row, isolated nodes too, and at least one column."
            )
        return cls(adjacency, columns, spec.for_nodes(adjacency.nodes))

    @property
    def width(self) -> int:
        """F, the number of columns."""
        return int(self.columns.shape[1])

    @property
    def rows(self) -> int:
        """R, the number of wanted rows."""
        return self.spec.row_count(self.adjacency.nodes)

    @property
    def bytes(self) -> int:
        """The size of the result."""
        return self.rows * len(self.spec.kept_hops) * self.width * np.dtype(self.spec.storage).itemsize

    def key(self, device: str = "cpu") -> str:
        """Return the hash of everything that the result depends on; devices differ in the last bits."""
        words, *rest = self.spec.content
        content = getattr(self.columns, "content", [self.columns])
        return digest(self.adjacency.fingerprint, f"{FORMAT} {words} {device}", *rest, *content)

    def budget(self, memory: int | None, at_once: int = 1) -> Budget:
        """Return the blocks that fit in so much memory each, None = no limit."""
        from gamlp.propagate.budget import budget

        rows, in_order = None if self.spec.rows is None else self.rows, self.spec.sorted_rows[1] is None
        states = 2 if self.spec.restart is None else 3
        options: dict[str, Any] = {"rows": rows, "in_order": in_order, "at_once": at_once, "states": states}
        return budget(self.adjacency, self.width, storage=self.spec.storage, memory=memory, **options)

    def stationary(self, memory: int | None) -> Array | None:
        """Return X^(∞) of the wanted rows where it is asked for and can be found within `memory`."""
        if not self.spec.stationary:
            return None
        from gamlp.propagate.stationary import stationary_features

        needed = 12 * self.adjacency.entries + 40 * self.adjacency.nodes
        if memory is not None and needed > memory:
            raise SettingsError(
                f"X^(∞) needs {format_size(needed)} to find the connected components, "
                f"{format_size(memory)} were given.\n"
                "Give more memory, or use a combiner other than smoothing."
            )
        found = stationary_features(self.adjacency, self.columns, self.spec.normalization, rows=self.spec.rows)
        return found.astype(self.spec.storage)


def run_blocks(
    job: Job, sink: Sink, budget: Budget, numbers: Sequence[int], *, threads: int, advance: Callable[[], None]
) -> None:
    """Compute the blocks of these numbers here, one after the other, into the sink."""
    from gamlp.propagate.block import Block
    from gamlp.propagate.chunks import plan_chunks
    from gamlp.storage.threads import workers

    spec, self_loops = job.spec, job.spec.normalization.self_loops
    if sink.in_order:
        spec = replace(spec, rows=spec.sorted_rows[0])
    widest = max(budget.blocks[number].stop - budget.blocks[number].start for number in numbers)
    plan = plan_chunks(job.adjacency, self_loops=self_loops, chunk_bytes=budget.chunk_bytes)
    with workers(threads) as run:
        block = Block(plan, spec, widest, run, threads=threads, spare=budget.spare)
        try:
            for number in numbers:
                with sink.block(number, budget.blocks[number]) as rows:
                    block.compute(job.columns, budget.blocks[number], rows, advance)
        finally:
            block.close()
