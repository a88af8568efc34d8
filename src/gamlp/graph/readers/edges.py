"""Edge lists from files: Parquet and text in a stream, .npy and .npz as arrays.

A stream is taken in groups of at least N edges, so hashing the N ids costs at most one step more per edge end, and only
one group stands in memory beside the numbers kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError, ShapeError
from gamlp.graph.build.ids import NodeIds, id_values
from gamlp.graph.readers.columns import TableFile, open_table
from gamlp.graph.readers.npz_arrays import members, read_member
from gamlp.storage.files import Array, read_array

SOURCES = ("source", "src", "from")
TARGETS = ("target", "dst", "to")
GROUP = 2**20


@dataclass(frozen=True)
class EdgeColumns:
    """Names of the columns, where they are not the usual ones."""

    source: str | None = None
    target: str | None = None
    weight: str | None = None


Edges = tuple[Array, Array, Array | None]  # source (E,), target (E,), weight (E,)


def read_edges(path: Path, ids: NodeIds, *, columns: EdgeColumns) -> Edges:
    """Read an edge list; ids become rows of the node table."""
    if path.suffix.lower() in (".npy", ".npz"):
        source, target, weights = read_arrays(path)
        return (*(rows_of(ends, ids, path) for ends in (source, target)), weights)  # type: ignore[return-value]
    table = open_table(path)
    chosen = choose(table, columns)
    try:
        return read_stream(table, chosen, ids, "string" if ids.are_words else "int64")
    except FormatError:  # a word among integer ids: read as words, to name it and its line
        if ids.are_words or not table.is_text:
            raise
        return read_stream(table, chosen, ids, "string")


def choose(table: TableFile, columns: EdgeColumns) -> list[str]:
    """Return the names of source, target and, if there is one, weight."""
    weight = table.pick(columns.weight, ("weight",))
    others = [name for name in table.names if name != weight]
    source = table.pick(columns.source, SOURCES)
    target = table.pick(columns.target, TARGETS)
    if (source is None or target is None) and len(others) < 2:
        raise FormatError(
            f"{table.path} has the columns {', '.join(table.names)}.\nExpected at least two: source and target."
        )
    if source is None or target is None or source == target:
        source, target = others[0], others[1]
    return [source, target] if weight is None else [source, target, weight]


def read_stream(table: TableFile, chosen: list[str], ids: NodeIds, kind: str) -> Edges:
    """Read a table of edges group by group."""
    types = dict(zip(chosen, (kind, kind, "float32"), strict=False))
    small = np.int32 if ids.nodes < 2**31 else np.int64
    parts: tuple[list[Array], ...] = tuple([np.empty(0, kept)] for kept in (small, small, np.float32)[: len(chosen)])
    start = 0
    for group in grouped(table.batches(chosen, types), max(GROUP, ids.nodes)):
        for part, name in zip(parts[:2], chosen[:2], strict=True):
            column = id_values(group.column(name), path=table.path)
            rows = ids.rows(column, path=table.path, place=lambda at, start=start: table.line(start + at))  # type: ignore[misc]
            part.append(rows.astype(small))
        if len(chosen) == 3:
            parts[2].append(as_weights(group.column(chosen[2]), table.path))
        start += group.num_rows
    source, target, *weights = (np.concatenate(part) for part in parts)
    return source, target, weights[0] if weights else None


def grouped(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Join batches to tables of at least `rows` rows; the last may be smaller."""
    import pyarrow as pa

    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= rows:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def as_weights(column: Any, path: Path) -> Array:
    """Return weights as float32; an empty one is NaN, which the graph's check refuses."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return np.asarray(pc.cast(column.combine_chunks(), pa.float32(), safe=False).to_numpy(zero_copy_only=False))
    except pa.ArrowException as error:
        raise FormatError(f"{path}: the weights are no numbers ({error}).\nGive one number ≥ 0 per edge.") from error


def read_arrays(path: Path) -> Edges:
    """Read .npy, (E, 2) or (2, E), or .npz with source, target and perhaps weight, or with edge_index (2, E)."""
    if path.suffix.lower() == ".npy":
        return (*two_columns(read_array(path, memory_map=True), path), None)
    held = members(path)
    weights = read_member(path, "weight") if "weight" in held else None
    if "edge_index" in held:
        return (*two_columns(read_member(path, "edge_index"), path), weights)
    return read_member(path, "source"), read_member(path, "target"), weights


def two_columns(edges: Array, path: Path) -> tuple[Array, Array]:
    """Split (E, 2) or (2, E) into sources and targets; (2, 2) is (E, 2) in a .npy file, (2, E) as edge_index."""
    if edges.ndim != 2 or 2 not in edges.shape:
        raise ShapeError(f"{path}: the edges have the shape {edges.shape}.\nExpected (edges, 2) or (2, edges).")
    by_rows = edges.shape[1] == 2 if path.suffix.lower() == ".npy" else edges.shape[0] != 2
    return (edges[:, 0], edges[:, 1]) if by_rows else (edges[0], edges[1])


def rows_of(ends: Array, ids: NodeIds, path: Path) -> Array:
    """Look up the ids of an array."""
    import pyarrow as pa

    if ends.dtype.kind not in "iuSU" or ends.ndim != 1:
        raise FormatError(f"{path}: edge ends are {ends.ndim}-dimensional {ends.dtype}.\nExpected a row of node ids.")
    column = pa.array(np.ascontiguousarray(ends) if ends.dtype.kind in "iu" else ends.astype(str).tolist())
    return ids.rows(column, path=path, place=lambda at: f"edge {at:,}")
