"""Which column of a node table holds the ids that edges name nodes by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gamlp.graph.build.ids import INTEGER, spelled
from gamlp.graph.readers.edges import EdgeList
from gamlp.graph.readers.table import Table

IDS = ("id", "node_id", "node", "name")


def id_column(table: Table, edges: EdgeList, known: Sequence[str | None]) -> str | None:
    """Return the column that edges name nodes by: the first with a usual name whose values have most ends of edges.

    Where the ends are no row numbers, any column may be it, if it has all of them.
    """
    usual = table.named(IDS)
    if usual[:1] == ["id"] and len(table.named((*IDS, "*_id"))) == 1:
        return "id"
    ends = edges.sample()
    if not len(ends):
        return None
    best, most = None, 0.5  # of the ends, at least
    for name in [name for name in table.named((*IDS, "*_id")) if name not in known]:
        share = shared_ends(table, name, ends)
        if share > most:
            best, most = name, share
    if best is not None or usual or is_rows(ends, table):
        return best
    others = (name for name in table.names if name not in known)
    return next((name for name in others if shared_ends(table, name, ends) == 1), None)


def all_different(column: Any) -> bool:
    """Say whether a column holds whole numbers, each once."""
    values = spelled(column)
    whole = pc.all(pc.match_substring_regex(values, INTEGER), skip_nulls=False).as_py()
    return bool(whole) and len(values) > 1 and pc.count_distinct(values).as_py() == len(values)


def shared_ends(table: Table, name: str, ends: Any) -> float:
    """Return the share of the ends that a column has; 0 where a value stands in it twice."""
    values = spelled(table.column(name))
    if pc.count_distinct(values, mode="all").as_py() < len(values):
        return 0.0
    return float(pc.mean(pc.is_in(ends, values)).as_py())


def is_rows(ends: Any, table: Table) -> bool:
    """Say whether all ends are numbers of rows."""
    if not pc.all(pc.match_substring_regex(ends, INTEGER)).as_py():
        return False
    numbers = pc.min_max(pc.cast(ends, pa.int64())).as_py()
    return bool(numbers["min"] >= 0 and numbers["max"] < table.rows)
