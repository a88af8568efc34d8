"""What is propagated, in one object: every engine takes it, a cache is keyed by it, nothing else spells it out.

X^(0) = X,   X^(l) = Â X^(l−1),   l = 1 … K                     feature hops, label hops
X^(l) = clip( α Â X^(l−1) + (1 − α) X^(0) )                     with `restart`: label propagation, correct and smooth
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from gamlp.errors import IdError, SettingsError, ShapeError
from gamlp.graph.graph import Adjacency
from gamlp.propagate.normalize import Normalization
from gamlp.storage.files import Array, digest
from gamlp.storage.sizes import format_size

Keep = Literal["all", "last"]
Storage = Literal["float32", "float16"]
FORMAT = 2  # of what a key stands for


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
        if self.keep not in get_args(Keep):
            raise SettingsError(f"keep is {self.keep!r}.\nExpected 'all' or 'last'.")
        if self.storage not in get_args(Storage):
            raise SettingsError(f"The storage of hops is {self.storage!r}.\nExpected 'float32' or 'float16'.")
        if self.stationary and self.restart is not None:
            raise SettingsError("X^(∞) was asked for beside a restart.\nIt is that of Â alone: leave one of them out.")

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


@dataclass(frozen=True, eq=False)
class Job:
    """A propagation with everything that it needs; `Job.of` checks it."""

    adjacency: Adjacency
    columns: Any  # (N, F), see `sources`
    spec: Propagation

    @classmethod
    def of(cls, adjacency: Adjacency, columns: Any, spec: Propagation) -> Job:
        """Refuse what cannot be propagated; the rows become int64."""
        shape, nodes = tuple(columns.shape), adjacency.nodes
        if len(shape) != 2 or shape[0] != nodes or not shape[1]:
            raise ShapeError(
                f"Features have the shape {shape}, the graph has {nodes:,} nodes.\n"
                "Every node needs one row, isolated nodes too, and at least one column."
            )
        if spec.rows is None:
            return cls(adjacency, columns, spec)
        rows = np.ascontiguousarray(spec.rows, dtype=np.int64)
        if rows.ndim != 1 or (len(rows) and not 0 <= rows.min() <= rows.max() < nodes):
            raise IdError(
                f"The wanted rows reach from {rows.min():,} to {rows.max():,}, the graph has {nodes:,} nodes.\n"
                f"Rows must be one list of numbers between 0 and {nodes - 1:,}."
            )
        return cls(adjacency, columns, replace(spec, rows=rows))

    @property
    def width(self) -> int:
        """F, the number of columns."""
        return int(self.columns.shape[1])

    @property
    def rows(self) -> int:
        """R, the number of wanted rows."""
        return self.adjacency.nodes if self.spec.rows is None else len(self.spec.rows)

    def key(self, device: str = "cpu") -> str:
        """Return the hash of everything that the result depends on; devices differ in the last bits."""
        spec, restart, own = self.spec, self.spec.restart, self.spec.normalization
        words = f"{FORMAT} {own.r!r} {own.self_loops} {spec.hops} {spec.keep} {spec.stationary} {spec.storage} {device}"
        content: list[Array | str] = [self.adjacency.fingerprint, words]
        if restart is not None:
            fixed = "none" if restart.fixed is None else np.asarray(restart.fixed, np.int64)
            content += [f"restart {restart.alpha!r} {restart.low!r} {restart.high!r}", fixed]
        content.append("all rows" if spec.rows is None else spec.rows)
        return digest(*content, *getattr(self.columns, "content", [self.columns]))

    def stationary(self, memory: int | None) -> Array | None:
        """Return X^(∞) of the wanted rows where it is asked for and can be found within `memory`."""
        if not self.spec.stationary:
            return None
        from gamlp.propagate.stationary import stationary_features

        needed = 12 * self.adjacency.entries + 40 * self.adjacency.nodes + 4 * self.rows * self.width
        if memory is not None and needed > memory:
            raise SettingsError(
                f"X^(∞) needs {format_size(needed)} to find the connected components and for {self.rows:,} rows, "
                f"{format_size(memory)} were given.\n"
                "Give more memory, or use a combiner other than smoothing."
            )
        found = stationary_features(self.adjacency, self.columns, self.spec.normalization, rows=self.spec.rows)
        return found.astype(self.spec.storage, copy=False)
