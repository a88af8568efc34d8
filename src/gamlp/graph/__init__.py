"""READ: files and other libraries' objects become a Graph, checked once, here.

Names are looked up when they are first used, so that importing this package loads neither scipy nor pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamlp.lazy import lazy_imports

if TYPE_CHECKING:
    from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero
    from gamlp.graph.graph import Adjacency, Graph
    from gamlp.graph.hetero import HeteroGraph
    from gamlp.graph.readers.convert import from_networkx, from_pyg, from_pyg_hetero, from_scipy
    from gamlp.graph.readers.datasets import describe_datasets, load_dataset, read_graph
    from gamlp.graph.readers.tables import read_hetero_tables, read_tables
    from gamlp.graph.splits import Split, SplitRule
    from gamlp.graph.store import load_graph, save_graph


__all__ = [
    "Adjacency", "Graph", "HeteroGraph", "RelationParts", "Split", "SplitRule", "TypeParts", "assemble_hetero",
    "describe_datasets", "from_networkx", "from_pyg", "from_pyg_hetero", "from_scipy", "load_dataset", "load_graph",
    "read_graph", "read_hetero_tables", "read_tables", "save_graph",
]  # fmt: skip

__getattr__ = lazy_imports(__name__)
