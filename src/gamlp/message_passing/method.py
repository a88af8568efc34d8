"""Message-passing methods, through PyG: the same two functions as every method, `fit` and `predict`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from gamlp.message_passing.settings import COMMON, FEATURELESS, Options
from gamlp.methods.base import Context, FittedMethod, Method, rows_of, scaling_from, scaling_tensors
from gamlp.settings import TARGET, checked
from gamlp.train.prediction import Prediction

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.methods.base import Ids, Tensors
    from gamlp.propagate.scaling import Scaling
    from gamlp.storage.files import Array


class MessagePassing(Method):
    """A network that reads the whole graph, or samples of it."""

    uses_engine: ClassVar[bool] = False
    extra: ClassVar[str | None] = "pyg"

    def setting_names(self) -> Collection[str]:
        """Return the common settings, and those that its defaults name."""
        return COMMON | set(self.declared.defaults)

    def shared(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Take of a recipe's common settings how featureless types are filled, and what chooses."""
        return {key: value for key, value in values.items() if key in FEATURELESS | TARGET}

    def adapted(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Take the scaling too: as the authors have it for Cora, wide rows become so small that little is learned."""
        return {key: value for key, value in values.items() if key == "feature_scaling"} | self.shared(values)

    def settings_from(self, values: Mapping[str, Any]) -> Options:
        """Check the settings."""
        return checked(Options, {**self.declared.defaults, **values}, of=self.base, own=self.setting_names())

    def check(self, graph: Graph, settings: Options) -> None:
        """Refuse what could not be trained, before anything is."""
        import gamlp.message_passing.pyg  # noqa: F401 — raises MissingExtraError
        from gamlp.train.featureless import check_filling

        super().check(graph, settings)
        check_filling(graph, settings)

    def fit(self, graph: Graph, split: Split, settings: Options, context: Context) -> FittedMessagePassing:
        """Train on the graph with features for all its nodes."""
        from gamlp.message_passing.fit import fit

        filled = replace(graph, features=context.source.features(graph, settings))
        more: dict[str, Any] = {"seed": context.seed, "device": context.device, "objective": context.objective}
        done = fit(self.base, filled, split, options=settings, **more)
        fitted = FittedMessagePassing(self.base, settings, done.scaling, done.state, context)
        rows = rows_of(graph)
        fitted.prediction = Prediction(rows, done.probabilities[rows])
        fitted.parameters, fitted.history = done.parameters, done.history
        return fitted

    def load(self, settings: Options, state: Any, tensors: Tensors, context: Context) -> FittedMessagePassing:
        """Take up the weights."""
        from gamlp.train.checkpoint import without_prefix

        scaling, weights = scaling_from(settings, tensors), without_prefix("network", tensors)
        return FittedMessagePassing(self.base, settings, scaling, weights, context)


class LabelledMessagePassing(MessagePassing):
    """Message passing over features and labels."""

    additions: ClassVar[Collection[str]] = ("+reuse", "+cs")
    several_labels: ClassVar[bool] = False


class RelationalMessagePassing(MessagePassing):
    """Message passing that tells types and relations apart."""

    needs_relations: ClassVar[bool] = True


class FittedMessagePassing(FittedMethod):
    """The weights of a network, which is built anew for each graph."""

    def __init__(self, base: str, settings: Options, scaling: Scaling, weights: Tensors, context: Context) -> None:
        super().__init__()
        self.base, self.settings, self.scaling = base, settings, scaling
        self.weights, self.context = weights, context

    def predict(self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None) -> Prediction:
        """Run the network over the whole graph; labels are input for UniMP alone."""
        from gamlp.message_passing.fit import logits
        from gamlp.message_passing.network import build

        context = self.context
        filled = replace(graph, features=context.source.features(graph, self.settings))
        network, source = build(
            self.base, filled, context.classes, options=self.settings, scaling=self.scaling, device=context.device
        )
        network.load_state_dict(self.weights)
        wanted = rows_of(graph, rows)
        said = logits(network, network.seen(source.view, known))
        chances = context.objective.kind.link(said)
        return Prediction(wanted, chances.cpu().numpy()[wanted], logits=said.cpu().numpy()[wanted])

    def tensors(self) -> Tensors:
        """Return the weights, and what the scaling measured."""
        from gamlp.train.checkpoint import prefixed

        return prefixed("network", self.weights) | scaling_tensors(self.scaling)
