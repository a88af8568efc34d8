"""Everything that can be set about a run, in one frozen object, in the order of the road.

Symbols of the paper beside the names used here:

    K  hops          r  normalization      δ  attention_activation     L  head_layers
    T  temperature   ε  threshold          γ  gamma                    α  initial_residual
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from gamlp.errors import SettingsError, did_you_mean
from gamlp.model.registry import COMBINERS
from gamlp.targets.metrics import DEFAULT, known_metric

Checked = TypeVar("Checked", bound=BaseModel)
Share = Annotated[float, Field(ge=0, le=1)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
Threshold = Annotated[float, Field(ge=0, lt=1)]  # no probability exceeds 1
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Width = Annotated[int, Field(ge=1, le=2**20)]  # of a layer: beyond it no weight matrix fits a machine


def as_list(values: object) -> object:
    """Take 100, "100, 50" and [100, 50] alike."""
    if isinstance(values, str):
        return [part.strip() for part in values.split(",")]
    return [values] if isinstance(values, int | float) else values


Epochs = Annotated[tuple[Count, ...], Field(min_length=1), BeforeValidator(as_list)]
Subsets = Annotated[int, Field(ge=1)] | Annotated[tuple[tuple[str, ...], ...], Field(min_length=1)]


TARGET = frozenset({"metric", "class_weight"})  # settings of what is learned, whatever the method


def known_combiner(name: str) -> str:
    """Refuse a combiner that is not registered."""
    if name not in COMBINERS:
        raise ValueError(f"there is no such combiner. {did_you_mean(name, COMBINERS)}")
    return name


Combiner = Annotated[str, AfterValidator(known_combiner)]
MetricName = Annotated[str, AfterValidator(known_metric)]
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

    structure: Literal["sum", "apart"] = "sum"
    """Features of a graph without any: all steps of its propagated random vectors in one sum, or near and far ones
    apart."""

    # 3 combine
    combiner: Combiner = "jk"
    hop_layers: Literal[0, 1, 2] = 2
    """Layers of each hop's own net in front of the combiner; 0 combines the features themselves."""
    hidden: Width = 512
    jk_layers: Count = 4
    jk_reference: Literal["hops", "steps", "features", "noise", "none"] = "hops"
    """What JK attention compares a hop with: a net of hops 0 … K, as published, or of 1 … K, as the paper writes; for
    its ablation hop 0 itself, noise, or nothing."""
    head_layers: Count = 4
    residual: bool = True
    """Add a linear map of hop 0 to what the combiner gives."""
    batch_norm: bool = True
    initial_residual: Share = 0.5
    """α: the share of the head's first layer in the input of each middle layer."""
    head_residual: Literal["first", "features"] = "first"
    """What the head keeps in sight: its own first layer, as published, or the features in every layer, as the paper
    writes."""
    decay: Share = 0.1
    """β of the decay combiner, β(1−β)^l."""
    attention_activation: Activation = "leaky_relu"
    input_dropout: Dropout = 0.0
    attention_dropout: Dropout = 0.0
    combined_dropout: Dropout = 0.0
    """On the combined row, in front of the head."""
    dropout: Dropout = 0.5

    # 4 labels
    labels: bool = True
    """Give the propagated training labels to the network as a second input."""
    label_hops: Count = 3
    label_normalization: Share = 0.0
    label_self_loops: bool = False
    label_layers: Count = 4
    label_weights: Literal["last", "residual", "uniform"] = "last"
    """Which label hops are the input: the last, all with the last as a residual (KDD 2022), or the mean of all."""
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
    metric: MetricName = DEFAULT
    """What chooses epochs, stages, correct-and-smooth, the best seed and tuned settings on validation: accuracy,
    balanced_accuracy, macro_f1, roc_auc, average_precision or log_loss; by default accuracy."""
    class_weight: Literal["none", "balanced"] = "none"
    """What a class counts in the loss: as much as it has nodes, or all alike, n / (C·n_c)."""
    patience: Count = 50
    """Stop a stage after so many epochs without a better validation score."""

    # 4 + 5 labels of earlier stages
    reliable_propagation: bool = True
    """Whether reliable predictions join the label input of later stages."""
    pseudo_labels: Literal["distil", "train"] = "distil"
    """What a later stage does with reliable nodes: learn their probabilities (RLU), or train on their class (SLE)."""
    reliable_from: Literal["split", "all"] = "split"
    """Where reliable nodes are looked for: among valid and test nodes, or among all nodes that do not train."""
    unlabelled_rows: Annotated[int, Field(ge=0)] = 0
    """Nodes without a label that an epoch draws, of the reliable ones and of those to be consistent each; 0 = all."""
    keep_stage: Literal["last", "best"] = "last"
    """Which stage's network is the result: the last, as in the paper, or the best on validation; a stage that is worse
    than one before it is then the last."""
    threshold: Threshold = 0.85
    temperature: Annotated[float, Field(gt=0, le=1)] = 1.0
    gamma: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the distillation loss."""
    consistency: Annotated[float, Field(ge=0)] = 0.0
    """Weight of the consistency loss against an averaged teacher (SCR); 0 = off."""
    consistency_decay: Share = 0.99
    consistency_threshold: Threshold = 0.5
    correct_and_smooth: bool = False
    """Correct and smooth the final probabilities over the graph, its settings chosen on validation."""

    # 5 trust
    calibration_share: Dropout = 0.0
    """Share of the validation nodes that choose nothing: the sets of predict --coverage are then promised by these."""


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Check the settings of a network on hops."""
    return checked(Settings, values)


def checked(
    kind: type[Checked], values: Mapping[str, Any], *, of: str = "", own: Collection[str] | None = None
) -> Checked:
    """Return the settings `values` make; an unknown key or an impossible value is one clear SettingsError.

    `of` names the method they belong to, `own` those of the settings that it has (None = all).
    """
    names = kind.model_fields.keys() if own is None else own
    for key in values:
        if key not in names:
            whose = f"{of} has no setting" if of else "There is no setting"
            raise SettingsError(f"{whose} '{key}'.\n{did_you_mean(key, names)}")
    try:
        return kind(**values)
    except RecursionError:
        raise SettingsError("A setting is nested too deeply.\nGive numbers, words, or plain lists.") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        found, default = repr(values[key]), kind.model_fields[key].default
        found = found if len(found) <= 80 else f"{found[:77]}…"
        whose = f" of {of}" if of else ""
        said = first["msg"] if first["msg"].endswith("?") else f"{first['msg']}."
        raise SettingsError(f"Setting {key} = {found}{whose}: {said}\nIts default is {default!r}.") from None
