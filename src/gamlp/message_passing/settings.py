"""Everything that can be set about a message-passing method; the defaults of each stand in `gamlp/methods/registry.py`.

A method takes the common settings and those that its own defaults name: `heads` given to a GCN is refused, not ignored.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gamlp.settings import TARGET, Count, Dropout, MetricName, Share, Width
from gamlp.targets.metrics import DEFAULT

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
    evaluate_every: Count = 1
    """Epochs after which the validation score is worked out, on the whole graph."""
    learning_rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.01
    weight_decay: Amount = 5e-4
    weight_decay_on: Literal["first", "all"] = "first"
    """Whether the decay holds for the layer that reads the features, or for all weights."""
    epochs: Count = 500
    metric: MetricName = DEFAULT
    """What chooses the epoch on validation, as for networks on hops."""
    class_weight: Literal["none", "balanced"] = "none"
    """What a class counts in the loss, as for networks on hops."""
    patience: Count = 100
    """Stop after so many epochs without a better validation score."""

    correct_and_smooth: bool = False
    """Correct and smooth the final probabilities over the graph, its settings chosen on validation."""
    calibration_share: Dropout = 0.0
    """Share of the validation nodes that choose nothing: the sets of predict --coverage are then promised by these."""
    featureless: Literal["neighbours", "embeddings", "zeros"] = "neighbours"
    """What types without features get, on a heterogeneous graph."""
    embedding: dict[str, Any] = {}
    embedding_file: str = ""

    # some methods
    input_dropout: Dropout | None = None
    """Dropout of the features; None = as much as `dropout`."""
    layers: Count = 2
    heads: Count = 8
    output_heads: Count = 1
    """GAT: heads of the last layer, whose logits are averaged."""
    edge_dropout: Dropout = 0.0
    """Dropout of attention coefficients, or of the entries of Â."""
    teleport: Share = 0.1
    iterations: Count = 10
    jumping: Literal["cat", "max"] = "cat"
    label_rate: Annotated[float, Field(gt=0, lt=1)] = 0.6
    """UniMP: share of the training labels that is input in one step; the others are its targets."""
    label_reuse: Annotated[int, Field(ge=0)] = 0
    """UniMP: how often the predictions of nodes without a label become input in turn (+reuse: once)."""
    ponder_cost: Amount = 0.005
    """AP-GCN: the price of a step, in the loss."""
    batch_size: Count = 1024
    fanout: Count = 10
    """GraphSAGE, UniMP, VR-GCN: neighbours drawn for each node and layer."""
    layer_nodes: Count = 400
    """FastGCN, AS-GCN: nodes drawn for each layer."""
    variance: Amount = 0.5
    """AS-GCN: weight of the sampler's variance in the loss."""
    full_batch_up_to: Annotated[int, Field(ge=0)] = 50_000
    """GraphSAGE, UniMP and typed subgraphs: graphs with at most so many nodes are not sampled."""
    parts: Count = 20
    """Cluster-GCN: clusters of the graph; DeeperGCN: random parts, 1 = the whole graph."""
    parts_a_batch: Count = 5
    walk_roots: Count = 200
    walk_length: Count = 2
    batches: Count = 5
    """GraphSAINT: subgraphs in one epoch."""
    coverage: Count = 50
    """GraphSAINT: subgraphs drawn beforehand, from which the normalisation is estimated."""
    rounds: Count = 6
    """Typed subgraphs: how often new nodes are drawn around a batch."""
    nodes_a_type: Count = 520
    """Typed subgraphs: new nodes of each type in one round."""

    @property
    def on_features(self) -> float:
        """The dropout of the features."""
        return self.dropout if self.input_dropout is None else self.input_dropout


FEATURELESS = frozenset({"featureless", "embedding", "embedding_file"})
COMMON = FEATURELESS | {
    "feature_scaling", "hidden", "dropout", "learning_rate", "weight_decay", "weight_decay_on", "epochs", "patience",
    "evaluate_every", "correct_and_smooth", "calibration_share", *TARGET,
}  # fmt: skip
