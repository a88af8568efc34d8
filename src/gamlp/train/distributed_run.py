"""A run by several processes: the first keeps the run directory, the others train beside it and write nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gamlp.errors import SettingsError
from gamlp.graph.graph import Graph
from gamlp.train.distributed import Ranks
from gamlp.train.one_seed import train_seed
from gamlp.train.prepare import Workshop
from gamlp.train.run import Order, open_record, train_run


def train_together(
    graph: Graph, order: Order, *, folder: Path, workshop: Workshop, together: Ranks
) -> dict[str, Any] | None:
    """Train all seeds with all ranks; the first rank returns the result, the others None; one rank is `train_run`.

    Where the workshop has a cache that all ranks see, the first rank propagates and the others read; otherwise each
    propagates for itself.
    """
    if together.count == 1:
        return train_run(graph, order, folder=folder, workshop=workshop)
    task = order.task(graph)
    if task.method.kind != "network" or task.settings is None:
        raise SettingsError(
            f"{order.method} trains in one process.\nOnly methods on hops (gamlp-…, sgc, …) share out their batches."
        )
    missing = []
    if together.rank == 0 and "result" not in open_record(graph, order, task, folder):
        missing = [seed for seed in order.seeds if not (folder / f"seed-{seed}" / "result.json").exists()]
    missing = together.from_first(missing)
    if missing and together.rank == 0 and workshop.cache is not None:
        workshop.hops(task.settings, graph.split_for(missing[0]))
    together.wait()
    if together.rank == 0:
        return train_run(graph, order, folder=folder, workshop=workshop)
    for seed in missing:
        train_seed(workshop, task, seed=seed, folder=None)
    return None
