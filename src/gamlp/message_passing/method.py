"""Message-passing methods, through PyG: the same two functions as every method, `fit` and `predict`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gamlp.message_passing.settings import COMMON, DEFAULTS, FEATURELESS, Options, options_for
from gamlp.methods.base import Context, FittedMethod, Method

if TYPE_CHECKING:
    from torch import Tensor

    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.propagate.scaling import Scaling
    from gamlp.storage.files import Array
    from gamlp.train.prediction import Prediction


class MessagePassing(Method):
    """A network that reads the whole graph, or samples of it."""

    uses_engine: ClassVar[bool] = False
    extra: ClassVar[str | None] = "pyg"

    def setting_names(self) -> Collection[str]:
        """Return the settings that it has."""
        return COMMON | set(DEFAULTS[self.base])

    def shared(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Take of a recipe's common settings how featureless types are filled; all else is its own."""
        return {key: value for key, value in values.items() if key in FEATURELESS}

    def settings_from(self, values: Mapping[str, Any]) -> Options:
        """Check the settings."""
        return options_for(self.base, values)

    def check(self, graph: Graph, settings: Options) -> None:
        """Refuse what could not be trained, before anything is."""
        import gamlp.message_passing.pyg  # noqa: F401 — raises MissingExtraError
        from gamlp.train.featureless import check_filling

        super().check(graph, settings)
        check_filling(graph, settings)

    def fit(self, graph: Graph, split: Split, settings: Options, context: Context) -> FittedMessagePassing:
        """Train on the graph with features for all its nodes."""
        from gamlp.message_passing.fit import fit
        from gamlp.propagate.scaling import Scaling
        from gamlp.train.prediction import Prediction

        filled = replace(graph, features=context.source.features(graph, settings))
        scaling = Scaling.fit(settings.feature_scaling, np.asarray(filled.features))
        done = fit(
            self.base, filled, split, options=settings, scaling=scaling, seed=context.seed, device=context.device
        )
        fitted = FittedMessagePassing(self.base, settings, scaling, done.state, context)
        rows = np.arange(graph.nodes) if graph.targets is None else graph.targets
        fitted.prediction = Prediction(rows, done.probabilities[rows])
        fitted.parameters, fitted.history = done.parameters, done.history
        return fitted

    def load(
        self, settings: Options, state: Mapping[str, Any], tensors: dict[str, Tensor], context: Context
    ) -> FittedMessagePassing:
        """Take up the weights."""
        from gamlp.propagate.scaling import Scaling
        from gamlp.train.checkpoint import without_prefix

        measured = {name: value.numpy() for name, value in without_prefix("scaling", tensors).items()}
        scaling = Scaling(settings.feature_scaling, **measured)
        weights = without_prefix("network", tensors)
        return FittedMessagePassing(self.base, settings, scaling, weights, context)


class RelationalMessagePassing(MessagePassing):
    """Message passing that tells types and relations apart."""

    needs_relations: ClassVar[bool] = True


class FittedMessagePassing(FittedMethod):
    """The weights of a network, which is built anew for each graph."""

    def __init__(
        self, base: str, settings: Options, scaling: Scaling, weights: dict[str, Tensor], context: Context
    ) -> None:
        super().__init__()
        self.base, self.settings, self.scaling, self.weights = base, settings, scaling, weights
        self.context = context

    def predict(
        self, graph: Graph, known: Array, *, candidates: Array | None = None, rows: Array | None = None
    ) -> Prediction:
        """Run the network over the whole graph; labels are input for UniMP alone."""
        from gamlp.message_passing.fit import predict
        from gamlp.train.prediction import Prediction

        filled = replace(graph, features=self.context.source.features(graph, self.settings))
        probabilities = predict(
            self.base,
            filled,
            known,
            options=self.settings,
            scaling=self.scaling,
            weights=self.weights,
            classes=self.context.classes,
            device=self.context.device,
        )
        wanted = graph.targets if rows is None else rows
        wanted = np.arange(graph.nodes) if wanted is None else wanted
        return Prediction(wanted, probabilities[wanted])

    def state(self) -> dict[str, Any]:
        """Everything is in the tensors."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights, and what the scaling measured."""
        import torch

        from gamlp.train.checkpoint import prefixed

        scaling = {f"scaling.{name}": torch.from_numpy(value) for name, value in self.scaling.arrays().items()}
        return prefixed("network", self.weights) | scaling
