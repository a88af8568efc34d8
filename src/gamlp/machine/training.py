"""About how long a training will take, and how much memory, from the numbers of a network and a matrix product's speed.

    a row of hops      2·P operations forward, 4·P backward, P parameters: each of them is used once a row
    an epoch           training rows forward and backward, validation rows forward every `evaluate_every` epochs; from
                       the second stage on reliable rows, and with a consistency loss those that should be consistent,
                       which the averaged network passes too
    all rows           forward once a stage

Epochs are the most there can be: early stopping ends sooner. Propagation and labels are not in it.

Memory, in float32: 5·P for weights, gradients, Adam's two and the best weights; of a row of a batch, (K+1)·(6·F + 12·H)
where each hop has a net, else (K+1)·6·F + 14·H, as measured with the published networks, within a quarter; of every
predicted row, C four times over; the hops of relation subsets, or `subset_memory` of them; 24 bytes a node; and Python
with its libraries. A step cannot be cut, so this is the
least that `--memory` can be kept with; propagation takes what is left.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.runs.spec import RunSpec

SHARE = 0.25  # of the speed of a large product that a training step reaches, whatever the network
# of networks with a net for each hop and batches of thousands: a step, and a pass of rows without learning
LARGE_STEP, LARGE_PASS = 0.47, 0.45
SIZE = 384  # of the product that is timed
STEP = 0.003  # seconds that an epoch takes beside its products


def training_seconds(graph: Graph, spec: RunSpec) -> float | None:
    """Return about how many seconds all seeds take at most; None where it is not known."""
    from gamlp.methods import method_named

    method = method_named(spec.method)
    found = method.expected_seconds(graph, graph.split_for(spec.seeds[0]), method.settings_from(spec.settings))
    return None if found is None or spec.device != "cpu" else len(spec.seeds) * found


def network_seconds(graph: Graph, split: Split, settings: Any) -> float:
    """Return about how many seconds a network on hops trains at most."""
    from gamlp.train.hop_source import wanted_rows

    wanted = wanted_rows(graph, split, settings)
    parameters, rows = parameters_of(graph, settings), graph.nodes if wanted is None else len(wanted)
    epochs = sum(settings.epochs)
    valid = len(split.valid) / settings.evaluate_every
    candidates = rows if settings.reliable_from == "all" else len(split.valid) + len(split.test)
    drawn = min(settings.unlabelled_rows or candidates, candidates)
    taught = (epochs - settings.epochs[0]) * 6 * drawn + (epochs * 8 * drawn if settings.consistency else 0)
    passes = epochs * (6 * len(split.train) + 2 * valid) + taught + 2 * rows * len(settings.epochs)
    return float(passes * parameters / (SHARE * operations_a_second()) + STEP * epochs)


def training_bytes(graph: Graph, spec: RunSpec) -> int | None:
    """Return about how much memory the process needs at least; None where it is not known."""
    from gamlp.methods import method_named

    method = method_named(spec.method)
    found = method.expected_bytes(graph, graph.split_for(spec.seeds[0]), method.settings_from(spec.settings))
    return None if spec.device != "cpu" else found


def network_bytes(graph: Graph, split: Split, settings: Any) -> int:
    """Return about how much memory a network on hops needs at least."""
    from gamlp.storage.memory import FLOOR
    from gamlp.train.hop_source import relation_subsets, wanted_rows, width_read

    width = width_read(graph, settings)
    wanted = wanted_rows(graph, split, settings)
    rows, classes = graph.nodes if wanted is None else len(wanted), len(graph.classes)
    hops, hidden = settings.hops + 1, settings.hidden
    row = hops * (6 * width + 12 * hidden) if settings.hop_layers else hops * 6 * width + 14 * hidden
    batch = min(settings.batch_size, rows) * (row + 4 * classes) * (2 if settings.consistency else 1)
    smoothed = 6 if settings.correct_and_smooth else 4
    floats: int = 5 * parameters_of(graph, settings) + batch + smoothed * rows * classes
    value = 2 if settings.storage == "float16" else 4
    subsets = value * len(relation_subsets(graph, settings)) * rows * hops * width
    return int(FLOOR * 2 // 3 + 24 * graph.nodes + 4 * floats + min(subsets, settings.subset_memory * 2**30))


def parameters_of(graph: Graph, settings: Any) -> int:
    """Return how many parameters the network has; it is counted, not built."""
    import torch

    from gamlp.model import build_network, count_parameters
    from gamlp.train.hop_source import relation_subsets, width_read

    width, subsets = width_read(graph, settings), len(relation_subsets(graph, settings))
    with torch.device("meta"):
        network = build_network(settings, features=width, classes=max(2, len(graph.classes)), subsets=subsets)
    return count_parameters(network)


def operations_a_second() -> float:
    """Time a matrix product, the best of three."""
    import torch

    from gamlp.model.cpu.products import multiply

    matrix = torch.ones(SIZE, SIZE)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        multiply(matrix, matrix)
        best = min(best, time.perf_counter() - start)
    return 2 * SIZE**3 / best
