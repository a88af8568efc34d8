"""All columns of a node table, fitted on some of its rows, and applied to any table with the same columns.

    Columns.fit(rows, …)        what each column is: all that cannot be a feature is told at once
    columns.encode(batch, …)    (n, F) float32, row by row: blocks of any size give the same bits
    columns.data(), from_data   one JSON object and one flat float32 array, which a graph directory and a model keep

Where all columns are numbers, they stay as they are, as a matrix would, and the recipe scales them. Beside categories,
text or dates each column is brought to one scale, and the recipe leaves them alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from gamlp.errors import FormatError, GamlpError, ShapeError
from gamlp.graph.encode.bag import Bag
from gamlp.graph.encode.guess import guess
from gamlp.graph.encode.kinds import Category, Column, Date, Nothing, Number, Place, Truth, Vector
from gamlp.graph.encode.text import Text
from gamlp.storage.files import Array, digest

ALL: tuple[type[Column], ...] = (Number, Truth, Category, Date, Vector, Text, Bag, Nothing)
KINDS = {kind.kind: kind for kind in ALL}


@dataclass(frozen=True, eq=False)
class Columns:
    """How the columns of a table become features."""

    columns: tuple[Column, ...]

    @classmethod
    def fit(cls, rows: Any, place: Place, *, title: str, gaps: Collection[str] = ()) -> Columns:
        """Learn from rows of a table, which `place` names; columns of `gaps` have some in other rows."""
        found, problems = [], []
        worst: type[GamlpError] = FormatError
        for name in rows.column_names:
            try:
                found.append(guess(name, rows.column(name), place, gaps=name in gaps))
            except GamlpError as error:
                problems.append((name, str(error).splitlines()[0]))
                worst = ShapeError if isinstance(error, ShapeError) else worst
        if problems:
            raise refused(title, problems, worst)
        columns = cls(tuple(found))
        return columns if columns.plain else columns.scaled()

    @classmethod
    def numbers(cls, names: Sequence[str]) -> Columns:
        """Return columns that are numbers and nothing else: a gap stays NaN, which a graph refuses."""
        return cls(tuple(Number(name, False, math.nan, 1.0) for name in names))

    @property
    def strict(self) -> bool:
        """Whether all are finite numbers, or refused."""
        return any(isinstance(column, Number) and math.isnan(column.middle) for column in self.columns)

    @property
    def plain(self) -> bool:
        """Whether all are numbers, as they came."""
        return all(column.plain and not getattr(column, "scaled", False) for column in self.columns)

    def scaled(self) -> Columns:
        """Return columns of one scale, as they are beside others that are no numbers."""
        return Columns(tuple(map(scaled, self.columns)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the features are called."""
        return tuple(name for column in self.columns for name in column.names)

    @cached_property
    def key(self) -> str:
        """A hash of what was learned."""
        data, array = self.data()
        return digest(repr(data), array)

    @property
    def words(self) -> str:
        """What each column was taken for; neighbours of one kind are named together."""
        groups = [[*group] for _, group in groupby(self.columns, key=lambda column: column.words)]
        many = [f"{len(group)} × " if len(group) > 1 else "" for group in groups]
        parts = zip(groups, many, strict=True)
        return ", ".join(f"{listed([one.name for one in group])} ({count}{group[0].words})" for group, count in parts)

    def needed(self, have: Sequence[str]) -> list[Column]:
        """Return the columns that a table must have, all but those that are left out and are not there."""
        return [column for column in self.columns if not isinstance(column, Nothing) or column.name in have]

    def encode(self, batch: Any, place: Place) -> Array:
        """Return the features of some rows, (n, F) float32, by the names of the columns."""
        parts = [column.encode(batch.column(column.name), place) for column in self.needed(batch.schema.names)]
        return np.concatenate([np.empty((batch.num_rows, 0), np.float32), *parts], axis=1)

    def data(self) -> tuple[list[dict[str, Any]], Array]:
        """Return it as JSON and a flat array."""
        described, arrays = [], [np.empty(0, np.float32)]
        for column in self.columns:
            described.append({**column.data(), "shape": None if column.array is None else list(column.array.shape)})
            arrays.append(np.empty(0, np.float32) if column.array is None else column.array.ravel())
        return described, np.concatenate(arrays)

    @classmethod
    def from_data(cls, described: Sequence[Mapping[str, Any]], flat: Array) -> Columns:
        """Build it again; what is no such data is a ValueError, KeyError or TypeError."""
        columns, done = [], 0
        for about in described:
            content = dict(about)
            kind, shape = KINDS[content.pop("kind")], content.pop("shape")
            if shape is not None:
                size = int(np.prod(shape))
                content["learned"], done = np.asarray(flat[done : done + size]).reshape(shape), done + size
            columns.append(TypeAdapter(kind).validate_python(content))
        if done != len(flat):
            raise ValueError(f"the columns have {len(flat):,} numbers, {done:,} were expected")
        return cls(tuple(columns))


Recode = Callable[[Mapping[str, Columns]], tuple[Array, tuple[str, ...] | None]]


@dataclass(frozen=True, eq=False)
class Encoded:
    """How the features of a graph were made of tables, by the type of its nodes ("" in a plain graph).

    `again` makes them by other columns, from the same tables; a graph directory has no tables any more.
    """

    columns: Mapping[str, Columns]
    again: Recode | None = None

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers, as they came."""
        return all(columns.plain for columns in self.columns.values())

    def same(self, columns: Mapping[str, Columns]) -> bool:
        """Say whether these would give the same features."""
        mine = {kind: one.key for kind, one in self.columns.items()}
        return mine == {kind: one.key for kind, one in columns.items()}


def scaled(column: Column) -> Column:
    """Return a column on the scale of others; a number that is always the same says nothing."""
    if isinstance(column, Number):
        if not column.spread and not column.gaps:
            return Nothing(column.name, "the same in every row")
        return replace(column, scaled=True, spread=column.spread or 1.0)
    if isinstance(column, Vector):
        return replace(column, scaled=True, spread=tuple(one or 1.0 for one in column.spread))
    return column


def refused(title: str, problems: Sequence[tuple[str, str]], kind: type[GamlpError]) -> GamlpError:
    """Return one error for all columns that are no features."""
    lines = "".join(f"\n  {words}" for _, words in problems)
    ignore = " ".join(f"--ignore {name}" for name, _ in problems)
    count = "one column" if len(problems) == 1 else f"{len(problems)} columns"
    return kind(f"{title}: {count} cannot be read as features.{lines}\nMend them, or leave them out: {ignore}.")


def listed(names: Sequence[str]) -> str:
    """Return names in a row, of many the first and the last."""
    names = [name or "(no name)" for name in names]
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, …, {names[-1]}"
