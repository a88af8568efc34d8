"""Networks on hops, trained in stages: GAMLP and every decoupled method, as combinations of the same parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gamlp.errors import SettingsError
from gamlp.methods.base import ADDITIONS, FittedMethod, Method
from gamlp.settings import Settings, settings_from

if TYPE_CHECKING:
    from torch import Tensor

    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.model import Network
    from gamlp.propagate.scaling import Scaling
    from gamlp.propagate.subsets import Subset
    from gamlp.storage.files import Array
    from gamlp.train.hop_source import HopSource
    from gamlp.train.prediction import Prediction


class HopNetwork(Method):
    """A network that reads a node's hops, and perhaps its label hops."""

    additions: ClassVar[Collection[str]] = tuple(ADDITIONS)
    on_hops: ClassVar[bool] = True

    def setting_names(self) -> Collection[str]:
        """Return the settings that it has."""
        return Settings.model_fields.keys()

    def shared(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Take all settings of a recipe."""
        return dict(values)

    def settings_from(self, values: Mapping[str, Any]) -> Settings:
        """Check the settings; a method without later stages runs the first only."""
        settings = settings_from(dict(values))
        if not self.staged:
            return settings.model_copy(update={"epochs": settings.epochs[:1]})
        if len(settings.epochs) < 2:
            raise SettingsError(
                f"{self.name} was given the epochs of one stage, {settings.epochs[0]}, and would do nothing more than "
                "the method without it.\nGive two stages at least, as --set epochs=[100,50], or name the method alone."
            )
        return settings

    def without_edges(self) -> Method:
        """Return a multi-layer perceptron."""
        from gamlp.methods.registry import method_named

        return method_named("mlp")

    def check(self, graph: Graph, settings: Settings) -> None:
        """Refuse relation subsets of a graph without relations, and types whose features cannot be filled."""
        from gamlp.train.featureless import check_filling
        from gamlp.train.hop_source import relation_subsets

        super().check(graph, settings)
        relation_subsets(graph, settings)
        check_filling(graph, settings)

    def fit(
        self,
        graph: Graph,
        split: Split,
        settings: Settings,
        *,
        seed: int,
        source: HopSource,
        device: str = "cpu",
        folder: Path | None = None,
    ) -> FittedHopNetwork:
        """Propagate, then train stage by stage."""
        from gamlp.train.hop_source import relation_subsets, wanted_rows
        from gamlp.train.stages import KnownLabels, fit_stages
        from gamlp.train.subset_shares import subset_shares

        subsets = relation_subsets(graph, settings)
        fitted = FittedHopNetwork(
            settings,
            source.scaling(graph, settings),
            subsets,
            classes=len(graph.classes),
            seed=seed,
            source=source,
            device=device,
        )
        task = fitted.task(graph, wanted_rows(graph, split, settings), fingerprint=graph.fingerprint if folder else "")
        done = fit_stages(task, KnownLabels.of(graph, split, task.rows, settings), folder=folder)
        fitted.take(done.networks)
        fitted.prediction = _prediction(task.rows, done)
        fitted.history, fitted.stages = done.history, done.stages
        fitted.relations = subset_shares(done.networks[-1], task.hops, split.train, subsets)
        return fitted

    def load(
        self,
        settings: Settings,
        state: Mapping[str, Any],
        tensors: dict[str, Tensor],
        *,
        classes: int,
        source: HopSource,
        device: str = "cpu",
    ) -> FittedHopNetwork:
        """Build the networks of all stages that prediction needs."""
        from gamlp.model import build_network
        from gamlp.propagate.scaling import Scaling
        from gamlp.train.checkpoint import without_prefix

        subsets = tuple(tuple(subset) for subset in state["subsets"])
        measured = {name: value.numpy() for name, value in without_prefix("scaling", tensors).items()}
        scaling = Scaling(settings.feature_scaling, **measured)
        fitted = FittedHopNetwork(
            settings, scaling, subsets, classes=classes, seed=state["seed"], source=source, device=device
        )
        networks = []
        for stage in range(state["stages"]):
            network = build_network(settings, features=state["width"], classes=classes, subsets=len(subsets))
            network.load_state_dict(without_prefix(f"stage-{stage + 1}", tensors))
            networks.append(network.to(device))
        fitted.take(networks)
        return fitted


class SubsetNetwork(HopNetwork):
    """The same on the hops of relation subsets (NARS): heterogeneous graphs only."""

    needs_relations: ClassVar[bool] = True


class FittedHopNetwork(FittedMethod):
    """The networks of the stages, with what is done to a graph before them."""

    def __init__(
        self,
        settings: Settings,
        scaling: Scaling,
        subsets: tuple[Subset, ...],
        *,
        classes: int,
        seed: int,
        source: HopSource,
        device: str,
    ) -> None:
        super().__init__()
        self.settings, self.scaling, self.subsets = settings, scaling, subsets
        self.classes, self.seed, self.source, self.device = classes, seed, source, device
        self.networks: list[Network] = []

    def take(self, networks: list[Network]) -> None:
        """Keep the networks that prediction needs: those of earlier stages only where labels are input."""
        from gamlp.model import count_parameters

        self.networks = networks if self.settings.labels else networks[-1:]
        self.parameters = count_parameters(networks[-1])

    def task(self, graph: Graph, rows: Array | None, *, fingerprint: str = "") -> Any:
        """Return what all stages on a graph share: its hops before all."""
        from gamlp.train.stages import StageTask

        hops = self.source.hops(graph, self.settings, rows, scaling=self.scaling, subsets=self.subsets)
        engine = self.source.engine
        return StageTask(
            graph.adjacency, hops, self.classes, self.settings, engine, self.seed, self.device, fingerprint
        )

    def predict(
        self, graph: Graph, known: Array, *, candidates: Array | None = None, rows: Array | None = None
    ) -> Prediction:
        """Run the stages with the labels that are known."""
        from gamlp.train.stages import KnownLabels, predict_stages

        task = self.task(graph, graph.targets if rows is None else rows)
        seen = np.flatnonzero(known >= 0)
        if candidates is None:
            candidates = task.rows[known[task.rows] < 0]
        return _prediction(task.rows, predict_stages(task, KnownLabels(seen, known[seen], candidates), self.networks))

    def state(self) -> dict[str, Any]:
        """Return what is no tensor."""
        return {
            "seed": self.seed,
            "width": self.networks[-1].features,
            "subsets": [list(subset) for subset in self.subsets],
            "stages": len(self.networks),
        }

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights of each stage, and what the scaling measured."""
        import torch

        from gamlp.train.checkpoint import prefixed

        tensors = {f"scaling.{name}": torch.from_numpy(value) for name, value in self.scaling.arrays().items()}
        for stage, network in enumerate(self.networks):
            tensors |= prefixed(f"stage-{stage + 1}", network.state_dict())
        return tensors


def _prediction(rows: Array, stages: Any) -> Prediction:
    from gamlp.train.prediction import Prediction

    return Prediction(np.asarray(rows), stages.probabilities, stages.weights)
