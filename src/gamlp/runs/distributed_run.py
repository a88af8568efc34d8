"""A run by several processes: the first keeps the run directory, the others train beside it and write nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gamlp.errors import SettingsError
from gamlp.graph.graph import Graph
from gamlp.runs.run import hop_source_of, open_run, pipeline_of, train_run
from gamlp.runs.spec import RunSpec
from gamlp.train.distributed import Ranks


def train_together(graph: Graph, spec: RunSpec, *, folder: Path, together: Ranks) -> dict[str, Any] | None:
    """Train all seeds with all ranks; the first rank returns the result, the others None; one rank is `train_run`.

    Where there is a cache that all ranks see, the first rank propagates and the others read; otherwise each propagates
    for itself.
    """
    if together.count == 1:
        return train_run(graph, spec, folder=folder)
    pipeline = pipeline_of(spec, hop_source_of(spec, folder))
    if not pipeline.method.on_hops:
        raise SettingsError(
            f"{spec.method} trains in one process.\nOnly methods on hops (gamlp-…, sgc, …) share out their batches."
        )
    missing: list[int] = []
    if together.rank == 0 and open_run(graph, spec, folder).result is None:
        missing = [seed for seed in spec.seeds if not (folder / f"seed-{seed}" / "result.json").exists()]
    missing = together.from_first(missing)
    if together.rank == 0:
        return train_run(graph, spec, folder=folder)
    for seed in missing:
        pipeline.fit(graph, graph.split_for(seed), seed)
    return None
