"""How many steps of propagated random vectors should stand for features that are not there? Asked on validation.

    python benchmarks/structure_steps.py --root DATA [--graphs cora,citeseer,pubmed,photo] [--seeds 6]

The steps Z_1 … Z_48 of `gamlp.propagate.structure` are made once a graph, of its edges alone, and put together in
several ways; gamlp-recursive is trained on each by the default recipe, on the usual split of the graph. The mean
validation accuracy chooses; test accuracies stand beside it and choose nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.graph.graph import Graph
from gamlp.graph.readers.datasets import load_dataset
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.scaling import Scaling
from gamlp.propagate.spec import Propagation
from gamlp.propagate.structure import RandomSigns, matrix
from gamlp.runs.run import train_run
from gamlp.runs.spec import RunSpec

RECORD = Path(__file__).parent / "recorded" / "structure_steps.json"
MOST = 48


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path("data"))
    parser.add_argument("--graphs", default="cora,citeseer,pubmed,photo")
    parser.add_argument("--seeds", type=int, default=6)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.graphs.split(","):
        graph = load_dataset(name, arguments.root)
        for what, features in variants(*steps_of(graph)):
            given = replace(graph, features=np.ascontiguousarray(features, np.float32), feature_names=None)
            spec = RunSpec.of(given, "gamlp-recursive", "default", {"patience": 60}, range(arguments.seeds))
            result = train_run(given, spec, folder=None)
            rows.append(
                {"graph": name, "features": what, **{key: result[f"{key}_accuracy"] for key in ("valid", "test")}}
            )
            print(json.dumps(rows[-1]), flush=True)
    RECORD.write_text(json.dumps(rows, indent=1) + "\n")


def steps_of(graph: Graph) -> tuple[Any, Any]:
    """Return Z_1 … Z_48, (48, N, d), and log(1 + degree)."""
    engine, degree = LocalEngine(), np.diff(graph.adjacency.indptr).astype(np.float32)
    spec, unit = Propagation(1, Normalization(0.0, self_loops=False), keep="last"), Scaling("unit")
    state: Any = RandomSigns(np.arange(graph.nodes), degree)
    steps = []
    for _ in range(MOST):
        state = unit.seen(matrix(engine.propagate(graph.adjacency, state, spec)))
        steps.append(np.array(state[0 : graph.nodes]))
    return np.array(steps), np.log1p(degree)[:, None]


def variants(steps: Any, degree: Any) -> Iterator[tuple[str, Any]]:
    """Yield features by what they are."""
    for count in (16, 24, 32, 48):
        yield f"sum of {count}", np.hstack([steps[:count].sum(axis=0), degree])
    yield "1 … 8 beside 9 … 32", np.hstack([steps[:8].sum(axis=0) / 2, steps[8:32].sum(axis=0) / 4, degree])
    fading = 1 / np.sqrt(np.arange(1, MOST + 1))
    yield "48, by 1/√k", np.hstack([np.tensordot(fading, steps, 1), degree])
    ending = np.concatenate([np.ones(24), np.linspace(1, 0, 25)[1:]])
    yield "48, fading from 24", np.hstack([np.tensordot(ending, steps, 1), degree])


if __name__ == "__main__":
    main()
