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

from gamlp.methods.base import FittedMethod, Method, rows_of, scaling_from, scaling_tensors
from gamlp.settings import Settings, checked
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
        """Check them; one that it does not have is refused."""
        return checked(Settings, values, of=self.name, own=SETTINGS)

    def fit(self, graph, split, settings, context):
        """Take the mean of each class."""
        fitted = FittedCentroid(settings, context.source.scaling(graph, settings), context.source)
        rows, labels = fitted.rows(graph, split.train), graph.labels[split.train]
        fitted.centres = np.full((len(graph.classes), rows.shape[1]), np.inf, np.float32)  # of classes never seen
        for at in np.unique(labels):
            fitted.centres[at] = rows[labels == at].mean(axis=0)
        fitted.prediction = fitted.predict(graph, graph.labels)
        return fitted

    def load(self, settings, state, tensors, context):
        """Take up the centres and the scaling."""
        fitted = FittedCentroid(settings, scaling_from(settings, tensors), context.source)
        fitted.centres = tensors["centres"].numpy()
        return fitted


class FittedCentroid(FittedMethod):
    """The centres (C, F)."""

    def __init__(self, settings: Settings, scaling: Any, source: Any) -> None:
        super().__init__()
        self.settings, self.scaling, self.source = settings, scaling, source
        self.centres = np.zeros((0, 0), np.float32)

    def rows(self, graph, nodes):
        """Return the last hop of some nodes."""
        hops = self.source.hops(graph, self.settings, graph.targets, scaling=self.scaling)
        return np.asarray(hops.values[nodes, -1])

    def predict(self, graph, known, *, candidates=None, rows=None):
        """Compare every row with every centre."""
        wanted = rows_of(graph, rows)
        distance = ((self.rows(graph, wanted)[:, None] - self.centres) ** 2).sum(axis=2)
        return Prediction(wanted, softmax(-distance, axis=1).astype(np.float32))

    def tensors(self):
        """Return the centres and what the scaling measured; there is nothing else to keep."""
        return {"centres": torch.from_numpy(self.centres), **scaling_tensors(self.scaling)}
