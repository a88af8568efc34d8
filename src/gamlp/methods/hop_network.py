"""Networks on hops, trained in stages: GAMLP and every decoupled method, as combinations of the same parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gamlp.errors import SettingsError
from gamlp.methods.base import Context, FittedMethod, Method, rows_of, scaling_from, scaling_tensors
from gamlp.model.registry import COMBINERS, combiner_named
from gamlp.settings import Settings, settings_from
from gamlp.train.prediction import Prediction

if TYPE_CHECKING:
    from gamlp.graph.build.changes import Moved
    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.methods.base import Ids, Tensors
    from gamlp.model import Network
    from gamlp.propagate.scaling import Scaling
    from gamlp.propagate.subsets import Subset
    from gamlp.storage.files import Array
    from gamlp.targets.objective import Objective
    from gamlp.train.living import Living
    from gamlp.train.stage import StageData

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
    some_rows: ClassVar[bool] = True
    takes_start: ClassVar[bool] = True

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
            f"{graph.name} has features": ("structure",) if graph.features.shape[1] else (),
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

    def expected_seconds(self, graph: Graph, split: Split, settings: Settings) -> float:
        """Count operations of all epochs."""
        from gamlp.machine.training import network_seconds

        return network_seconds(graph, split, settings)

    def expected_bytes(self, graph: Graph, split: Split, settings: Settings) -> int:
        """Count weights, batches and predictions."""
        from gamlp.machine.training import network_bytes

        return network_bytes(graph, split, settings)

    def fit(self, graph: Graph, split: Split, settings: Settings, context: Context) -> FittedHopNetwork:
        """Propagate, then train stage by stage."""
        from gamlp.train.hop_source import relation_subsets, wanted_rows
        from gamlp.train.stages import fit_stages, known_labels
        from gamlp.train.subset_rotation import subset_shares

        start = context.start if isinstance(context.start, FittedHopNetwork) else None
        subsets = relation_subsets(graph, settings) if start is None else start.subsets
        scaling = context.source.scaling(graph, settings) if start is None else start.scaling
        fitted = FittedHopNetwork(settings, scaling, subsets, context)
        fingerprint = graph.fingerprint if context.folder else ""
        task = fitted.task(graph, wanted_rows(graph, split, settings), fingerprint=fingerprint)
        bounds: dict[str, Any] = {"objective": context.objective, "ends": context.ends, "rival": context.rival}
        known = known_labels(graph, split, task.rows, settings)._replace(**bounds)
        done = fit_stages(task, known, folder=context.folder)
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

    def task(self, graph: Graph, rows: Array | None, *, fingerprint: str = "", keep: bool = True) -> Any:
        """Return what all stages on a graph share: its hops before all, which a cache keeps unless told otherwise."""
        from gamlp.train.stages import StageTask

        context, engine = self.context, self.context.source.engine
        source = context.source if keep else context.source.transient()
        hops = source.hops(graph, self.settings, rows, scaling=self.scaling, subsets=self.subsets)
        shared = (context.classes, self.settings, engine, context.seed, context.device)
        start = context.start.networks if isinstance(context.start, FittedHopNetwork) else ()
        return StageTask(graph.adjacency, hops, *shared, fingerprint, tuple(start))

    def predict(self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None) -> Prediction:
        """Run the stages with the labels that are known."""
        from gamlp.train.stages import predict_stages

        task = self.task(graph, graph.targets if rows is None else rows)
        objective = self.context.objective
        said = predict_stages(task, stage_data_of(task.rows, known, candidates, objective), self.networks)
        return Prediction(task.rows, said.probabilities, said.weights, said.logits)

    def predict_parts(
        self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None, embeddings: bool = False
    ) -> Iterator[Prediction]:
        """Yield predictions of one group of rows after the other where those of all do not fit in memory."""
        from gamlp.methods.row_groups import needs_groups, predict_groups

        wanted, every, memory = rows_of(graph, rows), rows_of(graph), self.context.source.engine.memory
        objective = self.context.objective
        candidates = every[~objective.kind.known(known[every])] if candidates is None else candidates
        at_once = len(self.networks) == 1 or bool(np.isin(candidates, wanted).all())  # stages hand on what they say
        if at_once and not needs_groups(memory, len(wanted), self.context.classes):
            yield from super().predict_parts(graph, known, candidates=candidates, rows=rows, embeddings=embeddings)
            return
        data = stage_data_of(wanted, known, candidates, objective)
        yield from predict_groups(self, graph, data, wanted, embeddings=embeddings)

    def living(self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None) -> Living:
        """Keep the states of the features, and those of the labels of the last stage."""
        from gamlp.train.living import LivingNetwork, feature_states, label_states

        check_living(graph)
        context, labels = self.context, None
        features = feature_states(context.source, graph, self.settings, self.scaling)
        if self.settings.labels:
            data = stage_data_of(rows_of(graph, rows), known, candidates, context.objective)
            engine = context.source.engine
            labels = label_states(lambda: self.task(graph, rows), engine, features, data, self.networks)
        return LivingNetwork(graph, features, labels, self.networks[-1], self.settings, self.scaling, context.device)

    def carry(self, graph: Graph, changed: Graph, moved: Moved, *, directed: bool) -> None:
        """Compute again what the change reaches of the features' states, where a cache keeps them."""
        from gamlp.propagate.changed_states import changed_states
        from gamlp.train.living import feature_states

        source = self.context.source
        if source.engine.cache is None or graph.types or not graph.features.shape[1]:
            return
        old = feature_states(source, graph, self.settings, self.scaling)
        columns = self.scaling.seen(changed.features)
        changed_states(source.engine, old, changed.adjacency, columns, moved, directed=directed)

    def embed(self, graph: Graph, *, rows: Ids = None) -> tuple[Array, Array]:
        """Return rows and what the last layer of the last network reads of them."""
        from gamlp.train.inputs import embed
        from gamlp.train.subset_rotation import inputs_for

        task = self.task(graph, graph.targets if rows is None else rows)
        inputs = inputs_for(task.hops, None, self.context.device, self.settings, memory=task.engine.memory)
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


def stage_data_of(rows: Array, known: Array, candidates: Ids, objective: Objective) -> StageData:
    """Return what the first stage may know: labels, −1 = unknown, and who may become reliable, None = the rest."""
    from gamlp.train.stage import StageData

    has = objective.kind.known(known)
    seen = np.flatnonzero(has)
    candidates = rows[~has[rows]] if candidates is None else candidates
    return StageData(seen, known[seen], candidates=candidates, objective=objective)


def check_living(graph: Graph) -> None:
    """Refuse graphs whose new nodes cannot be told by their own features and edges."""
    remedy = "Give the whole graph with the new nodes in it: gamlp predict RUN GRAPH."
    if graph.types:
        kinds = f"{len(graph.types)} types of nodes"
        told = f"{graph.name} has {kinds}: nodes that it does not have yet are not predicted alone."
        raise SettingsError(f"{told}\n{remedy}")
    if not graph.features.shape[1]:
        raise SettingsError(
            f"{graph.name} came without features: those of its structure are made for all nodes together, and new "
            f"nodes have none.\n{remedy}"
        )
