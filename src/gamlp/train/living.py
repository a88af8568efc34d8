"""A graph that goes on living beside a fitted network: its states are kept, and new nodes are predicted from them.

    living = fitted.living(graph, split=split)     # once: states of the features, and of the labels that are input
    living.predict(new)                            # milliseconds: `NewNodes` → a Prediction of these alone

Features of new nodes are scaled as those of training were, their hops come from `propagate.attach`, their label hops
from the states of Ŷ⁰ of the last stage: what the stages before it found reliable counts, a new node never does. All
states lie in the engine's cache where there is one (N·(K+1)·F values, and N·(K'+1)·C of the labels), mapped from disk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gamlp.graph.build.new_nodes import Beside, NewNodes
from gamlp.graph.graph import Graph
from gamlp.labels.hops import hop_weights, initial_labels
from gamlp.model import Network
from gamlp.propagate.attach import attach
from gamlp.propagate.hops import Hops
from gamlp.propagate.scaling import Scaling
from gamlp.propagate.spec import Job
from gamlp.propagate.states import PREFIX, States, keep_states, state_job
from gamlp.propagate.stationary import is_symmetric
from gamlp.settings import Settings
from gamlp.storage.files import Array, digest
from gamlp.targets.registry import kind_of
from gamlp.train.hop_source import label_propagation_of, propagation_of
from gamlp.train.inputs import predict
from gamlp.train.prediction import Prediction
from gamlp.train.stage import StageData
from gamlp.train.stages import StageTask, last_labels
from gamlp.train.subset_rotation import inputs_for

if TYPE_CHECKING:
    from gamlp.propagate.engines.base import Engine
    from gamlp.train.hop_source import HopSource
    from gamlp.trust.trust import Trust


@dataclass(frozen=True, eq=False)
class Living(ABC):
    """What a model keeps of a graph, to predict nodes beside it: one network, or another kind (`living_mixture`)."""

    graph: Graph
    trust: Trust | None = field(default=None, kw_only=True)  # how probabilities are calibrated

    @cached_property
    def directed(self) -> bool:
        """Whether some edges lead one way, as new ones then do; found by one pass over the adjacency."""
        return not is_symmetric(self.graph.adjacency)

    @property
    @abstractmethod
    def states(self) -> tuple[States, ...]:
        """What is kept of the graph."""

    @abstractmethod
    def says(self, new: NewNodes, beside: Beside, *, directed: bool) -> Prediction:
        """Return what the model says of new nodes and their entries, before it is calibrated."""

    def predict(self, new: NewNodes) -> Prediction:
        """Return what the model says of the new nodes, whose rows are N, N + 1, …; the graph stays as it is."""
        beside = new.check(self.graph).beside(self.graph.nodes, directed=self.directed)
        said = self.says(new, beside, directed=self.directed)
        return said if self.trust is None else self.trust.calibrated(said)

    @property
    def bytes(self) -> int:
        """How much is kept of the graph, on disk or in memory."""
        return sum(states.values.nbytes for states in self.states)


@dataclass(frozen=True, eq=False)
class LivingNetwork(Living):
    """The states of a graph, and the network that reads the hops of nodes beside it."""

    features: States
    labels: States | None  # of Ŷ⁰ of the last stage; None where labels are no input
    network: Network
    settings: Settings
    scaling: Scaling
    device: str = "cpu"

    @property
    def states(self) -> tuple[States, ...]:
        """Those of the features, and of the labels."""
        return (self.features,) if self.labels is None else (self.features, self.labels)

    def attach(self, new: NewNodes, beside: Beside, *, directed: bool) -> tuple[Hops, Array | None]:
        """Return the hops (n, K+1, F) and, where labels are input, the label hops (n, C) of new nodes."""
        features = self.scaling(np.asarray(new.nodes.features, np.float32))
        hops = attach(self.features, beside, features, directed=directed)
        if self.labels is None:
            return hops, None
        nothing = np.zeros((new.nodes.nodes, self.labels.values.shape[2]), np.float32)
        known = np.asarray(attach(self.labels, beside, nothing, directed=directed).values, np.float32)
        weights = hop_weights(self.settings.label_weights, self.settings.label_hops)
        return hops, known[:, -1] if weights is None else np.einsum("rkc,k->rc", known, weights)

    def says(self, new: NewNodes, beside: Beside, *, directed: bool) -> Prediction:
        """Pass the hops of the new nodes through the network."""
        hops, labels = self.attach(new, beside, directed=directed)
        count = new.nodes.nodes
        inputs = inputs_for(hops, labels, self.device, self.settings)
        logits, weights = predict(self.network, inputs, np.arange(count))
        return Prediction.of(self.graph.nodes + np.arange(count), logits, weights, kind_of(self.graph.labels))


def feature_states(source: HopSource, graph: Graph, settings: Settings, scaling: Scaling) -> States:
    """Return the states of a graph's features, scaled as in training."""
    features = scaling.seen(source.features(graph, settings))
    return keep_states(source.engine, graph.adjacency, features, propagation_of(settings, None))


def label_states(
    task: Callable[[], StageTask], engine: Engine, features: States, known: StageData, networks: list[Network]
) -> States:
    """Return the states of Ŷ⁰ of the last stage; `task` is asked for only where stages before it have to be run."""
    earlier, settings, classes = networks[:-1], networks[-1].settings, networks[-1].classes
    adjacency, spec = features.adjacency, replace(label_propagation_of(networks[-1].settings, None), keep="all")

    def job() -> Job:
        if earlier:
            return state_job(adjacency, last_labels(task(), known, networks), spec)
        return state_job(adjacency, initial_labels(adjacency.nodes, classes, known.train, known.train_labels), spec)

    content: list[Array | str] = [known.train, known.train_labels]
    if earlier:
        learned = [value.cpu().numpy() for network in earlier for value in network.state_dict().values()]
        content += [features.key, known.candidates, *learned]
    words = f"{settings.model_dump_json()} {classes} {engine.key_device}"
    found = engine.propagate_as(f"{PREFIX}labels-{digest(words, adjacency.fingerprint, *content)}", job)
    nothing = np.broadcast_to(np.float32(0), (adjacency.nodes, classes))
    return States(adjacency, nothing, spec, found.values, np.ones(classes, np.float32), key=found.key)
