"""Probabilities that mean what they say: one temperature, fitted on validation (Guo et al. 2017).

    q_ij = p_ij^(1/T) / Σ_k p_ik^(1/T)            softmax(z / T) where p = softmax(z)

T > 1 takes confidence away, T < 1 gives some. The order of the classes of a node stays as it is, and so does its
prediction: where float32 would round the first two to one value, the first stays one step above.

T minimises the log loss of the n validation nodes and of one more, for which the second likeliest class is right:

    L(T) = 1/(n+1) ( Σ_i −log q_{i,y_i}  +  1/n Σ_i −log q_{i,second(i)} )

Without it, T would go to 0 and every confidence to 1 where all n are right, which promises more than n nodes can show
(Platt 1999 smooths his targets for the same reason). A guard keeps T = 1 where that is not safely better: the loss of
each of five folds under the T of the other four must be lower than without, on average, by a standard error.

The validation nodes have also chosen the epoch, and with +cs its settings, so they look a little better than test nodes
do, and T comes out a little too small. That is one choice among some hundred that are much alike, by accuracy, against
one number fitted to hundreds of nodes: docs/trust.md has what was measured. Nodes that choose nothing are kept apart by
the setting `calibration_share` (`trust.conformal`).

Cost: some 40 passes over the (n, C) validation probabilities for each fold, at most 20,000 of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gamlp.storage.files import Array
from gamlp.storage.threads import ranges

SMALLEST = float(np.finfo(np.float32).tiny)  # a probability of 0 counts as this
LEAST, MOST = 0.1, 10.0  # temperatures
FOLDS = 5
FEWEST = 20  # validation nodes that a temperature is fitted to
ENOUGH = 20_000
ROWS_AT_ONCE = 2**14


@dataclass(frozen=True)
class Temperature:
    """The fitted map; 1 changes nothing."""

    value: float = 1.0

    def __call__(self, probabilities: Array) -> Array:
        """Return the calibrated probabilities, (R, C) → (R, C) float32."""
        if self.value == 1:
            return probabilities
        result = np.empty(probabilities.shape, np.float32)
        for first, last in ranges(len(result), ROWS_AT_ONCE):
            part = np.asarray(probabilities[first:last])
            result[first:last] = np.exp(log_tempered(part, self.value))
            keep_first(result[first:last], part.argmax(axis=1))
        return result


def log_tempered(probabilities: Array, temperature: float) -> Array:
    """Return log q, (R, C) float64."""
    logs = np.log(np.maximum(probabilities.astype(np.float64), SMALLEST)) / temperature
    logs -= logs.max(axis=1, keepdims=True)
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))


def keep_first(probabilities: Array, first: Array) -> None:
    """Raise the class `first` (R,) of each row just above what rounding made its equal before it, in place."""
    changed = np.flatnonzero(probabilities.argmax(axis=1) != first)
    top = probabilities[changed, first[changed]]
    probabilities[changed, first[changed]] = np.nextafter(top, np.float32(2))


def fit_temperature(probabilities: Array, labels: Array, seed: int) -> Temperature:
    """Return the temperature of validation nodes (n, C), (n,) whose loss is safely lower than at 1."""
    if len(labels) < FEWEST:
        return Temperature()
    order = np.random.default_rng([seed, 0x7E39]).permutation(len(labels))[:ENOUGH]
    probabilities, labels = probabilities[order], labels[order]
    gains = np.empty(len(labels))
    for fold in range(FOLDS):
        out = np.arange(len(labels)) % FOLDS == fold
        best = best_temperature(probabilities[~out], labels[~out])
        gains[out] = losses(probabilities[out], labels[out], 1.0) - losses(probabilities[out], labels[out], best)
    error = gains.std(ddof=1) / math.sqrt(len(gains))
    return Temperature(best_temperature(probabilities, labels)) if gains.mean() > error else Temperature()


def best_temperature(probabilities: Array, labels: Array) -> float:
    """Return the T of the lowest L(T), which is convex in 1/T."""
    from scipy.optimize import minimize_scalar

    second = np.argsort(-probabilities, axis=1, kind="stable")[:, 1]

    def loss(log_temperature: float) -> float:
        logs = log_tempered(probabilities, math.exp(log_temperature))
        seen, one_more = (-logs[np.arange(len(labels)), chosen].mean() for chosen in (labels, second))
        return float((len(labels) * seen + one_more) / (len(labels) + 1))

    found = minimize_scalar(loss, bounds=(math.log(LEAST), math.log(MOST)), method="bounded", options={"xatol": 1e-4})
    return float(math.exp(found.x))


def losses(probabilities: Array, labels: Array, temperature: float) -> Array:
    """Return −log q of the label of each node, (n,)."""
    return np.asarray(-log_tempered(probabilities, temperature)[np.arange(len(labels)), labels])
