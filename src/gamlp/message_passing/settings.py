"""Everything that can be set about a message-passing method, and the defaults of each, as data.

A method takes the common settings and those that its own defaults name: `heads` given to a GCN is refused, not ignored.
The defaults are the ones their authors published, where these exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gamlp.errors import SettingsError, did_you_mean
from gamlp.settings import Count, Dropout, Share, Width, checked

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Options(BaseModel):
    """One method's settings, checked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # every method
    feature_scaling: Literal["none", "row", "unit", "standard"] = "row"
    """What is done to the features first: rows to sum 1, rows to length 1, or columns to mean 0 and variance 1."""
    hidden: Width = 64
    """Width of a hidden layer; with attention, of each head."""
    dropout: Dropout = 0.5
    learning_rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.01
    weight_decay: Amount = 5e-4
    weight_decay_on: Literal["first", "all"] = "first"
    """Whether the decay holds for the layer that reads the features, or for all weights."""
    epochs: Count = 500
    patience: Count = 100
    """Stop after so many epochs without a better validation score."""

    correct_and_smooth: bool = False
    """Correct and smooth the final probabilities over the graph, its settings chosen on validation."""
    featureless: Literal["neighbours", "embeddings", "zeros"] = "neighbours"
    """What types without features get, on a heterogeneous graph."""
    embedding: dict[str, Any] = {}
    embedding_file: str = ""

    # some methods
    layers: Count = 2
    heads: Count = 8
    edge_dropout: Dropout = 0.0
    """Dropout of attention coefficients, or of the entries of Â."""
    teleport: Share = 0.1
    iterations: Count = 10
    jumping: Literal["cat", "max"] = "cat"
    label_rate: Annotated[float, Field(gt=0, lt=1)] = 0.6
    """UniMP: share of the training labels that is input in one step; the others are its targets."""
    batch_size: Count = 1024
    fanout: Count = 10
    """GraphSAGE: neighbours drawn for each node and layer."""
    full_batch_up_to: Annotated[int, Field(ge=0)] = 50_000
    """GraphSAGE, HGT: graphs with at most so many nodes are not sampled."""
    parts: Count = 20
    """Cluster-GCN: clusters of the graph."""
    parts_a_batch: Count = 5
    walk_roots: Count = 200
    walk_length: Count = 2
    batches: Count = 5
    """GraphSAINT: subgraphs in one epoch."""
    coverage: Count = 50
    """GraphSAINT: subgraphs drawn beforehand, from which the normalisation is estimated."""
    rounds: Count = 6
    """HGT: how often new nodes are drawn around a batch."""
    nodes_a_type: Count = 520
    """HGT: new nodes of each type in one round."""


FEATURELESS = frozenset({"featureless", "embedding", "embedding_file"})
COMMON = FEATURELESS | {
    "feature_scaling", "hidden", "dropout", "learning_rate", "weight_decay", "weight_decay_on", "epochs", "patience",
    "correct_and_smooth",
}  # fmt: skip

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "gcn": {"layers": 2},
    "gat": {
        "layers": 2,
        "heads": 8,
        "hidden": 8,
        "dropout": 0.6,
        "edge_dropout": 0.6,
        "learning_rate": 0.005,
        "weight_decay_on": "all",
    },
    "graphsage": {"layers": 2, "batch_size": 1024, "fanout": 10, "full_batch_up_to": 50_000},
    "appnp": {"layers": 2, "iterations": 10, "teleport": 0.1, "edge_dropout": 0.5, "weight_decay": 5e-3},
    "jknet": {"layers": 3, "jumping": "cat"},
    "resgcn": {"layers": 3},
    "deepergcn": {"layers": 7, "dropout": 0.5, "weight_decay_on": "all"},
    "unimp": {"layers": 2, "heads": 2, "hidden": 32, "edge_dropout": 0.1, "label_rate": 0.6, "weight_decay_on": "all"},
    "dagnn": {"layers": 2, "iterations": 10, "dropout": 0.8, "weight_decay": 5e-3, "weight_decay_on": "all"},
    "cluster-gcn": {"layers": 2, "parts": 20, "parts_a_batch": 5},
    "graphsaint": {"layers": 2, "walk_roots": 200, "walk_length": 2, "batches": 5, "coverage": 50},
    "rgcn": {"layers": 2, "weight_decay_on": "all"},
    "hgt": {
        "layers": 2,
        "heads": 4,
        "dropout": 0.2,
        "weight_decay_on": "all",
        "batch_size": 128,
        "rounds": 6,
        "nodes_a_type": 520,
        "full_batch_up_to": 50_000,
    },
}


def names() -> tuple[str, ...]:
    """Return the names of the methods."""
    return tuple(DEFAULTS)


def options_for(name: str, options: Mapping[str, Any]) -> Options:
    """Check `options` for method `name` and fill in its defaults."""
    if name not in DEFAULTS:
        raise SettingsError(f"There is no message-passing method '{name}'.\n{did_you_mean(name, DEFAULTS)}")
    return checked(Options, {**DEFAULTS[name], **options}, of=name, own=COMMON | set(DEFAULTS[name]))
