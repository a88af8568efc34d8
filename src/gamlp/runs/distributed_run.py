"""A run by several processes: the first keeps the run directory, the others train beside it and write nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from gamlp.errors import SettingsError
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.propagate.hops import Hops
from gamlp.runs.run import Order, open_record, train_run
from gamlp.settings import Settings
from gamlp.train.distributed import Ranks
from gamlp.train.one_seed import train_seed
from gamlp.train.prepare import Workshop


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
    in_turn = cast(Workshop, InTurn(workshop, together))
    if together.rank == 0:
        together.from_first(missing)
        return train_run(graph, order, folder=folder, workshop=in_turn)
    for seed in together.from_first(missing):
        train_seed(in_turn, task, seed=seed, folder=None)
    return None


class InTurn:
    """A workshop in which the first rank makes the hops before the others ask for them."""

    def __init__(self, workshop: Workshop, together: Ranks) -> None:
        self.workshop, self.together = workshop, together

    def __getattr__(self, name: str) -> Any:
        return getattr(self.workshop, name)

    def hops(self, settings: Settings, split: Split) -> Hops:
        """Return the hops that these settings ask for; all ranks ask in the same order."""
        if self.together.rank:
            self.together.wait()
            return self.workshop.hops(settings, split)
        found = self.workshop.hops(settings, split)
        self.together.wait()
        return found
