"""The same for models that are no single network: spread labels, and mixtures of several models.

Label propagation has converged on the graph; a new node i adds one row to it, with Y_i^(0) = 0:

    y_i = clip( α Σ_j Â'_ij y_j, 0, 1 )

by one step of `propagate.attach` from the kept y of its neighbours, repeated where new nodes are joined to each other.
A mixture asks its members, each of which keeps what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gamlp.graph.build.new_nodes import Beside, NewNodes
from gamlp.propagate.attach import attach
from gamlp.propagate.states import States
from gamlp.storage.files import Array
from gamlp.targets.base import TargetKind
from gamlp.train.living import Living
from gamlp.train.prediction import Prediction

STEPS = 20  # among new nodes, where α^20 of a vote is left


@dataclass(frozen=True, eq=False)
class LivingLabels(Living):
    """The votes that label propagation left on a graph's nodes."""

    votes: States  # one step of them
    alpha: float
    shares: Array  # (C,) of nodes that no vote reaches
    kind: TargetKind

    @property
    def states(self) -> tuple[States, ...]:
        """Those of the votes."""
        return (self.votes,)

    def says(self, new: NewNodes, beside: Beside, *, directed: bool) -> Prediction:
        """Return what the votes of their neighbours say of new nodes."""
        nodes, count = self.graph.nodes, new.nodes.nodes
        joined = bool(((new.source >= nodes) & (new.target >= nodes)).any())
        found = np.zeros((count, self.votes.values.shape[2]), np.float32)
        for _ in range(STEPS if joined else 1):
            hops = attach(self.votes, beside, found, directed=directed)
            found = np.clip(np.float32(self.alpha) * np.asarray(hops.values[:, 1], np.float32), 0, 1)
        return Prediction(nodes + np.arange(count), self.kind.counted(found, otherwise=self.shares))


@dataclass(frozen=True, eq=False)
class LivingMixture(Living):
    """Members that each keep what they need of one graph, and how their predictions become one."""

    members: tuple[Living, ...]
    mix: Callable[[Sequence[Prediction]], Prediction]

    @property
    def states(self) -> tuple[States, ...]:
        """Those of all members."""
        return tuple(states for member in self.members for states in member.states)

    def says(self, new: NewNodes, beside: Beside, *, directed: bool) -> Prediction:
        """Ask all members."""
        return self.mix([member.says(new, beside, directed=directed) for member in self.members])
