"""Networks on hops, trained in stages: GAMLP and every decoupled method, as combinations of the same parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gamlp.errors import SettingsError
from gamlp.methods.base import Context, FittedMethod, Method, scaling_from, scaling_tensors
from gamlp.model.registry import COMBINERS, combiner_named
from gamlp.settings import Settings, settings_from
from gamlp.train.prediction import Prediction

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.methods.base import Ids, Tensors
    from gamlp.model import Network
    from gamlp.propagate.scaling import Scaling
    from gamlp.propagate.subsets import Subset
    from gamlp.storage.files import Array

LABELS = (
    "label_hops", "label_normalization", "label_self_loops", "label_layers", "label_weights", "label_folds",
    "reliable_propagation",
)  # fmt: skip
STAGES = ("pseudo_labels", "reliable_propagation", "keep_stage", "threshold", "gamma")
CONSISTENCY = ("consistency_decay", "consistency_threshold")
SUBSETS = ("subsets", "subset_memory", "subset_turn")


class HopNetwork(Method):
    """A network that reads a node's hops, and perhaps its label hops."""

    additions: ClassVar[Collection[str]] = ("+rlu", "+sle", "+scr", "+cs", "+labels", "-labels")
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
                "the method without it.\nGive two stages at least, as epochs = [100, 50], or name the method alone."
            )
        fed = settings.labels and settings.reliable_propagation
        if settings.pseudo_labels == "distil" and not settings.gamma and not fed:
            raise SettingsError(
                f"{self.name} was given gamma = 0 and no label input for reliable predictions, and would learn nothing "
                "from its first stage.\nSet gamma above 0, or labels and reliable_propagation to true."
            )
        return settings

    def idle(self, graph: Graph, settings: Settings) -> dict[str, str]:
        """Return the settings that change nothing, each with the reason."""
        own = combiner_named(settings.combiner).reads
        netted = settings.jk_reference in ("hops", "steps")
        mixing = (  # layers of the nets that mix their first layer into those in the middle
            settings.head_layers if settings.head_residual == "first" else 0,
            settings.jk_layers if netted and "jk_layers" in own else 0,
        )
        without = {
            f"{self.name} reads no labels": () if settings.labels else LABELS,
            f"{self.name} has one stage": () if self.staged else STAGES,
            f"{self.name} has no consistency loss": () if settings.consistency else CONSISTENCY,
            "no temperature is used without reliable labels or a consistency loss": ()
            if self.staged or settings.consistency
            else ("temperature", "reliable_from", "unlabelled_rows"),
            f"the combiner is {settings.combiner}": [
                key for name in COMBINERS for key in combiner_named(name).reads if key not in own
            ],
            "nothing is propagated": () if settings.hops else ("normalization", "self_loops"),
            "relations are merged": () if settings.relations == "subsets" else SUBSETS,
            "no embeddings are used": () if settings.featureless == "embeddings" else ("embedding", "embedding_file"),
            "the classes themselves are learned": ("gamma", "reliable_propagation")
            if settings.pseudo_labels == "train"
            else (),
            f"the reference is {settings.jk_reference}": () if netted else ("jk_layers",),
            "no net has layers in the middle that read its first": () if max(mixing) > 2 else ("initial_residual",),
            "reliable nodes are trained on like the others": ("unlabelled_rows",)
            if settings.pseudo_labels == "train" and not settings.consistency
            else (),
        }
        return {key: reason for reason, keys in without.items() for key in keys} | super().idle(graph, settings)

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

    def fit(self, graph: Graph, split: Split, settings: Settings, context: Context) -> FittedHopNetwork:
        """Propagate, then train stage by stage."""
        from gamlp.train.hop_source import relation_subsets, wanted_rows
        from gamlp.train.stages import fit_stages, known_labels
        from gamlp.train.subset_rotation import subset_shares

        subsets = relation_subsets(graph, settings)
        fitted = FittedHopNetwork(settings, context.source.scaling(graph, settings), subsets, context)
        fingerprint = graph.fingerprint if context.folder else ""
        task = fitted.task(graph, wanted_rows(graph, split, settings), fingerprint=fingerprint)
        done = fit_stages(task, known_labels(graph, split, task.rows, settings), folder=context.folder)
        fitted.take(done.networks)
        fitted.prediction = Prediction(task.rows, done.probabilities, done.weights)
        fitted.history, fitted.stages = done.history, done.stages
        fitted.relations = subset_shares(done.networks[-1], task.hops, split.train, subsets)
        return fitted

    def load(self, settings: Settings, state: Any, tensors: Tensors, context: Context) -> FittedHopNetwork:
        """Build the networks of all stages that prediction needs."""
        from gamlp.model import build_network
        from gamlp.train.checkpoint import without_prefix

        subsets = tuple(tuple(subset) for subset in state["subsets"])
        context = replace(context, seed=state["seed"])
        fitted = FittedHopNetwork(settings, scaling_from(settings, tensors), subsets, context)
        networks = []
        for stage in range(state["stages"]):
            network = build_network(settings, features=state["width"], classes=context.classes, subsets=len(subsets))
            network.load_state_dict(without_prefix(f"stage-{stage + 1}", tensors))
            networks.append(network.to(context.device))
        fitted.take(networks)
        return fitted


