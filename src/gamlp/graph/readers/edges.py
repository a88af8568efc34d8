"""Edge lists from files and objects, as a stream that can be begun again: tables and arrays alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamlp.errors import FormatError, ShapeError
from gamlp.graph.build.assemble import plain
from gamlp.graph.build.ids import NodeIds, as_integers, spelled
from gamlp.graph.encode.columns import listed
from gamlp.graph.readers.npz_arrays import members, read_member
from gamlp.graph.readers.table import ArrayTable, Table, file_key, is_stream, open_table
from gamlp.progress import progress
from gamlp.storage.files import Array, read_array

if TYPE_CHECKING:
    from gamlp.graph.build.sorting import Edges

SOURCES = ("source", "src", "from", "source_id", "src_id", "from_id", "id_1", "id1", "node_1", "node1")
TARGETS = ("target", "dst", "to", "target_id", "dst_id", "to_id", "id_2", "id2", "node_2", "node2")
SAMPLE = 2**14  # edges


@dataclass(frozen=True, eq=False)
class EdgeList:
    """The edges of a table, from rows of one node table to rows of another, or of the same."""

    table: Table
    columns: tuple[str, ...]  # source, target, perhaps weight
    sources: NodeIds
    targets: NodeIds

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        return len(self.columns) == 3

    @property
    def estimate(self) -> int | None:
        """How many edges there are; None where only reading would tell."""
        return None if self.table.is_text else self.table.rows

    @property
    def key(self) -> str:
        """Say what is read: another key, other edges."""
        return f"{file_key(self.table.path)} {self.columns}"

    @property
    def roles(self) -> str:
        """Say what was taken for what, in a few words, and what was not read."""
        words = [f"{role} = {name}" for role, name in zip(("source", "target", "weight"), self.columns, strict=False)]
        unread = [name for name in self.table.names if name not in self.columns]
        words += [f"not read: {listed(unread)}"] if unread else []
        return f"{self.table.path.name}: {', '.join(words)}"

    def ends(self) -> Any:
        """Return every different end of an edge, in order: whole numbers, or strings where some end is none."""
        found, columns = pa.array([], pa.string()), self.columns[:2]
        with progress(f"nodes of {self.table.path.name}", total=self.estimate) as advance:
            for _, batch in self.table.chunks(columns, dict.fromkeys(columns, "string")):
                parts = [spelled(column) for column in batch.columns]
                found = pc.unique(pa.chunked_array([found, *parts]))
                advance(batch.num_rows)
        found = as_integers(found.drop_null())
        return found.take(pc.array_sort_indices(found))

    def sample(self) -> Any:
        """Return the different ends of the first edges, as strings."""
        ends = self.columns[:2]
        for _, batch in self.table.chunks(ends, dict.fromkeys(ends, "string")):
            some = batch.slice(0, SAMPLE)
            return pc.unique(pa.chunked_array([spelled(column) for column in some.columns])).drop_null()
        return pa.array([], pa.string())

    def between(self, sources: NodeIds, targets: NodeIds) -> EdgeList:
        """Return the same edges between other nodes."""
        return replace(self, sources=sources, targets=targets)

    def batches(self, skip: int = 0) -> Iterator[Edges]:
        """Yield (source, target, weight) of the edges from number `skip` on, as rows of the node tables."""
        kinds = ["string" if ids.are_strings else "int64" for ids in (self.sources, self.targets)]
        try:
            yield from self._read(skip, kinds)
        except FormatError:
            if self.table.is_text:  # a word among whole numbers: read as strings, to name it and its line
                for _ in self._read(0, ["string", "string"]):
                    pass
            raise

    def _read(self, skip: int, kinds: list[str]) -> Iterator[Edges]:
        path, types = self.table.path, dict(zip(self.columns, (*kinds, "float32"), strict=False))
        for start, batch in self.table.chunks(self.columns, types, skip=skip):

            def place(at: int, start: int = start) -> str:
                return self.table.line(start + at)

            source = self.sources.rows(batch.column(0), path=path, place=place)
            target = self.targets.rows(batch.column(1), path=path, place=place)
            yield source, target, as_weights(batch.column(2), path) if self.weighted else None

    def read(self) -> Edges:
        """Read all edges into memory."""
        kinds = [np.int32 if ids.nodes < 2**31 else np.int64 for ids in (self.sources, self.targets)] + [np.float32]
        parts: list[list[Array]] = [[np.empty(0, kind)] for kind in kinds]
        with progress(f"read {self.table.path.name}", total=self.estimate) as advance:
            for edges in self.batches():
                for part, values, kind in zip(parts, edges, kinds, strict=True):
                    if values is not None:
                        part.append(values.astype(kind, copy=False))
                advance(len(edges[0]))
        source, target, weights = (np.concatenate(part) for part in parts)
        return source, target, weights if self.weighted else None


def open_edges(given: Any, source: str | None = None, target: str | None = None, weight: str | None = None) -> EdgeList:
    """Look at edges, by columns where they are not the usual ones; `between` says which nodes they join.

    They are a path, a table, or an edge_index (2, E): a tensor or an array.
    """
    if isinstance(given, Path) and given.suffix.lower() in (".npy", ".npz"):
        table: Table = open_arrays(given, source, target, weight)
    elif not isinstance(given, Path) and not is_stream(given) and hasattr(given, "shape"):
        table = edge_table(Path("edge_index"), ["source", "target"], two_columns(plain(given), Path("edge_index")))
    else:
        table = open_table(given, "the edges")
    return EdgeList(table, choose(table, source, target, weight), NodeIds(0), NodeIds(0))


def choose(table: Table, source: str | None, target: str | None, weight: str | None) -> tuple[str, ...]:
    """Return the names of source, target and, if there is one, weight."""
    weight = table.pick(weight, ("weight",))
    others = [name for name in table.names if name != weight]
    source, target = table.pick(source, SOURCES), table.pick(target, TARGETS)
    if (source is None or target is None) and len(others) < 2:
        raise FormatError(f"{table.path} has the columns {', '.join(table.names)}.\nExpected two: source and target.")
    if source is None or target is None or source == target:
        source, target = others[0], others[1]
    return (source, target) if weight is None else (source, target, weight)


def as_weights(column: Any, path: Path) -> Array:
    """Return weights as float32; an empty one is NaN, which the graph's check refuses."""
    try:
        return np.asarray(pc.cast(column, pa.float32(), safe=False).to_numpy(zero_copy_only=False))
    except pa.ArrowException as error:
        raise FormatError(f"{path}: the weights are no numbers ({error}).\nGive one number ≥ 0 per edge.") from error


