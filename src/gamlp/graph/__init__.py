"""READ: files and other libraries' objects become a Graph, checked once, here.

Names are looked up when they are first used, so that importing this package loads neither scipy nor pyarrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gamlp.graph.convert import from_networkx, from_pyg, from_scipy
    from gamlp.graph.datasets import describe_datasets, load_dataset, read_graph
    from gamlp.graph.graph import Adjacency, Graph
    from gamlp.graph.hetero import HeteroGraph
    from gamlp.graph.hetero_assemble import RelationParts, TypeParts, assemble_hetero
    from gamlp.graph.hetero_pyg import from_pyg_hetero
    from gamlp.graph.hetero_tables import read_hetero_tables
    from gamlp.graph.splits import Split, SplitRule
    from gamlp.graph.store import load_graph, save_graph
    from gamlp.graph.tables import read_tables

_HOME = {
    "Adjacency": "graph",
    "Graph": "graph",
    "HeteroGraph": "hetero",
    "RelationParts": "hetero_assemble",
    "Split": "splits",
    "SplitRule": "splits",
    "TypeParts": "hetero_assemble",
    "assemble_hetero": "hetero_assemble",
    "describe_datasets": "datasets",
    "from_networkx": "convert",
    "from_pyg": "convert",
    "from_pyg_hetero": "hetero_pyg",
    "from_scipy": "convert",
    "load_dataset": "datasets",
    "load_graph": "store",
    "read_graph": "datasets",
    "read_hetero_tables": "hetero_tables",
    "read_tables": "tables",
    "save_graph": "store",
}

__all__ = [
    "Adjacency",
    "Graph",
    "HeteroGraph",
    "RelationParts",
    "Split",
    "SplitRule",
    "TypeParts",
    "assemble_hetero",
    "describe_datasets",
    "from_networkx",
    "from_pyg",
    "from_pyg_hetero",
    "from_scipy",
    "load_dataset",
    "load_graph",
    "read_graph",
    "read_hetero_tables",
    "read_tables",
    "save_graph",
]


def __getattr__(name: str) -> Any:
    """Import the module that `name` lives in."""
    if name not in _HOME:
        raise AttributeError(f"module 'gamlp.graph' has no attribute {name!r}")
    return getattr(import_module(f"gamlp.graph.{_HOME[name]}"), name)
