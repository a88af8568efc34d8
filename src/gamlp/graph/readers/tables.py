"""A graph from files of one's own: a list of edges, a table of nodes, perhaps a file of features.

    edges   .parquet .csv .tsv   columns source, target (src/dst, from/to, or the first two), perhaps weight
            .npy                 (E, 2) or (2, E)          .npz   source, target, perhaps weight; or edge_index
    nodes   .parquet .csv .tsv   id (or node, name; without: the row), label, split; every other column is a feature
            .npz                 features, labels, perhaps ids, train, valid, test
    features  .npy               (N, F), mapped where it is float32: then it need not fit in memory

Everything is checked here, with file, column and line in the message.
"""

from __future__ import annotations

from pathlib import Path

from gamlp.errors import ShapeError
from gamlp.graph.build.assemble import assemble
from gamlp.graph.build.ids import NodeIds
from gamlp.graph.graph import Graph
from gamlp.graph.readers.columns import kind_of
from gamlp.graph.readers.edges import EdgeColumns, read_edges
from gamlp.graph.readers.nodes import NO_FEATURES, NodeColumns, Nodes, read_features, read_nodes


def read_tables(
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
) -> Graph:
    """Read a graph from files; source, target, id, label, split and weight name columns that are not the usual ones."""
    edges = Path(edges)
    table = gather(
        None if nodes is None else Path(nodes),
        None if features is None else Path(features),
        NodeColumns(id=id, label=label, split=split),
    )
    if table.features is None:
        raise ShapeError(f"There are no features in {nodes or 'the edge list'}.\n{NO_FEATURES}")
    columns = EdgeColumns(source=source, target=target, weight=weight)
    starts, ends, weights = read_edges(edges, table.ids, columns=columns)
    return assemble(
        starts,
        ends,
        features=table.features,
        labels=table.labels,
        weights=weights,
        split=table.split,
        names=table.ids.names,
        name=edges.name.removesuffix(".gz").removesuffix(kind_of(edges)),
        symmetric=not directed,
        feature_names=table.feature_names,
    )


def gather(nodes: Path | None, features: Path | None, columns: NodeColumns) -> Nodes:
    """Bring node table and features together."""
    own, names = (None, None) if features is None else read_features(features)
    if nodes is None:
        return Nodes(NodeIds(0 if own is None else len(own)), own, feature_names=names)
    table = read_nodes(nodes, columns=columns, with_features=own is None)
    if own is None:
        return table
    if len(own) != table.ids.nodes:
        raise ShapeError(
            f"{features} has {len(own):,} rows, {nodes} {table.ids.nodes:,} nodes.\n"
            "Every node needs one row of features, in the order of the node table."
        )
    return Nodes(table.ids, own, table.labels, table.split, names)
