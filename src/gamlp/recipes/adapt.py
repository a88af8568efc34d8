"""Settings for a graph never seen before, from what can be counted without training.

Two things decide. With few labels a class, a small network on the hops themselves, held by weight decay and dropout,
learns most, and the nodes without labels teach the rest: reliable labels and consistency. With many, each hop gets its
own net with batch norm, trained in mini-batches. Wide bags of words are rotated onto 256 directions either way.
Where the features say nothing and the edges everything, correct and smooth, chosen on validation with "nothing" among
the choices, still finds the classes; it holds N·C numbers a few times over, so very large graphs go without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.propagate.structure import WIDTH
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array

FEW = 100  # labels a class
TRIED = 200_000  # nodes up to which several methods are tried
SMOOTHED = 2**28  # numbers of the N×C probabilities up to which they are corrected and smoothed


@dataclass(frozen=True)
class Outline:
    """What the default settings depend on."""

    nodes: int
    entries: int
    features: int
    classes: int
    training: int  # labelled nodes to learn from
    sparse: bool  # whether most feature values are 0, as in bags of words
    relations: int = 0  # kinds of edges of a heterogeneous graph
    bare: bool = False  # whether it came without features
    scaled: bool = False  # whether columns of several kinds were brought to one scale when they were read

    @classmethod
    def of(cls, graph: Graph, split: Split) -> Outline:
        """Count; of the features about a thousand rows are looked at."""
        width = graph.features.shape[1] or WIDTH  # without features, those of the structure
        sample = _sample(graph.features, graph.nodes if graph.targets is None else len(graph.targets))
        sparse = bool((sample == 0).mean() > 0.5) if sample.size else False
        counts = graph.nodes, graph.adjacency.entries, width, len(graph.classes), len(split.train)
        scaled = graph.encoded is not None and not graph.encoded.plain
        return cls(*counts, sparse, len(graph.relations), not graph.features.shape[1], scaled)

    @property
    def dense(self) -> bool:
        """Whether nodes have many neighbours: the near ones then say what the far ones do not."""
        return self.entries >= 10 * self.nodes

    @property
    def few_labels(self) -> bool:
        """Whether labels are scarce."""
        return self.training < FEW * self.classes


def _sample(features: Array, rows: int) -> Array:
    """Return up to a hundred rows from each of ten places: few reads, even of a file by columns."""
    source, every = ArrayReader(features), slice(0, features.shape[1])
    places = sorted({rows * tenth // 10 for tenth in range(10)})
    found = [source.block(first, min(first + 100, rows), every) for first in places]
    source.close()
    return np.concatenate(found)


def adapted_method(outline: Outline) -> str:
    """Return the method of the default recipe: on graphs that several networks can be tried on, all that suit.

    Without features the edges say everything, and the last word may be theirs. With features a mixture is left as it
    is, so that new nodes can be predicted alone.
    """
    if outline.nodes > TRIED:
        return adapted_network(outline)
    return "portfolio+cs" if outline.bare and not outline.relations else "portfolio"


def adapted_network(outline: Outline) -> str:
    """Return the one network that suits a graph best, where only one can be trained."""
    if outline.relations:
        return "nars-gamlp-recursive+rlu"
    smoothed = outline.nodes * outline.classes <= SMOOTHED
    return "gamlp-recursive+rlu" + ("+scr" if outline.few_labels else "") + ("+cs" if smoothed else "")


def adapted(outline: Outline) -> dict[str, Any]:
    """Return the settings that depend on the graph."""
    chosen = {
        "feature_scaling": "none" if outline.scaled else "unit" if outline.sparse else "standard",
        "components": 256 if outline.features > 512 else 0,
        "reliable_from": "all", "label_folds": 10, "evaluate_every": 2,
        **(for_few_labels(outline) if outline.few_labels else for_many_labels(outline)),
    }  # fmt: skip
    if outline.relations:  # as NARS does: the mean over all neighbours of a subset; most types are two steps apart
        chosen |= {"normalization": 0.0, "self_loops": False, "hops": 4, "reliable_from": "split"}
    return chosen


def for_few_labels(outline: Outline) -> dict[str, Any]:
    """Return a small network, trained on all labels at once; few neighbours need more hops.

    Of the nodes without labels an epoch draws 500, so a step costs the same on any graph; on Cora, 250, 500, 1000 and
    all of them validated alike. Labels are no input: without, validation was better on CiteSeer and PubMed, equal
    on Photo, Computers and Physics (three seeds each). Where nodes came without features, labels stay. The last stage
    is kept, as in the paper, where neighbours are few; where they are many, a stage may undo what the one before knew
    (Computers, four points), and the best is kept; likewise where it was not measured, without features and with
    relations.
    """
    return {
        "hops": 5 if outline.dense else 8, "normalization": 0.0 if outline.dense else 0.5,
        "hop_layers": 0, "hidden": 128, "head_layers": 2, "jk_layers": 1, "residual": False, "batch_norm": False,
        "labels": bool(outline.relations) or outline.bare, "label_hops": 5 if outline.dense else 10, "label_layers": 1,
        "input_dropout": 0.5, "learning_rate": 0.01, "weight_decay": 0.001, "epochs": [200, 160, 160], "patience": 80,
        "keep_stage": "best" if outline.dense or outline.relations or outline.bare else "last", "unlabelled_rows": 500,
        "threshold": 0.7, "temperature": 0.5, "consistency_decay": 0.9, "consistency_threshold": 0.3,
    }  # fmt: skip


def for_many_labels(outline: Outline) -> dict[str, Any]:
    """Return a network with a net a hop, wider with more labels, and batches of an eighth of them."""
    few, many = outline.training < 20_000, outline.training >= 100_000
    return {
        "hops": 5, "normalization": 0.0, "self_loops": False,
        "hop_layers": 2, "hidden": 128 if few else 512 if many else 256, "head_layers": 2 if few else 4, "jk_layers": 2,
        "label_hops": 3, "label_layers": 2,
        "learning_rate": 0.001 if many else 0.003, "batch_size": min(max(outline.training // 8, 200), 10_000),
        "epochs": [60, 30, 30], "patience": 30, "keep_stage": "best", "unlabelled_rows": max(50_000, outline.training),
        **(({"structure": "apart"} if outline.dense else {"label_hops": 10}) if outline.bare else {}),
    }  # fmt: skip
