"""What comes into the classifier: features, labels, adjacency and random state, each checked once, here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from gamlp.errors import InputError, LabelError, NotFiniteError, SettingsError, ShapeError
from gamlp.graph.build.assemble import as_indicators, is_unknown
from gamlp.graph.encode import Columns
from gamlp.graph.graph import Adjacency, Graph
from gamlp.storage.files import Array


def finite(X: Array) -> Array:
    """Refuse NaN and infinite features, naming the first; return the others."""
    if not np.isfinite(X).all():
        row, column = (int(at[0]) for at in np.nonzero(~np.isfinite(X)))
        found = "NaN" if np.isnan(X[row, column]) else "infinity, or too large for float32"
        raise NotFiniteError(
            f"Feature {column} of row {row:,} of X is {found}.\nFill or drop what is not a finite number first."
        )
    return X


def labels_for(y: Any, nodes: int) -> Array:
    """Return one label per node as a flat array; of a column vector with scikit-learn's warning."""
    if y is None:
        raise LabelError(
            "GAMLPClassifier requires y to be passed, but the target y is None.\n"
            "Give one label per row; with an adjacency, −1 where it is unknown."
        )
    try:
        flat: Array = np.asarray(column_or_1d(as_values(y), warn=True))
    except ValueError as error:
        raise ShapeError(str(error)) from error
    if len(flat) != nodes:
        raise ShapeError(f"Found {nodes:,} rows of X and {len(flat):,} labels.\nGive one label per row.")
    return flat


def several_labels(y: Any, nodes: int, width: int | None = None) -> Array | None:
    """Return several labels a node, (N, T) int8, if y is such: two dimensions and more than one column; else None."""
    y = as_values(y)
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if len(shape) != 2 or shape[1] < 2:
        return None
    labels, _ = as_indicators(np.asarray(y.toarray() if hasattr(y, "toarray") else y))
    if len(labels) != nodes or width not in (None, labels.shape[1]):
        wanted = f"{nodes:,} rows" + ("" if width is None else f" and {width} labels")
        raise ShapeError(f"y has the shape {labels.shape}, expected are {wanted}.\nGive a row per row of X.")
    return labels


def discrete(y: Array) -> Array:
    """Return known labels as numbers or words, no longer as objects; what is no class is refused."""
    y = np.array(y.tolist()) if y.dtype == object else y
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise LabelError("y contains NaN or infinity.\nEvery row needs a class; with an adjacency, −1 is unknown.")
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise LabelError(str(error)) from error
    return y


def unknown(y: Array) -> Array:
    """Say which labels are not known: −1 and NaN, or None, "" and "-1" among words."""
    if y.dtype.kind in "OUS":
        return np.array([is_unknown(value) for value in y.tolist()], dtype=bool)
    return np.asarray((y == -1) | np.isnan(y))


def as_graph(X: Any) -> tuple[Graph | None, bool]:
    """Return the graph that X is, ours or PyTorch Geometric's, or None; and whether its classes are numbers."""
    if isinstance(X, Graph):
        return X, False
    if not hasattr(X, "edge_index") and not hasattr(X, "edge_types"):
        return None, False
    from gamlp.graph.readers.datasets import read_graph

    return read_graph(X), True


def class_values(graph: Graph, *, numbered: bool) -> Array:
    """Return the classes of a graph, as numbers where its labels are."""
    return np.array([int(name) for name in graph.classes] if numbered else graph.classes)


def as_values(values: Any) -> Any:
    """Read what numpy cannot, a DuckDB relation for one, as an Arrow table, or as one column of it."""
    from gamlp.graph.readers.table import is_stream, stream_content

    if not is_stream(values) or hasattr(values, "__array__"):
        return values
    content = stream_content(values, "the table")
    return content.column(0) if content.num_columns == 1 else content


def table_features(X: Any, learned: Mapping[str, Columns] | None) -> tuple[Columns, Array]:
    """Return how the columns of a table become features, as `learned` or by themselves, and the features (N, F)."""
    from gamlp.graph.readers.nodes import open_features

    table = open_features(X, encoding=None if learned is None else learned.get(""))
    features = table.feature_matrix()
    assert table.encoder is not None and features is not None
    return table.encoder, features


def as_adjacency(adjacency: Any, X: Array) -> Adjacency:
    """Take edges that fit the rows of X: an adjacency, a table of edges or an edge_index (2, E); None is no edge."""
    if adjacency is None:
        return Adjacency(np.zeros(len(X) + 1, np.int64), np.zeros(0, np.int32))
    if isinstance(adjacency, Adjacency):
        adjacency.check()
        return adjacency
    if is_edges(adjacency, len(X)):
        from gamlp.graph.build.csr import adjacency_from_edges
        from gamlp.graph.build.ids import NodeIds
        from gamlp.graph.readers.edges import open_edges

        source, target, weights = open_edges(adjacency).between(NodeIds(len(X)), NodeIds(len(X))).read()
        return adjacency_from_edges(source, target, nodes=len(X), weights=weights, symmetric=True)
    from gamlp.graph.readers.convert import from_scipy

    return from_scipy(adjacency, X).adjacency


def is_edges(given: Any, nodes: int) -> bool:
    """Tell edges, a table or (2, E), from an adjacency (N, N); a square table is edges where its columns say so."""
    from gamlp.graph.readers.edges import SOURCES, TARGETS
    from gamlp.graph.readers.table import is_stream, open_table

    shape = getattr(given, "shape", None)
    if is_stream(given):
        table = open_table(given, "the edges")
        named = table.pick(None, SOURCES) is not None and table.pick(None, TARGETS) is not None
        return named or (table.rows, len(table.names)) != (nodes, nodes)
    return shape is not None and len(shape) == 2 and shape[0] == 2 and tuple(shape) != (nodes, nodes)


def node_count(adjacency: Any) -> int:
    """Return how many nodes an adjacency has; edges alone do not say it."""
    if isinstance(adjacency, Adjacency):
        return adjacency.nodes
    shape = np.shape(adjacency)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            f"There are no features, and the adjacency has the shape {shape}.\n"
            "Give it as a matrix (N, N): edges alone do not say how many nodes there are."
        )
    return int(shape[0])


def seed_from(random_state: Any) -> int:
    """Return a whole number as it is; draw one from anything else that scikit-learn takes."""
    if not isinstance(random_state, int | np.integer):
        return int(check_random_state(random_state).randint(2**31 - 1))
    if random_state < 0:
        raise SettingsError(f"random_state is {random_state}.\nExpected 0 or more, a RandomState, or None.")
    return int(random_state)


def storable(value: Any) -> Any:
    """Return a parameter as JSON holds it; a random generator has no content to keep, and becomes None."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.random.RandomState):
        return None
    return {key: storable(each) for key, each in value.items()} if isinstance(value, dict) else value
