"""A method of one's own: the nearest class centre on the last hop.

Register it by one entry of FAMILIES in `gamlp/methods/registry.py`:

    "gamlp.methods.centroid:Centroid": {"centroid": Base("nearest class centre of the propagated features")},

and use it: gamlp train debian --method centroid
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import softmax

from gamlp.methods.base import FittedMethod, Method
from gamlp.propagate.scaling import Scaling
from gamlp.settings import Settings, settings_from
from gamlp.train.prediction import Prediction

SETTINGS = ("feature_scaling", "hops", "normalization", "self_loops", "correct_and_smooth", "featureless")


class Centroid(Method):
    """p(c) ∝ exp(−|xᴷ − centre_c|²)."""

    on_hops: ClassVar[bool] = False

    def setting_names(self):
        """It takes the settings of propagation."""
        return SETTINGS

    def shared(self, values):
        """Of a recipe too."""
        return {key: value for key, value in values.items() if key in SETTINGS}

    def settings_from(self, values):
        """Check them; all others stay as they are by default."""
        return settings_from({**values, "combiner": "last"})

    def fit(self, graph, split, settings, context):
        """Take the mean of each class."""
        fitted = FittedCentroid(settings, context.source.scaling(graph, settings), context.source)
        rows, labels = fitted.rows(graph, split.train), graph.labels[split.train]
        fitted.centres = np.stack([rows[labels == at].mean(axis=0) for at in range(len(graph.classes))])
        fitted.prediction = fitted.predict(graph, graph.labels)
        return fitted

    def load(self, settings, state, tensors, context):
        """Take up the centres and the scaling."""
        measured = {name: value.numpy() for name, value in tensors.items() if name != "centres"}
        fitted = FittedCentroid(settings, Scaling(settings.feature_scaling, **measured), context.source)
        fitted.centres = tensors["centres"].numpy()
        return fitted


class FittedCentroid(FittedMethod):
    """The centres (C, F)."""

    def __init__(self, settings: Settings, scaling: Scaling, source: Any) -> None:
        super().__init__()
        self.settings, self.scaling, self.source = settings, scaling, source
        self.centres = np.zeros((0, 0), np.float32)

    def rows(self, graph, nodes):
        """Return the last hop of some nodes."""
        hops = self.source.hops(graph, self.settings, graph.targets, scaling=self.scaling)
        return np.asarray(hops.values[nodes, -1])

    def predict(self, graph, known, *, candidates=None, rows=None):
        """Compare every row with every centre."""
        wanted = np.arange(graph.nodes) if graph.targets is None else graph.targets
        wanted = wanted if rows is None else rows
        distance = ((self.rows(graph, wanted)[:, None] - self.centres) ** 2).sum(axis=2)
        return Prediction(wanted, softmax(-distance, axis=1).astype(np.float32))

    def state(self):
        """Everything is in the tensors."""
        return {}

    def tensors(self):
        """Return the centres and what the scaling measured."""
        arrays = {"centres": self.centres, **self.scaling.arrays()}
        return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in arrays.items()}
