"""What makes a message-passing method on one graph: its network, the graph as it sees it, and what an epoch reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from gamlp.graph.graph import Graph
from gamlp.message_passing.features import scaled
from gamlp.message_passing.matrices import check_weights, looped, matrix_of
from gamlp.message_passing.sampled import Sampler, Source
from gamlp.message_passing.settings import Options
from gamlp.message_passing.views import Sizes
from gamlp.propagate.scaling import Scaling
from gamlp.storage.files import Array


@dataclass(frozen=True, eq=False)
class Parts:
    """A fresh network, the whole graph, and a sampler of training nodes, made where something trains."""

    network: nn.Module
    whole: Any  # a View, or a TypedView
    sampler: Callable[[], Sampler]
    takes_labels: bool = False


def parts_of(name: str, graph: Graph, train: Array, options: Options, scaling: Scaling, device: str) -> Parts:
    """Build a method's network and view of a graph; the random state is torch's own."""
    from gamlp.message_passing.methods import METHODS  # needs PyG
    from gamlp.message_passing.relational import NETWORKS, relational_parts

    train = np.sort(train)
    if name in NETWORKS:
        return relational_parts(name, graph.need_relations(), train, options, scaling, device)
    method = METHODS[name]
    if method.normalize is looped:
        check_weights(name, graph)
    features = scaled(np.asarray(graph.features), scaling)
    source = Source(features, matrix_of(graph.adjacency), method.normalize, train, options, device)
    network = method.network(Sizes(graph.features.shape[1], len(graph.classes)), options).to(device)
    return Parts(network, source.view, lambda: method.sampler(source), method.takes_labels)
