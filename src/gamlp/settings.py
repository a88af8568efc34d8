"""Everything that can be set about a run, in one frozen object, in the order of the road.

Symbols of the paper beside the names used here:

    K  hops          r  normalization      δ  attention_activation     L  head_layers
    T  temperature   ε  threshold          γ  gamma                    α  initial_residual
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from gamlp.errors import SettingsError, did_you_mean

Share = Annotated[float, Field(ge=0, le=1)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1)]


def _as_list(epochs: object) -> object:
    if isinstance(epochs, str):
        return [part.strip() for part in epochs.split(",")]
    return [epochs] if isinstance(epochs, int) else epochs


Epochs = Annotated[tuple[Count, ...], Field(min_length=1), BeforeValidator(_as_list)]  # 100, "100, 50" or [100, 50]

Subsets = Annotated[int, Field(ge=1)] | Annotated[tuple[tuple[str, ...], ...], Field(min_length=1)]
Combiner = Literal["last", "mean", "decay", "concat", "gate", "smoothing", "recursive", "jk"]
Activation = Literal["leaky_relu", "sigmoid", "relu", "tanh", "identity"]


class Settings(BaseModel):
    """One run's settings; a recipe is a file of these, a method a few of them fixed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    # 2 propagate
    feature_scaling: Literal["none", "row", "unit", "standard"] = "none"
    """What is done to the features first: rows to sum 1, rows to length 1, or columns to mean 0 and variance 1."""
    components: Annotated[int, Field(ge=0)] = 0
    """Rotate the features onto so many leading singular vectors; 0 keeps them as they are."""
    hops: Annotated[int, Field(ge=0)] = 5
    normalization: Share = 0.5
    """r in D^(r−1) A D^(−r)."""
    self_loops: bool = True
    storage: Literal["float32", "float16"] = "float32"
    rows: Literal["all", "labelled"] = "all"
    """Which nodes' hops are kept, and so can be predicted: all, or those of the split only."""

    # 2 propagate, heterogeneous graphs
    relations: Literal["merged", "subsets"] = "merged"
    """Forget which relation an edge belongs to, or propagate over several subsets of the relations (NARS)."""
    subsets: Subsets = 8
    """How many relation subsets are drawn, or the subsets themselves, as lists of relations."""
    subset_memory: Annotated[float, Field(gt=0)] = 8.0
    """GiB for the hops of the subsets; where they need more, they stay on disk, and some at a time are trained."""
    subset_turn: Count = 10
    """Epochs after which other subsets are trained, where not all of them fit."""
    featureless: Literal["neighbours", "embeddings", "zeros"] = "neighbours"
    """What types without features get: the mean of their neighbours' features, trained embeddings, or nothing."""
    embedding: dict[str, Any] = {}
    """Settings of the embeddings (gamlp.embed) that differ from the usual."""
    embedding_file: str = ""
    """Embeddings made elsewhere: a .npy with one row per node, or a folder that gamlp embed made; none are trained."""

    # 3 combine
    combiner: Combiner = "jk"
    hop_layers: Literal[0, 1, 2] = 2
    """Layers of each hop's own net in front of the combiner; 0 combines the features themselves."""
    hidden: Count = 512
    jk_layers: Count = 4
    head_layers: Count = 4
    residual: bool = True
    """Add a linear map of hop 0 to what the combiner gives."""
    batch_norm: bool = True
    initial_residual: Share = 0.5
    """α: the share of the head's first layer in the input of each middle layer."""
    decay: Share = 0.1
    """β of the decay combiner, β(1−β)^l."""
    attention_activation: Activation = "leaky_relu"
    input_dropout: Dropout = 0.0
    attention_dropout: Dropout = 0.0
    dropout: Dropout = 0.5

    # 4 labels
    labels: bool = True
    """Give the propagated training labels to the network as a second input."""
    label_hops: Count = 3
    label_normalization: Share = 0.0
    label_self_loops: bool = False
    label_layers: Count = 4
    label_folds: Count = 1
    """Deal the training labels into so many parts, so that no training node sees its own come back; 1 = off."""

    # 5 train
    epochs: Epochs = (200, 200, 200)
    """Epochs of each stage; a method without label stages runs the first only."""
    batch_size: Annotated[int, Field(ge=2)] = 10_000
    shuffle_runs: Count = 1
    """Neighbouring rows that stay together in a batch; 16 reads hops larger than memory faster from disk."""
    learning_rate: Annotated[float, Field(gt=0)] = 0.001
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    evaluate_every: Count = 1
    patience: Count = 50
    """Stop a stage after so many epochs without a better validation score."""

    # 4 + 5 labels of earlier stages
    pseudo_labels: Literal["distil", "train"] = "distil"
    """What a later stage does with reliable nodes: learn their probabilities (RLU), or train on their class (SLE)."""
    reliable_from: Literal["split", "all"] = "split"
    """Where reliable nodes are looked for: among valid and test nodes, or among all nodes that do not train."""
    keep_stage: Literal["last", "best"] = "last"
    """Which stage's network is the result: the last, as in the paper, or the best on validation."""
    threshold: Share = 0.85
    temperature: Annotated[float, Field(gt=0, le=1)] = 1.0
    gamma: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the distillation loss."""
    consistency: Annotated[float, Field(ge=0)] = 0.0
    """Weight of the consistency loss against an averaged teacher (SCR); 0 = off."""
    consistency_decay: Share = 0.99
    consistency_threshold: Share = 0.5
    correct_and_smooth: bool = False
    """Correct and smooth the final probabilities over the graph, its settings chosen on validation."""


def settings_from(values: dict[str, Any]) -> Settings:
    """Check `values`; an unknown key or an impossible value is one clear SettingsError."""
    for key in values:
        if key not in Settings.model_fields:
            raise SettingsError(f"There is no setting '{key}'.\n{did_you_mean(key, Settings.model_fields)}")
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        raise SettingsError(f"Setting {key} = {values[key]!r}: {first['msg']}.\n{describe(key)}") from None


def describe(key: str) -> str:
    """Say what a setting is by default, for messages."""
    return f"Its default is {Settings.model_fields[key].default!r}."
