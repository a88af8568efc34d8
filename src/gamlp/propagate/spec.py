"""What is propagated, in one object: every engine takes it, a cache is keyed by it, nothing else spells it out.

X^(0) = X,   X^(l) = Â X^(l−1),   l = 1 … K                     feature hops, label hops
X^(l) = clip( α Â X^(l−1) + (1 − α) X^(0) )                     with `restart`: label propagation, correct and smooth
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
