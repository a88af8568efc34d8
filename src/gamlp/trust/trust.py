"""What the pipeline learns of its own trustworthiness, in one object: fitted after all else, kept in the model file.

    probabilities  →  temperature (validation)  →  scores of calibration nodes  →  sets with a promise
                                                →  what validation nodes look like without labels  →  shift

The labels read here are those of the validation nodes, nothing else; where `calibration_share` keeps some of them
apart, the method and the temperature see the others and the sets are promised by those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gamlp.errors import SettingsError
from gamlp.storage.files import Array
from gamlp.targets.single import ScoredClasses
from gamlp.train.prediction import Prediction
from gamlp.trust import conformal, shift
from gamlp.trust.conformal import Conformal
from gamlp.trust.likeness import Likeness, fit_likeness
from gamlp.trust.shift import Witness
from gamlp.trust.temperature import Temperature, fit_temperature

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.propagate.engines.base import Engine


@dataclass(frozen=True, eq=False)
class Trust:
    """How far the probabilities of a fitted pipeline can be trusted."""

    temperature: Temperature
    conformal: Conformal
    calibration: Witness  # what the calibration nodes look like, in the order of their scores
    valid_accuracy: float  # on these
    own_shift: Mapping[str, Any]  # between these and the test nodes of the graph of training (`shift.shift_data`)
    own_likeness: Likeness | None = None  # and what they count, where there is a shift

    def calibrated(self, said: Prediction) -> Prediction:
        """Return what was said with calibrated probabilities, and logits whose softmax these are."""
        logits = None if said.logits is None else (said.logits / np.float32(self.temperature.value))
        return replace(said, probabilities=self.temperature(said.probabilities), logits=logits)

    def sets(self, said: Prediction, graph: Graph, engine: Engine, coverage: float, *, like: Likeness | None) -> Array:
        """Return which classes are in the set of each row of a calibrated prediction, (R, C) bool.

        With `like` the calibration nodes count by how like those they are that sets are asked for.
        """
        self.conformal.threshold(coverage)  # refuses before anything is computed
        mixed = conformal.diffused(said, graph.adjacency, engine, self.conformal.diffusion)
        if like is None:
            return self.conformal.sets(mixed, coverage)
        own = like.ratio(witness(said, graph, said.rows))
        return self.conformal.weighted_sets(mixed, coverage, like.ratio(self.calibration), own)

    def compare(self, said: Prediction, graph: Graph, rows: Array) -> tuple[dict[str, Any], Likeness | None]:
        """Compare the calibration nodes with `rows`, without labels: the shift, and weights where there is one."""
        other, classes = witness(said, graph, rows), said.probabilities.shape[1]
        found = shift.shift_data(self.calibration, other, classes=classes, valid_accuracy=self.valid_accuracy)
        return found, fit_likeness(self.calibration, other, classes=classes) if found.get("found") else None

    def data(self) -> dict[str, Any]:
        """Return what is no array, as JSON holds it."""
        return {
            "temperature": self.temperature.value,
            "diffusion": self.conformal.diffusion,
            "apart": self.conformal.apart,
            "valid_accuracy": self.valid_accuracy,
            "shift": dict(self.own_shift),
        }

    def arrays(self) -> dict[str, Array]:
        """Return the arrays by name."""
        weights = {} if self.own_likeness is None else {"likeness": self.own_likeness.coefficients}
        return {"scores": self.conformal.scores, **vars(self.calibration), **weights}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Mapping[str, Array]) -> Trust:
        """Return what `data` and `arrays` described."""
        temperature, accuracy_then = float(data["temperature"]), float(data["valid_accuracy"])
        if not temperature > 0:
            raise ValueError(f"the temperature is {temperature}")
        promised = Conformal(arrays["scores"], float(data["diffusion"]), bool(data["apart"]))
        seen = Witness(*(arrays[name] for name in ("confidence", "degree", "predicted")))
        like = Likeness(arrays["likeness"]) if "likeness" in arrays else None
        return cls(Temperature(temperature), promised, seen, accuracy_then, dict(data["shift"]), like)


def fit_trust(said: Prediction, graph: Graph, split: Split, engine: Engine, *, apart: Array, seed: int) -> Trust | None:
    """Fit everything on the validation nodes: those of split.valid choose, those of `apart` are kept for the promise.

    Of the graph's labels those of both are read; None where there are none.
    """
    calibration = apart if len(apart) else split.valid
    if not len(calibration) or graph.labels.ndim > 1:  # a temperature and sets are of classes that exclude each other
        return None
    temperature = fit_temperature(*_known(said, graph, split.valid), seed)
    said = replace(said, probabilities=temperature(said.probabilities))
    diffusion = choose_diffusion(said, graph, split.valid, engine)
    mixed = replace(said, probabilities=conformal.diffused(said, graph.adjacency, engine, diffusion))
    promised = Conformal(conformal.true_scores(*_known(mixed, graph, calibration)), diffusion, apart=bool(len(apart)))
    seen = witness(said, graph, calibration)
    trust = Trust(temperature, promised, seen, ScoredClasses(*_known(said, graph, calibration)).accuracy, {})
    found, like = trust.compare(said, graph, np.setdiff1d(split.test, apart))
    return replace(trust, own_shift=found, own_likeness=like)


def choose_diffusion(said: Prediction, graph: Graph, ids: Array, engine: Engine) -> float:
    """Return the share of the neighbours whose sets are the smallest for `ids`; 0 where not all nodes are predicted."""
    if len(said.rows) < graph.nodes:
        return 0.0
    sizes = {}
    for share in conformal.DIFFUSIONS:
        mixed = replace(said, probabilities=conformal.diffused(said, graph.adjacency, engine, share))
        sizes[share] = conformal.mean_size(*_known(mixed, graph, ids))
    return min(sizes, key=lambda share: sizes[share])  # the first of equals: none


def witness(said: Prediction, graph: Graph, ids: Array) -> Witness:
    """Return what is known of `ids` without their labels."""
    at = np.searchsorted(said.rows, ids)
    return Witness.of(said.probabilities[at], np.diff(graph.adjacency.indptr)[ids])


def needed_trust(trust: Trust | None) -> Trust:
    """Return what sets need, or say that the model has none."""
    if trust is None or not len(trust.conformal.scores):
        raise SettingsError(
            "The model has no validation labels to promise a coverage by: there were none in training, nodes have "
            "several labels, or it was written by a version that did not keep them.\n"
            "Train again, with validation nodes that have one class each."
        )
    return trust


def _known(said: Prediction, graph: Graph, ids: Array) -> tuple[Array, Array]:
    """Return probabilities and labels of some nodes."""
    return said.probabilities[np.searchsorted(said.rows, ids)], graph.labels[ids]
