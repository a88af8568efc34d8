"""How much more often nodes like this one occur among others than among calibration nodes: weights under shift.

Where the two are not alike, calibration nodes count by w = p_other(x) / p_calibration(x) (Tibshirani et al. 2019), with
x what is known of a node without its label: confidence, degree, predicted class. A logistic regression that tells the
two apart gives it, up to a factor that does not matter:

    log w(x) = a + b₁ log(c / (1 − c)) + b₂ log(1 + d) + b_ŷ,      at most 20 times the mean of calibration nodes

    q_i = the smallest s with  Σ_{j : s_j ≤ s} w_j ≥ (1 − α)(Σ_j w_j + w_i)

With equal weights this is the quantile of `conformal`. It helps as far as x explains the shift: on debian it halves the
missing coverage (docs/trust.md), and promises nothing. Cost: one regression of at most 20,000 nodes of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.storage.files import Array
from gamlp.trust.shift import Witness

ENOUGH = 20_000
MOST = 20.0  # times the mean weight


@dataclass(frozen=True, eq=False)
class Likeness:
    """The coefficients of confidence, degree and each class, (2 + C,) float64."""

    coefficients: Array

    def ratio(self, nodes: Witness) -> Array:
        """Return w of n nodes, up to a factor, (n,) float64."""
        return np.asarray(np.exp(np.clip(self.columns(nodes) @ self.coefficients, -30, 30)))

    def columns(self, nodes: Witness) -> Array:
        """Return x, (n, 2 + C)."""
        return columns(nodes, len(self.coefficients) - 2)


def columns(nodes: Witness, classes: int) -> Array:
    """Return what a regression reads of n nodes, (n, 2 + C) float64."""
    sure = np.clip(nodes.confidence.astype(np.float64), 1e-6, 1 - 1e-6)
    values = np.zeros((len(sure), 2 + classes))
    values[:, 0], values[:, 1] = np.log(sure / (1 - sure)), np.log1p(nodes.degree)
    values[np.arange(len(sure)), 2 + nodes.predicted] = 1
    return values


def fit_likeness(calibration: Witness, other: Witness, *, classes: int) -> Likeness:
    """Tell both apart, neither of them empty."""
    from sklearn.linear_model import LogisticRegression

    kinds = [columns(some(nodes), classes) for nodes in (calibration, other)]
    which = np.repeat([0, 1], [len(kind) for kind in kinds])
    model = LogisticRegression(class_weight="balanced", max_iter=1000).fit(np.concatenate(kinds), which)
    return Likeness(np.asarray(model.coef_[0], np.float64))


def some(nodes: Witness) -> Witness:
    """Return at most 20,000 of the nodes, evenly spread over them."""
    step = -(-len(nodes.confidence) // ENOUGH)
    return Witness(nodes.confidence[::step], nodes.degree[::step], nodes.predicted[::step])


def weighted_thresholds(scores: Array, weights: Array, own: Array, coverage: float) -> Array:
    """Return q_i for nodes with weights `own` (R,), of n scores with weights; ∞ where no score is large enough."""
    highest = MOST * weights.mean()
    weights, own = np.minimum(weights, highest), np.minimum(own, highest)
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(weights[order])
    place = np.searchsorted(reached, coverage * (reached[-1] + own) * (1 - 1e-12), side="left")
    return np.asarray(np.append(scores[order].astype(np.float64), np.inf)[place])
