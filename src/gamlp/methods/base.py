"""What a method is: a class with `fit`, whose result can `predict` for any graph and be written to files.

    Method        a name with its settings: `gamlp-jk+rlu` is the base gamlp-jk and the addition +rlu
    FittedMethod  what fit gives: the prediction for its own graph, predict(graph, known), and its state as data

Scaling, hops and correct-and-smooth are not a method's business: the pipeline brings the first two (a `HopSource`) and
applies the third. A new method is one file here, or in a package of its own, and a line in `registry.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gamlp.errors import SettingsError
from gamlp.targets.objective import Objective

if TYPE_CHECKING:
    from pydantic import BaseModel
    from torch import Tensor

    from gamlp.graph.build.changes import Moved
    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.propagate.scaling import Scaling
    from gamlp.storage.files import Array
    from gamlp.train.hop_source import HopSource
    from gamlp.train.living import Living
    from gamlp.train.prediction import Prediction

    Ids = Array | None
    Tensors = dict[str, Tensor]

ADDITIONS: dict[str, dict[str, Any]] = {
    "+rlu": {"pseudo_labels": "distil"},
    "+sle": {"pseudo_labels": "train", "labels": True},
    "+scr": {"consistency": 1.0},
    "+reuse": {"label_reuse": 1},
    "+cs": {"correct_and_smooth": True},
    "+labels": {"labels": True},
    "-labels": {"labels": False},
}
FOR_TYPES = ("relations", "subsets", "subset_memory", "subset_turn", "featureless", "embedding", "embedding_file")
STAGED = frozenset({"+rlu", "+sle"})


@dataclass(frozen=True)
class Base:
    """A method before anything is added to it: where it comes from, and the settings that make it what it is."""

    reference: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    network: str = ""  # of message passing: module:class
    defaults: Mapping[str, Any] = field(default_factory=dict)  # … and the settings it has beside the common ones


@dataclass(frozen=True, eq=False)
class Context:
    """What the pipeline brings to a method."""

    source: HopSource  # scaling and hops
    classes: int
    seed: int = 0
    device: str = "cpu"
    folder: Path | None = None  # for unfinished work
    objective: Objective = field(default_factory=Objective)
    start: FittedMethod | None = None  # whose weights, and scaling, a fit begins with
    ends: float = math.inf  # of time.monotonic(): when training is to stop, with what it has
    rival: float = -math.inf  # what another method scored on validation: training far below it may be given up


@dataclass(frozen=True)
class Method(ABC):
    """A method by name; all that its name does not fix comes from the recipe."""

    base: str
    added: tuple[str, ...]
    declared: Base

    additions: ClassVar[Collection[str]] = ("+cs",)  # what can be added to it
    on_hops: ClassVar[bool] = False  # whether it is a network on hops: propagated beforehand, tuned, on several ranks
    some_rows: ClassVar[bool] = False  # whether it can predict some rows alone
    takes_start: ClassVar[bool] = False  # whether it can begin with what another run has learned
    uses_engine: ClassVar[bool] = True  # whether an engine has anything to do for it
    extra: ClassVar[str | None] = None  # the optional dependency that it needs
    needs_relations: ClassVar[bool] = False  # whether it needs a heterogeneous graph
    several_labels: ClassVar[bool] = True  # whether a node may have several labels

    @property
    def name(self) -> str:
        """The whole name, additions in a fixed order: a+scr+rlu and a+rlu+scr are one method."""
        return self.base + "".join(self.added)

    @property
    def staged(self) -> bool:
        """Whether stages after the first are run."""
        return bool(STAGED & set(self.added))

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings that its name fixes."""
        return dict(self.declared.fixed) | {key: value for one in self.added for key, value in ADDITIONS[one].items()}

    def takes(self, key: str) -> bool:
        """Say whether a setting can be chosen for this method: it has it, and its name does not fix it."""
        return key in self.setting_names() and key not in self.fixed

    def without_edges(self) -> Method:
        """Return the method for rows that no edge joins."""
        return self

    def check_overrides(self, overrides: Mapping[str, Any]) -> None:
        """Refuse a setting that contradicts the method's name."""
        for key, value in overrides.items():
            if key in self.fixed and self.fixed[key] != value:
                raise SettingsError(
                    f"{self.name} has {key} = {self.fixed[key]!r}, {key} = {value!r} was given.\n"
                    "The name of a method says what it is: leave the setting out, or name another method."
                )

    @abstractmethod
    def setting_names(self) -> Collection[str]:
        """Return the settings that it has."""

    def shared(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what it takes of the settings that a recipe has for all methods: nothing."""
        return {}

    def adapted(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what it takes of the settings that were fitted to a graph never seen before."""
        return self.shared(values)

    @abstractmethod
    def settings_from(self, values: Mapping[str, Any]) -> BaseModel:
        """Check the settings; one that it does not have is refused."""

    def idle(self, graph: Graph, settings: Any) -> dict[str, str]:
        """Return the settings that change nothing here, each with the reason."""
        return {} if graph.types else dict.fromkeys(FOR_TYPES, f"{graph.name} has one type of nodes")

    def idle_among(self, overrides: Mapping[str, Any], graph: Graph, settings: Any) -> list[str]:
        """Return a sentence for each of the settings that were given and change nothing."""
        idle = self.idle(graph, settings)
        return [f"{key} was set and has no effect: {idle[key]}." for key in overrides if key in idle]

    def settings_data(self, settings: Any) -> dict[str, Any]:
        """Return the settings that it has as JSON holds them; `settings_from` reads them back."""
        names = self.setting_names()
        return {key: value for key, value in settings.model_dump(mode="json").items() if key in names}

    def check(self, graph: Graph, settings: Any) -> None:
        """Refuse a graph that the method does not suit, and settings that do not fit it, before anything is trained."""
        if self.needs_relations:
            graph.need_relations()
        if not self.several_labels and graph.labels.ndim > 1:
            raise SettingsError(
                f"{graph.name} has {len(graph.classes)} labels a node, and {self.name} reads one class a node.\n"
                "Name another method, as gamlp-jk, gcn or label-propagation."
            )
        if settings.correct_and_smooth and (graph.targets is not None or getattr(settings, "rows", "all") != "all"):
            raise SettingsError(
                f"Correct and smooth needs predictions for all nodes, and {self.name} gives none for some of "
                f"{graph.name}.\nLeave out +cs" + (", or use --set rows=all." if graph.targets is None else ".")
            )

    def expected_seconds(self, graph: Graph, split: Split, settings: Any) -> float | None:
        """Return about how long a fit takes at most on this machine, None = not known."""
        return None

    def expected_bytes(self, graph: Graph, split: Split, settings: Any) -> int | None:
        """Return about how much memory a fit needs at least, None = not known."""
        return None

    @abstractmethod
    def fit(self, graph: Graph, split: Split, settings: Any, context: Context) -> FittedMethod:
        """Learn from a graph whose labels are those of train and valid only."""

    @abstractmethod
    def load(self, settings: Any, state: Mapping[str, Any], tensors: Tensors, context: Context) -> FittedMethod:
        """Return what `FittedMethod.state` and `.tensors` described; its prediction and history stay behind."""


class FittedMethod(ABC):
    """A method that has learned."""

    prediction: Prediction | None = None  # of the graph it was fitted on; None where it was loaded
    parameters: int = 0
    history: list[dict[str, float]]
    stages: list[dict[str, float]]
    relations: dict[str, Any]
    tried: list[dict[str, Any]]  # what was fitted and compared, where several things were

    def __init__(self) -> None:
        self.history, self.stages, self.relations, self.tried = [], [], {}, []

    @abstractmethod
    def predict(self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None) -> Prediction:
        """Return what it says of `rows`, ascending (None = all that can have a label), of any graph.

        `known` (N,) are the labels that are known, −1 = unknown; `candidates` the nodes that may become reliable, where
        the method has stages (None = all rows without a label).
        """

    def predict_parts(
        self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None, embeddings: bool = False
    ) -> Iterator[Prediction]:
        """Yield the same in parts, rows ascending: in one unless a memory limit asks for more."""
        said = self.predict(graph, known, candidates=candidates, rows=rows)
        yield replace(said, embeddings=self.embed(graph, rows=rows)[1]) if embeddings else said

    def living(self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None) -> Living:
        """Keep the states of a graph, from which nodes that it does not have yet are predicted."""
        raise SettingsError(
            "This method reads whole graphs, not rows: it cannot predict new nodes from what is kept of their "
            "neighbours.\nPredict them with all others (gamlp predict --new … --exact), or use a method on hops."
        )

    def carry(self, graph: Graph, changed: Graph, moved: Moved, *, directed: bool) -> None:  # noqa: B027 — or nothing
        """Make what is kept of a graph that of a changed one; a method that keeps nothing has nothing to do."""

    def embed(self, graph: Graph, *, rows: Ids = None) -> tuple[Array, Array]:
        """Return `rows`, ascending (None = all that can have a label), and an embedding of each, (R, width)."""
        raise SettingsError(
            "This method gives no embeddings of nodes.\nMethods on hops do: gamlp-…, sign, sagn and the others."
        )

    def state(self) -> dict[str, Any]:
        """Return what it learned and is no tensor, as JSON holds it."""
        return {}

    def tensors(self) -> Tensors:
        """Return the tensors it learned."""
        return {}


def rows_of(graph: Graph, rows: Array | None = None) -> Array:
    """Return the rows that are asked for; where none are, all nodes that can have a label."""
    import numpy as np

    wanted = graph.targets if rows is None else rows
    return np.arange(graph.nodes) if wanted is None else wanted


def labels_of(labels: Array, ids: Array) -> Array:
    """Return the labels of some nodes, −1 for all others (N,)."""
    import numpy as np

    some = np.full_like(labels, -1)
    some[ids] = labels[ids]
    return some


def scaling_tensors(scaling: Scaling) -> Tensors:
    """Return what a scaling measured, as `scaling_from` reads it back."""
    import torch

    return {f"scaling.{name}": torch.from_numpy(value) for name, value in scaling.arrays().items()}


def scaling_from(settings: Any, tensors: Tensors) -> Scaling:
    """Return the scaling of these settings, with what was measured."""
    from gamlp.propagate.scaling import Scaling
    from gamlp.train.checkpoint import without_prefix

    measured = {name: value.numpy() for name, value in without_prefix("scaling", tensors).items()}
    return Scaling(settings.feature_scaling, **measured)
