"""What makes a message-passing method: a `Network`, its layers and what they read of a graph; all else is shared."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from gamlp.graph.graph import Graph
from gamlp.message_passing import sampled, views
from gamlp.message_passing.features import scaled
from gamlp.message_passing.settings import Options
from gamlp.message_passing.sparse import drop
from gamlp.methods.registry import BASES
from gamlp.propagate.scaling import Scaling
from gamlp.storage.files import Array


class Network(nn.Module):
    """Made as Network(view, classes, options); `entry` is the layer that reads the features."""

    entry: Any
    normalize: ClassVar[Callable[[views.Matrix], views.Matrix]] = views.symmetric
    sampler: ClassVar[Callable[[Any], sampled.Sampler]] = sampled.whole  # what an epoch trains on
    takes_labels: ClassVar[bool] = False  # whether some training labels are input, and the loss falls on the others
    penalty: torch.Tensor | None = None  # (n,) what the last pass adds to the loss of each node

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options

    @classmethod
    def source(cls, graph: Graph, options: Options, scaling: Scaling, device: str) -> Any:
        """Return the graph as it is trained on."""
        features = scaled(np.asarray(graph.features), scaling)
        return sampled.Source(features, views.matrix_of(graph.adjacency), cls.normalize, options, device)

    def drop(self, hidden: torch.Tensor) -> torch.Tensor:
        """Apply dropout while training."""
        return drop(hidden, self.options.dropout, training=self.training)

    def drop_features(self, features: torch.Tensor) -> torch.Tensor:
        """Apply the dropout of the features while training, where they are dense."""
        return drop(features, self.options.on_features, training=self.training)

    def seen(self, view: Any, labels: Array) -> Any:
        """Return a view with these labels (n,) as input, −1 = none, if it takes any."""
        return view.with_given(torch.from_numpy(labels)) if self.takes_labels else view


def build(
    name: str, graph: Graph, classes: int, *, options: Options, scaling: Scaling, device: str
) -> tuple[Network, Any]:
    """Return a method's network, by torch's own random state, and the graph as it is trained on."""
    made: type[Any] = resolve_name(f"gamlp.message_passing.{BASES[name].network}")
    if made.normalize is views.looped:
        views.check_weights(name, graph)
    source = made.source(graph, options, scaling, device)
    return made(source.view, classes, options).to(device), source
