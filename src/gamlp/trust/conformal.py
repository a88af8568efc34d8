"""Sets of classes with a promise: each contains the truth with probability 1 − α (split conformal prediction).

    s_iy = 1 − p'_iy                                     the score of a class (LAC, Sadinle et al. 2019)
    p'_i = (1 − λ) p_i + λ mean_{j ∈ N(i)} p_j            mixed with the neighbours' (diffusion, as in DAPS,
                                                         Zargarbashi et al. 2023); λ = 0 is plain split conformal
    q    = the ⌈(n+1)(1−α)⌉-th smallest of s_{i,y_i}      over n calibration nodes
    set_i = { y : s_iy ≤ q }

Why the promise holds. The labels of calibration and test nodes reach neither the network nor λ nor the temperature,
and both kinds of nodes are treated alike, as nodes of the same graph without a label. If which of them are calibration
nodes was left to chance, the n+1 scores of these and of one test node are exchangeable: its own is among the
⌈(n+1)(1−α)⌉ smallest with probability ≥ 1−α, and < 1−α + 1/(n+1) where no two are equal. It is a promise on average
over nodes and splits, not for each class: the report has the coverage of each.

Where it does not hold. (1) Validation nodes choose the epoch. With calibration_share = 0, the default, they are the
calibration nodes all the same and the promise holds only about, short by what the choice among a few hundred epochs
that are much alike can do; with calibration_share > 0, so many of them are drawn by the seed, choose nothing, and it
holds. (2) Validation nodes that are no random draw (`trust.shift`), training nodes, and nodes of another graph. A shift
that shows makes the calibration nodes count unequally (`trust.likeness`), which helps and promises nothing.
(3) Fewer than ⌈1/α⌉ − 1 calibration nodes: refused.

A set may be empty: no class of that node is as likely as the promise needs, as where 80 % are asked for and 94 % are
right; or hold several classes. Whoever must answer with one class abstains from both.

λ is the one of 0 and ½ with the smaller sets for 90 % on the nodes that choose. Cost: O(E·C) once, by the engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gamlp.errors import SettingsError
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.spec import Propagation
from gamlp.storage.files import Array
from gamlp.trust.likeness import weighted_thresholds

if TYPE_CHECKING:
    from gamlp.graph.graph import Adjacency
    from gamlp.propagate.engines.base import Engine
    from gamlp.train.prediction import Prediction

MEAN = Normalization(r=0.0, self_loops=False)
DIFFUSIONS = (0.0, 0.5)
CHOSEN_AT = 0.9  # the coverage whose sets choose λ


@dataclass(frozen=True, eq=False)
class Conformal:
    """What sets are made with."""

    scores: Array  # (n,) float32 of the true classes of the calibration nodes, in the order of their ids
    diffusion: float = 0.0  # λ
    apart: bool = False  # whether the calibration nodes chose nothing else

    def sets(self, probabilities: Array, coverage: float) -> Array:
        """Return which classes are in each set, (R, C) bool; `probabilities` are those that `diffused` gives."""
        return np.asarray(1 - probabilities <= self.threshold(coverage))

    def weighted_sets(self, probabilities: Array, coverage: float, weights: Array, own: Array) -> Array:
        """Return the same where calibration nodes count by `weights` (n,), and the nodes themselves by `own` (R,)."""
        self.threshold(coverage)  # refuses too few nodes
        return np.asarray(1 - probabilities <= weighted_thresholds(self.scores, weights, own, coverage)[:, None])

    def promises(self, coverage: float) -> bool:
        """Say whether there are calibration nodes enough."""
        return len(self.scores) >= needed(coverage)

    def threshold(self, coverage: float) -> float:
        """Return q, or say that there are too few calibration nodes."""
        return quantile(self.scores, coverage)


def quantile(scores: Array, coverage: float) -> float:
    """Return the ⌈(n+1)·coverage⌉-th smallest of scores (n,)."""
    if not 0 < coverage < 1:
        raise SettingsError(f"The coverage is {coverage}.\nExpected a number between 0 and 1, as 0.9.")
    rank = math.ceil((len(scores) + 1) * coverage - 1e-9)
    if rank > len(scores):
        raise SettingsError(
            f"A coverage of {coverage} needs at least {needed(coverage):,} validation labels to promise it by, "
            f"the model has {len(scores):,}.\nAsk for less, or train with more validation nodes."
        )
    return float(np.sort(scores)[rank - 1])


def needed(coverage: float) -> int:
    """Return ⌈1/(1 − coverage)⌉ − 1, the fewest calibration nodes."""
    return math.ceil(1 / (1 - coverage) - 1e-9) - 1


def diffused(said: Prediction, adjacency: Adjacency, engine: Engine, diffusion: float) -> Array:
    """Return p' of a prediction for all nodes, (N, C); a node without neighbours keeps its own."""
    probabilities = said.probabilities
    if not diffusion:
        return probabilities
    if len(said.rows) < adjacency.nodes:
        raise SettingsError(
            f"{adjacency.nodes - len(said.rows):,} nodes of the graph have no prediction, and the sets of this model "
            "look at the neighbours'.\nPredict all nodes."
        )
    mean = engine.transient().propagate(adjacency, probabilities, Propagation(1, MEAN, keep="last")).values[:, -1]
    share = np.where(np.diff(adjacency.indptr) > 0, np.float32(diffusion), np.float32(0))[:, None]
    return np.asarray((1 - share) * probabilities + share * mean)


def true_scores(probabilities: Array, labels: Array) -> Array:
    """Return s of the true classes, (n, C), (n,) → (n,)."""
    return np.asarray(1 - probabilities[np.arange(len(labels)), labels])


def mean_size(probabilities: Array, labels: Array) -> float:
    """Return the mean size of the sets of n nodes that are calibrated by themselves."""
    if len(labels) < needed(CHOSEN_AT):
        return 0.0
    return float((1 - probabilities <= quantile(true_scores(probabilities, labels), CHOSEN_AT)).sum(axis=1).mean())


def set_aside(valid: Array, share: float, seed: int) -> tuple[Array, Array]:
    """Deal the validation nodes into those that choose and a share, drawn by the seed, that chooses nothing."""
    drawn = np.random.default_rng([seed, 0xC0F0]).permutation(valid)
    count = round(share * len(valid))
    return np.sort(drawn[count:]), np.sort(drawn[:count])
