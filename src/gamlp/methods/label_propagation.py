"""Label propagation: the training labels spread over the edges, without features (Zhu & Ghahramani 2002)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from gamlp.methods.base import Context, FittedMethod, Method, labels_of, rows_of
from gamlp.settings import Count, Dropout, MetricName, Share, as_list, checked
from gamlp.targets.metrics import DEFAULT
from gamlp.targets.registry import kind_of
from gamlp.train.prediction import Prediction

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.methods.base import Ids
    from gamlp.propagate.normalize import Normalization
    from gamlp.storage.files import Array
    from gamlp.train.living_mixture import LivingLabels


class LabelPropagationSettings(BaseModel):
    """What can be set about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    alphas: Annotated[tuple[Share, ...], Field(min_length=1), BeforeValidator(as_list)] = (0.5, 0.8, 0.9, 0.99)
    """The shares α of the neighbours that are tried; the best on validation is kept."""
    steps: Count = 50
    normalization: Share = 0.5
    self_loops: bool = False
    correct_and_smooth: bool = False
    metric: MetricName = DEFAULT
    """What chooses α."""
    calibration_share: Dropout = 0.0
    """Share of the validation nodes that choose nothing: the sets of predict --coverage are then promised by these."""


class LabelPropagation(Method):
    """Y ← clip(α Â Y + (1 − α) Y⁰), with α chosen on validation."""

    def setting_names(self) -> Collection[str]:
        """Return the settings that it has."""
        return LabelPropagationSettings.model_fields.keys()

    def shared(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Take of a recipe's common settings what chooses."""
        return {key: value for key, value in values.items() if key == "metric"}

    def settings_from(self, values: Mapping[str, Any]) -> LabelPropagationSettings:
        """Check the settings."""
        return checked(LabelPropagationSettings, values, of=self.base)

    def fit(self, graph: Graph, split: Split, settings: Any, context: Context) -> FittedLabelPropagation:
        """Try every α; only the validation rows are needed for that."""
        known, truth = labels_of(graph.labels, split.train), graph.labels[split.valid]

        def score(alpha: float) -> float:
            tried = FittedLabelPropagation(settings, alpha, context)
            return context.objective.score(tried.spread(graph, known, split.valid), truth)[0] if len(truth) else 0.0

        best = settings.alphas[0] if len(settings.alphas) == 1 else max(settings.alphas, key=score)
        fitted = FittedLabelPropagation(settings, best, context)
        fitted.prediction = fitted.predict(graph, known)
        return fitted

    def load(self, settings: Any, state: Mapping[str, Any], tensors: Any, context: Context) -> FittedLabelPropagation:
        """Take up the α that was chosen."""
        return FittedLabelPropagation(settings, float(state["alpha"]), context, state["shares"])


class FittedLabelPropagation(FittedMethod):
    """An α, and the class shares of training for nodes that no label reaches."""

    def __init__(self, settings: Any, alpha: float, context: Context, shares: list[float] | None = None) -> None:
        super().__init__()
        self.settings, self.alpha, self.classes, self.engine = settings, alpha, context.classes, context.source.engine
        self.shares = shares

    @property
    def normalization(self) -> Normalization:
        """What Â is."""
        from gamlp.propagate.normalize import Normalization

        return Normalization(self.settings.normalization, self.settings.self_loops)

    def predict(self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None) -> Prediction:
        """Spread the labels that are known over the graph; it has no stages, so no candidates."""
        from gamlp.labels.correction import class_shares

        if self.shares is None:
            self.shares = class_shares(known[kind_of(known).known(known)], self.classes).tolist()
        return Prediction(rows_of(graph, rows), self.spread(graph, known, graph.targets if rows is None else rows))

    def spread(self, graph: Graph, known: Array, rows: Array | None) -> Array:
        """Return the probabilities of some rows."""
        from gamlp.labels import label_propagation

        seen = np.flatnonzero(kind_of(known).known(known))
        if not len(seen):
            count = graph.nodes if rows is None else len(rows)
            return np.tile(np.asarray(self.shares, np.float32), (count, 1))
        more = {"classes": self.classes, "alpha": self.alpha, "steps": self.settings.steps, "rows": rows}
        more["normalization"] = self.normalization
        return label_propagation(self.engine, graph.adjacency, seen, known[seen], **more)

    def living(self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None) -> LivingLabels:
        """Keep the votes of all nodes, and one step of them."""
        from gamlp.labels.correction import class_shares, spread_votes
        from gamlp.methods.hop_network import check_living
        from gamlp.propagate.spec import Propagation
        from gamlp.propagate.states import keep_states
        from gamlp.train.living_mixture import LivingLabels

        check_living(graph)
        kind, seen = kind_of(known), np.flatnonzero(kind_of(known).known(known))
        votes = kind.votes(known[seen], self.classes)
        how: dict[str, Any] = {"alpha": self.alpha, "steps": self.settings.steps, "normalization": self.normalization}
        spread = np.ascontiguousarray(spread_votes(self.engine, graph.adjacency, seen, votes, **how))
        states = keep_states(self.engine, graph.adjacency, spread, Propagation(1, self.normalization))
        shares = np.asarray(self.shares, np.float32) if self.shares else class_shares(known[seen], self.classes)
        return LivingLabels(graph, states, self.alpha, shares, kind)

    def state(self) -> dict[str, Any]:
        """Return what was chosen."""
        return {"alpha": self.alpha, "shares": self.shares}
