"""Classify the nodes of a graph, of any size: GAMLP with reliable label utilization, and what it is compared with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "GAMLPClassifier": "gamlp.classifier",
    "GamlpError": "gamlp.errors",
    "Graph": "gamlp.graph.graph",
    "Normalization": "gamlp.propagate.normalize",
    "Settings": "gamlp.settings",
    "Split": "gamlp.graph.splits",
    "SplitRule": "gamlp.graph.splits",
    "read_graph": "gamlp.graph.readers.datasets",
}
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
]

if TYPE_CHECKING:
    from gamlp.classifier import GAMLPClassifier
    from gamlp.errors import GamlpError
    from gamlp.graph.graph import Graph
    from gamlp.graph.readers.datasets import read_graph
    from gamlp.graph.splits import Split, SplitRule
    from gamlp.propagate.normalize import Normalization
    from gamlp.settings import Settings


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `import gamlp` stays quick."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'gamlp' has no attribute '{name}'")
