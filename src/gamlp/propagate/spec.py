"""What is propagated, in one object: every engine takes it, a cache is keyed by it, nothing else spells it out.

X^(0) = X,   X^(l) = Â X^(l−1),   l = 1 … K                     feature hops, label hops
X^(l) = clip( α Â X^(l−1) + (1 − α) X^(0) )                     with `restart`: label propagation, correct and smooth
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from gamlp.errors import IdError, SettingsError
from gamlp.propagate.normalize import Normalization
from gamlp.storage.files import Array

Keep = Literal["all", "last"]
Storage = Literal["float32", "float16"]


@dataclass(frozen=True, eq=False)
class Restart:
    """Return to the start in every step: x ← clip(α Âx + (1 − α) x⁰, low, high); rows `fixed` stay as they began."""

    alpha: float
    low: float = 0.0
    high: float = 1.0
    fixed: Array | None = None  # (n,) sorted node ids


@dataclass(frozen=True, eq=False)
class Propagation:
    """A specification of hops; the adjacency and what is propagated are given to the engine beside it.

    rows: the nodes whose hops are kept, in this order; None = all.
    keep: "all" keeps X, ÂX, …, ÂᴷX; "last" keeps ÂᴷX alone.
    stationary: X^(∞) beside them, for a symmetric adjacency.
    """

    hops: int
    normalization: Normalization = Normalization()  # noqa: RUF009 — frozen
    rows: Array | None = None
    keep: Keep = "all"
    stationary: bool = False
    storage: Storage = "float32"
    restart: Restart | None = None

    def __post_init__(self) -> None:
        if self.hops < 0:
            raise SettingsError(f"The number of hops is {self.hops}.\nExpected 0 or more.")
        if self.keep not in ("all", "last"):
            raise SettingsError(f"keep is {self.keep!r}.\nExpected 'all' or 'last'.")
        if self.storage not in ("float32", "float16"):
            raise SettingsError(f"The storage of hops is {self.storage!r}.\nExpected 'float32' or 'float16'.")
        if self.stationary and self.restart is not None:
            raise SettingsError("X^(∞) was asked for beside a restart.\nIt is that of Â alone: leave one of them out.")

    def for_nodes(self, nodes: int) -> Propagation:
        """Return the same with the rows as int64; rows that such a graph does not have are refused."""
        if self.rows is None:
            return self
        rows = np.ascontiguousarray(self.rows, dtype=np.int64)
        if rows.ndim != 1 or (len(rows) and not 0 <= rows.min() <= rows.max() < nodes):
            raise IdError(
                f"The wanted rows reach from {rows.min():,} to {rows.max():,}, the graph has {nodes:,} nodes.\n"
                f"Rows must be one list of numbers between 0 and {nodes - 1:,}."
            )
        return replace(self, rows=rows)

    def row_count(self, nodes: int) -> int:
        """R, the number of rows that are kept."""
        return nodes if self.rows is None else len(self.rows)

    @property
    def kept_hops(self) -> list[int]:
        """The hops that are kept."""
        return [self.hops] if self.keep == "last" else list(range(self.hops + 1))

    @cached_property
    def sorted_rows(self) -> tuple[Array | None, Array | None]:
        """The wanted rows in order, and what sorts them; None where they are sorted as they are."""
        if self.rows is None or bool((np.diff(self.rows) >= 0).all()):
            return self.rows, None
        order = np.argsort(self.rows, kind="stable")
        return self.rows[order], order

    @property
    def content(self) -> list[Array | str]:
        """Everything that a result depends on beside the graph and its columns, for a hash."""
        words = f"{self.normalization.r!r} {self.normalization.self_loops} {self.hops} {self.keep} {self.stationary}"
        content: list[Array | str] = [f"{words} {self.storage}"]
        if self.restart is not None:
            fixed = "none" if self.restart.fixed is None else np.asarray(self.restart.fixed, np.int64)
            content += [f"restart {self.restart.alpha!r} {self.restart.low!r} {self.restart.high!r}", fixed]
        return [*content, "all rows" if self.rows is None else self.rows]