class SubsetNetwork(HopNetwork):
    """The same on the hops of relation subsets (NARS): heterogeneous graphs only."""

    needs_relations: ClassVar[bool] = True


class FittedHopNetwork(FittedMethod):
    """The networks of the stages, with what is done to a graph before them."""

    def __init__(self, settings: Settings, scaling: Scaling, subsets: tuple[Subset, ...], context: Context) -> None:
        super().__init__()
        self.settings, self.scaling, self.subsets, self.context = settings, scaling, subsets, context
        self.networks: list[Network] = []

    def take(self, networks: list[Network]) -> None:
        """Keep the networks that prediction needs: those of earlier stages only where labels are input."""
        from gamlp.model import count_parameters

        self.networks = networks if self.settings.labels else networks[-1:]
        self.parameters = count_parameters(networks[-1])

    def task(self, graph: Graph, rows: Array | None, *, fingerprint: str = "") -> Any:
        """Return what all stages on a graph share: its hops before all."""
        from gamlp.train.stages import StageTask

        context, engine = self.context, self.context.source.engine
        hops = context.source.hops(graph, self.settings, rows, scaling=self.scaling, subsets=self.subsets)
        shared = (context.classes, self.settings, engine, context.seed, context.device)
        return StageTask(graph.adjacency, hops, *shared, fingerprint)

    def predict(self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None) -> Prediction:
        """Run the stages with the labels that are known."""
        from gamlp.train.stage import StageData
        from gamlp.train.stages import predict_stages

        task = self.task(graph, graph.targets if rows is None else rows)
        seen = np.flatnonzero(known >= 0)
        if candidates is None:
            candidates = task.rows[known[task.rows] < 0]
        said = predict_stages(task, StageData(seen, known[seen], candidates=candidates), self.networks)
        return Prediction(task.rows, said.probabilities, said.weights, said.logits)

    def embed(self, graph: Graph, *, rows: Ids = None) -> tuple[Array, Array]:
        """Return rows and what the last layer of the last network reads of them."""
        from gamlp.train.inputs import embed
        from gamlp.train.subset_rotation import inputs_for

        task = self.task(graph, graph.targets if rows is None else rows)
        inputs = inputs_for(task.hops, None, graph.nodes, self.context.device, self.settings)
        return task.rows, embed(self.networks[-1], inputs, task.rows)

    def state(self) -> dict[str, Any]:
        """Return what is no tensor."""
        return {
            "seed": self.context.seed,
            "width": self.networks[-1].features,
            "subsets": [list(subset) for subset in self.subsets],
            "stages": len(self.networks),
        }

    def tensors(self) -> Tensors:
        """Return the weights of each stage, and what the scaling measured."""
        from gamlp.train.checkpoint import prefixed

        tensors = scaling_tensors(self.scaling)
        for stage, network in enumerate(self.networks):
            tensors |= prefixed(f"stage-{stage + 1}", network.state_dict())
        return tensors