def open_arrays(path: Path, source: str | None, target: str | None, weight: str | None) -> ArrayTable:
    """Open .npy, (E, 2) or (2, E), or .npz with source, target and perhaps weight, or with edge_index (2, E)."""
    names, weight = [source or "source", target or "target"], weight or "weight"
    held = set() if path.suffix.lower() == ".npy" else members(path)
    if path.suffix.lower() == ".npy":
        names, arrays = ["source", "target"], two_columns(read_array(path, memory_map=True), path)
    elif "edge_index" in held and not (source or target):
        arrays = two_columns(read_member(path, "edge_index"), path)
    else:
        arrays = [read_member(path, name) for name in names]
    if weight in held:
        names, arrays = [*names, weight], [*arrays, read_member(path, weight)]
    return edge_table(path, names, arrays)


def edge_table(path: Path, names: list[str], arrays: list[Array]) -> ArrayTable:
    """Return arrays as a table, if they can be ends of edges and weights."""
    for values in arrays[:2]:
        if values.dtype.kind not in "iuSU" or values.ndim != 1:
            raise FormatError(f"{path}: edge ends are {values.ndim}-dimensional {values.dtype}.\nExpected node ids.")
    if len({array.shape for array in arrays}) != 1:
        sizes = ", ".join(f"{array.size:,} of {name}" for array, name in zip(arrays, names, strict=True))
        raise ShapeError(f"{path} has {sizes}.\nEvery edge needs one of each.")
    return ArrayTable(path, tuple(names), tuple(arrays))


def two_columns(edges: Array, path: Path) -> list[Array]:
    """Split (E, 2) or (2, E) into sources and targets; (2, 2) is (E, 2) in a .npy file, (2, E) as edge_index."""
    if edges.ndim != 2 or 2 not in edges.shape:
        raise ShapeError(f"{path}: the edges have the shape {edges.shape}.\nExpected (edges, 2) or (2, edges).")
    by_rows = edges.shape[1] == 2 if path.suffix.lower() == ".npy" else edges.shape[0] != 2
    return list(edges.T if by_rows else edges)
