"""Node tables from files: ids, labels, split, and every other column a feature.

A column of lists gives as many features as the lists are long; `features` from a file of its own takes the place of
all columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError, NotFiniteError, ShapeError
from gamlp.graph.build.assemble import as_split, named_split
from gamlp.graph.build.ids import NodeIds, node_ids
from gamlp.graph.readers.columns import TableFile, is_number, open_table
from gamlp.graph.readers.npz_arrays import members, read_member
from gamlp.graph.splits import Split
from gamlp.storage.files import Array, read_array

IDS = ("id", "node", "name")
NO_FEATURES = (
    "Every node needs at least one: numeric columns of the node table, or a .npy file of its own "
    "(--features) with one row per node."
)


@dataclass(frozen=True)
class Nodes:
    """What a node table says; features are None where it has none."""

    ids: NodeIds
    features: Array | None = None
    labels: Any = None
    split: Split | None = None
    feature_names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class NodeColumns:
    """Names of the columns, where they are not the usual ones."""

    id: str | None = None
    label: str | None = None
    split: str | None = None


def read_nodes(path: Path, *, columns: NodeColumns, with_features: bool) -> Nodes:
    """Read a node table; without `with_features` its other columns are left alone."""
    kind = path.suffix.lower()
    if kind == ".npz":
        return read_npz_nodes(path, with_features=with_features)
    if kind == ".npy":
        features = matrix(read_array(path, memory_map=True), path)
        return Nodes(NodeIds(len(features)), features)
    table = open_table(path)
    id_ = table.pick(columns.id, IDS)
    label, split = table.pick(columns.label, ("label",)), table.pick(columns.split, ("split",))

    def place(at: int) -> str:
        return f"{path}, {table.line(at)}"

    content = table.read(words=[name for name in (id_, split) if name is not None])
    nodes, others = content.num_rows, [name for name in table.names if name not in (id_, label, split)]
    found: tuple[Array | None, tuple[str, ...] | None] = (None, None)
    if with_features and others:
        found = stack_columns(content, others, table)
    return Nodes(
        ids=NodeIds(nodes) if id_ is None else node_ids(content.column(id_), path=path, guessed=table.is_text),
        features=found[0],
        labels=None if label is None else label_values(content.column(label)),
        split=None if split is None else named_split(content.column(split).to_pylist(), place=place),
        feature_names=found[1],
    )


def read_features(path: Path) -> tuple[Array, tuple[str, ...] | None]:
    """Read the features alone: .npy (N, F), .npz with `features`, or a table of numbers only."""
    if path.suffix.lower() == ".npy":
        return matrix(read_array(path, memory_map=True), path), None
    if path.suffix.lower() == ".npz":
        return matrix(read_member(path, "features"), path), None
    table = open_table(path)
    return stack_columns(table.read(), list(table.names), table)


def matrix(features: Array, path: Path) -> Array:
    """Refuse features that are not a table."""
    if features.ndim != 2:
        raise ShapeError(f"{path}: the features have the shape {features.shape}.\nExpected (nodes, features).")
    return features


def read_npz_nodes(path: Path, *, with_features: bool) -> Nodes:
    """Read a .npz of features, labels, and perhaps ids, train, valid and test."""
    import pyarrow as pa

    held = {key: read_member(path, key) for key in members(path) if key != "features" or with_features}
    if not held.keys() & {"features", "labels", "ids"}:
        raise FormatError(f"{path} holds {', '.join(sorted(held)) or 'nothing'}.\nExpected features, labels or ids.")
    features = matrix(held["features"], path) if "features" in held else None
    nodes = len(next(held[key] for key in ("features", "labels", "ids") if key in held))
    ids = NodeIds(nodes)
    if "ids" in held:
        ids = node_ids(pa.array(held["ids"].tolist()), path=path, guessed=False)
    sets = [held.get(key, np.empty(0, np.int64)) for key in ("train", "valid", "test")]
    split = as_split(*sets, nodes=nodes) if "train" in held else None
    return Nodes(ids, features, held.get("labels"), split)


def stack_columns(content: Any, names: list[str], table: TableFile) -> tuple[Array, tuple[str, ...] | None]:
    """Return the columns side by side as (N, F) float32, and their names; a file without header has none."""
    blocks = [column_values(content.column(name).combine_chunks(), name, table) for name in names]
    widths = np.cumsum([0] + [block.shape[1] for block in blocks])
    features = np.empty((content.num_rows, int(widths[-1])), dtype=np.float32)
    for block, start in zip(blocks, widths[:-1], strict=True):
        features[:, start : start + block.shape[1]] = block
    return features, feature_names(names, [block.shape[1] for block in blocks]) if table.header else None


def feature_names(names: list[str], widths: list[int]) -> tuple[str, ...]:
    """Name every feature: a column of numbers by its own name, the values of a column of lists name[0], name[1], …."""
    return tuple(
        each
        for name, width in zip(names, widths, strict=True)
        for each in ([name] if width == 1 else [f"{name}[{at}]" for at in range(width)])
    )


def column_values(column: Any, name: str, table: TableFile) -> Array:
    """Return one column as (N, width) float32; what is no number is refused with its column, value and place."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return list_values(column, name, table)
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    try:
        numbers = pc.cast(column, pa.float32(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        at, value = first_word(column.to_pylist())
        raise FormatError(
            f"{table.path}: column '{name}' is no feature: {table.line(at)} holds {value!r}.\n"
            "Features are numbers: drop this column or encode it as numbers (one column per value, for one). "
            f"Where it is the label, say so: --column label={name}."
        ) from None
    check_finite(np.asarray(numbers), name, table)
    return np.asarray(numbers).reshape(-1, 1)


def first_word(values: list[Any]) -> tuple[int, Any]:
    """Return the first value that is no number, and its row."""
    return next(
        ((at, value) for at, value in enumerate(values) if value is not None and not is_number(str(value))),
        (0, values[0]),
    )


def list_values(column: Any, name: str, table: TableFile) -> Array:
    """Return a column of lists of one length as (N, length)."""
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)
    if len(lengths) and (lengths != lengths[0]).any():
        at = int(np.argmax(lengths != lengths[0]))
        raise ShapeError(
            f"{table.path}: column '{name}' has {lengths[0]} values in its first row, {max(lengths[at], 0)} in "
            f"{table.line(at)}.\nEvery node needs as many features as the others."
        )
    width = int(lengths[0]) if len(lengths) else 0
    flat = column_values(pc.list_flatten(column), name, table) if width > 0 else np.empty(0, np.float32)
    return flat.reshape(len(column), max(width, 0))


def check_finite(numbers: Array, name: str, table: TableFile) -> None:
    """Refuse empty, NaN and infinite values."""
    finite = np.isfinite(numbers)
    if not finite.all():
        at = int(np.argmin(finite))
        raise NotFiniteError(
            f"{table.path}: value {at:,} of column '{name}' is {numbers[at]} or empty.\n"
            "Features must be finite numbers: fill or drop missing values first."
        )


def label_values(column: Any) -> Array:
    """Return labels for encoding: numbers with NaN where empty, or objects."""
    import pyarrow as pa

    column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type) or pa.types.is_null(column.type):
        return np.array(column.to_pylist(), dtype=object)
    return np.asarray(column.to_numpy(zero_copy_only=False))
