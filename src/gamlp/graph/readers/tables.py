"""A graph from files of one's own: a list of edges, a table of nodes, perhaps a file of features.

    edges   .parquet .csv .tsv   columns source, target (src/dst, from/to, or the first two), perhaps weight
            .npy                 (E, 2) or (2, E)          .npz   source, target, perhaps weight; or edge_index
    nodes   .parquet .csv .tsv   id (or node, name; without: the row), label, split; every other column is a feature
            .npz                 features, labels, perhaps ids, train, valid, test
    features  .npy               (N, F), mapped where it is float32: then it need not fit in memory; or a table

Everything is checked here, with file, column and line in the message. `gamlp.graph.build.import_directory` writes the
same files to a graph directory within a memory limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gamlp.errors import ShapeError
from gamlp.graph.build.assemble import assemble
from gamlp.graph.graph import Graph
from gamlp.graph.readers.edges import EdgeColumns, EdgeList, open_edges
from gamlp.graph.readers.nodes import NO_FEATURES, NodeColumns, NodeTable, open_nodes
from gamlp.graph.readers.table import kind_of


@dataclass(frozen=True, eq=False)
class GraphFiles:
    """Nodes and edges in files that are open, but not read."""

    name: str
    nodes: NodeTable
    edges: EdgeList
    directed: bool = False

    @property
    def key(self) -> str:
        """Say what is read: another key, another graph."""
        return f"{self.nodes.key} {self.edges.key} {self.directed}"

    def read(self) -> Graph:
        """Read the graph into memory; a matrix of features is mapped."""
        ids, features = self.nodes.ids(), self.nodes.feature_matrix()
        source, target, weights = self.edges.between(ids, ids).read()
        labels, classes = self.nodes.labels()
        return assemble(
            source,
            target,
            features=features,
            labels=labels,
            classes=classes,
            weights=weights,
            split=self.nodes.split(),
            names=self.nodes.names(),
            name=self.name,
            symmetric=not self.directed,
            feature_names=self.nodes.feature_names,
        )


def read_tables(edges: Path, nodes: Path | None = None, **options: Any) -> Graph:
    """Read a graph from files, with the options of `open_tables`."""
    return open_tables(edges, nodes, in_memory=True, **options).read()


def open_tables(
    edges: Path,
    nodes: Path | None = None,
    *,
    features: Path | None = None,
    source: str | None = None,
    target: str | None = None,
    id: str | None = None,  # noqa: A002
    label: str | None = None,
    split: str | None = None,
    weight: str | None = None,
    directed: bool = False,
    in_memory: bool = False,
) -> GraphFiles:
    """Open files; source, target, id, label, split and weight name columns that are not the usual ones."""
    edges, nodes = Path(edges), None if nodes is None else Path(nodes)
    columns = NodeColumns(id=id, label=label, split=split)
    table = open_nodes(nodes, None if features is None else Path(features), columns, in_memory=in_memory)
    if table.features is None:
        raise ShapeError(f"There are no features in {nodes or 'the edge list'}.\n{NO_FEATURES}")
    return GraphFiles(
        name=edges.name.removesuffix(".gz").removesuffix(kind_of(edges)),
        nodes=table,
        edges=open_edges(edges, EdgeColumns(source=source, target=target, weight=weight)),
        directed=directed,
    )
