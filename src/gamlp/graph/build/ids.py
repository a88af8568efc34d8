"""Which row of the node table an id in the edge list means.

Without ids the rows count from 0. With ids, integers or words, one hash look-up per edge end; where one file holds
numbers and the other words, both are compared as words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError, IdError
from gamlp.storage.files import Array


@dataclass(frozen=True)
class NodeIds:
    """The N nodes; `values` is the Arrow array of their ids, or None where the row is the id."""

    nodes: int
    values: Any = None

    @property
    def names(self) -> Array | None:
        """Return the ids as a numpy array of integers or words."""
        if self.values is None:
            return None
        if self.are_words:
            return np.array(self.values.to_pylist(), dtype=np.str_)
        return np.asarray(self.values.to_numpy(zero_copy_only=False))

    @property
    def are_words(self) -> bool:
        """Say whether ids are words rather than integers."""
        import pyarrow as pa

        return self.values is not None and not pa.types.is_integer(self.values.type)

    def rows(self, column: Any, *, path: Path, place: Callable[[int], str]) -> Array:
        """Return the row of each id in `column`; an unknown one is an IdError that names it and its `place`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.values is None and pa.types.is_integer(column.type) and not column.null_count:
            ends = np.asarray(column.to_numpy(zero_copy_only=False))
            bad = (ends < 0) | (ends >= self.nodes)
        else:
            values = pa.array(range(self.nodes), pa.int64()) if self.values is None else self.values
            kind = pa.int64() if all(pa.types.is_integer(a.type) for a in (values, column)) else pa.string()
            found = pc.index_in(pc.cast(column, kind), value_set=pc.cast(values, kind), skip_nulls=True)
            ends = np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False))
            bad = ends < 0
        if bad.any():
            at = int(np.argmax(bad))
            raise IdError(
                f"{path}, {place(at)}, names node {column[at].as_py()!r}, "
                f"which is not among the {self.nodes:,} nodes.\n"
                f"{self._expected()}"
            )
        return ends

    def _expected(self) -> str:
        if self.values is None:
            return f"Without an id column, ids are the rows of the node table: 0 to {self.nodes - 1:,}."
        return "Every node needs a row in the node table, isolated nodes too."


def node_ids(column: Any, *, path: Path, guessed: bool) -> NodeIds:
    """Take a column of the node table as ids: integers or words, none missing, none twice.

    `guessed` words, from a text file, are integers if each is written as an integer is (007 is not).
    """
    import pyarrow.compute as pc

    values = id_values(column, path=path)
    if values.null_count:
        at = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise IdError(f"{path}: the id of row {at:,} is empty.\nEvery node needs an id of its own.")
    if len(values) != pc.count_distinct(values).as_py():
        word, count = max(((pair["values"], pair["counts"]) for pair in values.value_counts().to_pylist()), key=second)
        raise IdError(f"{path}: the id {word!r} stands in {count:,} rows.\nEvery node needs an id of its own.")
    return NodeIds(len(values), as_integers(values) if guessed else values)


def id_values(column: Any, *, path: Path) -> Any:
    """Return a column of ids in one piece, as int64 or as words; floats must be whole numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    try:
        return pc.cast(column, pa.int64() if numeric else pa.string())
    except pa.ArrowException as error:
        raise FormatError(f"{path}: ids of type {column.type} ({error}).\nIds are whole numbers or words.") from error


def second(pair: tuple[Any, int]) -> int:
    """Return how often a value was counted."""
    return pair[1]


def as_integers(values: Any) -> Any:
    """Return words as integers if that loses nothing, else as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(values, pa.int64())
    except pa.ArrowInvalid:
        return values
    same = pc.all(pc.equal(pc.cast(numbers, pa.string()), pc.cast(values, pa.string()))).as_py()
    return numbers if same in (True, None) else values
