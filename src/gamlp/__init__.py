"""Classify the nodes of a graph, of any size: GAMLP with reliable label utilization, and what it is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamlp.lazy import lazy_imports

__version__ = "0.2.0.dev0"

__all__ = [
    "GAMLPClassifier",
    "GamlpError",
    "Graph",
    "Normalization",
    "Settings",
    "Split",
    "SplitRule",
    "__version__",
    "read_graph",
    "register_combiner",
    "register_method",
]

if TYPE_CHECKING:
    from gamlp.classifier import GAMLPClassifier
    from gamlp.errors import GamlpError
    from gamlp.graph.graph import Graph
    from gamlp.graph.readers.datasets import read_graph
    from gamlp.graph.splits import Split, SplitRule
    from gamlp.methods.registry import register_method
    from gamlp.model.registry import register_combiner
    from gamlp.propagate.normalize import Normalization
    from gamlp.settings import Settings

__getattr__ = lazy_imports(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
