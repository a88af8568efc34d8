"""Settings for a graph never seen before, from what can be counted without training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split


@dataclass(frozen=True)
class Outline:
    """What the default settings depend on."""

    nodes: int
    entries: int
    features: int
    classes: int
    training: int  # labelled nodes to learn from
    sparse: bool  # whether most feature values are 0, as in bags of words

    @classmethod
    def of(cls, graph: Graph, split: Split) -> Outline:
        """Count; of the features a thousand rows are looked at."""
        sample = graph.features[:: max(1, graph.nodes // 1000)]
        return cls(
            nodes=graph.nodes,
            entries=graph.adjacency.entries,
            features=graph.features.shape[1],
            classes=len(graph.classes),
            training=len(split.train),
            sparse=bool((np.asarray(sample) == 0).mean() > 0.5),
        )


def adapted(outline: Outline) -> dict[str, Any]:
    """Return the settings that depend on the graph."""
    return {}
