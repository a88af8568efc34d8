"""About how long a training will take, from the numbers of a network and the speed of a matrix product.

    a row of hops      2·P operations forward, 4·P backward, P parameters: each of them is used once a row
    an epoch           training rows forward and backward, validation rows forward every `evaluate_every` epochs; from
                       the second stage on reliable rows, and with a consistency loss those that should be consistent,
                       which the averaged network passes too
    all rows           forward once a stage

Epochs are the most there can be: early stopping ends sooner. Propagation and labels are not in it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.runs.spec import RunSpec

SHARE = 0.3  # of the speed of a large product that a training step reaches
SIZE = 384  # of the product that is timed


def training_seconds(graph: Graph, spec: RunSpec) -> float | None:
    """Return about how many seconds all seeds take at most; None where it is not a network on hops."""
    import torch

    from gamlp.methods import method_named
    from gamlp.model import build_network, count_parameters
    from gamlp.train.hop_source import relation_subsets

    method = method_named(spec.method)
    if not method.on_hops or spec.device != "cpu":
        return None
    settings: Any = method.settings_from(spec.settings)
    split, width = graph.split_for(spec.seeds[0]), settings.components or graph.features.shape[1]
    subsets = len(relation_subsets(graph, settings))
    with torch.device("meta"):  # counted, not built
        network = build_network(settings, features=width, classes=max(2, len(graph.classes)), subsets=subsets)
    epochs, rows = sum(settings.epochs), graph.nodes if graph.targets is None else len(graph.targets)
    valid = len(split.valid) / settings.evaluate_every
    candidates = rows if settings.reliable_from == "all" else len(split.valid) + len(split.test)
    drawn = min(settings.unlabelled_rows or candidates, candidates)
    taught = (epochs - settings.epochs[0]) * 6 * drawn + (epochs * 8 * drawn if settings.consistency else 0)
    passes = epochs * (6 * len(split.train) + 2 * valid) + taught + 2 * rows * len(settings.epochs)
    return float(len(spec.seeds) * passes * count_parameters(network) / (SHARE * operations_a_second()))


def operations_a_second() -> float:
    """Time a matrix product, the best of three."""
    import torch

    matrix = torch.ones(SIZE, SIZE)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        torch.mm(matrix, matrix)
        best = min(best, time.perf_counter() - start)
    return 2 * SIZE**3 / best
