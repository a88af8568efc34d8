"""Propagate on one machine: check what came in, choose the device, return Hops.

    X^(0) = X,   X^(l) = Â X^(l−1),   l = 1 … K          cost O(K·E·F)

Features may be any (N, F) array of numbers, in memory or memory-mapped. The processor's kernels give the same bits
whatever the number of threads; another device gives its own last bits.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gamlp.errors import IdError, SettingsError, ShapeError
from gamlp.graph.graph import Adjacency
from gamlp.propagate import memory
from gamlp.propagate.hops import Hops
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.plan import plan
from gamlp.propagate.stationary import stationary_features
from gamlp.storage.files import Array
from gamlp.storage.threads import available, workers

Keep = Literal["all", "last"]
Storage = Literal["float32", "float16"]


def propagate(
    adjacency: Adjacency,
    features: Array,
    *,
    hops: int,
    normalization: Normalization = Normalization(),  # noqa: B008 — frozen
    rows: Array | None = None,
    keep: Keep = "all",
    stationary: bool = False,
    storage: Storage = "float32",
    device: str = "cpu",
) -> Hops:
    """Return X, ÂX, …, ÂᴷX.  adjacency (N, N), features (N, F) → values (len(rows) or N, K+1, F).

    `keep="last"` keeps ÂᴷX alone, values (R, 1, F). `stationary` adds X^(∞), (R, F). `device` is "cpu" or one of
    torch's, such as "cuda".
    """
    rows = check(adjacency, features, hops=hops, rows=rows, keep=keep, storage=storage)
    operator = Propagator(adjacency, normalization, device=device)
    values = operator.hops(features, hops=hops, rows=rows, last_only=keep == "last", storage=storage)
    limit = stationary_features(adjacency, features, normalization, rows=rows) if stationary else None
    return Hops(values=values, rows=rows, stationary=None if limit is None else limit.astype(storage))


class Propagator:
    """Â as a function: x (N, F) float32 → Âx (N, F) float32."""

    def __init__(
        self, adjacency: Adjacency, normalization: Normalization, device: str = "cpu", *, threads: int | None = None
    ) -> None:
        self.adjacency, self.normalization, self.device = adjacency, normalization, device
        self.threads = threads or available()
        self._plan = plan(adjacency, normalization, threads=self.threads) if device == "cpu" else None

    def __call__(self, x: Array) -> Array:
        """Return Âx."""
        check(self.adjacency, x, hops=1)
        return np.asarray(self.hops(x, hops=1, rows=None, last_only=True, storage="float32")[:, 0])

    def hops(self, x: Array, *, hops: int, rows: Array | None, last_only: bool, storage: str) -> Array:
        """Return x, Âx, …, Âᴷx for `rows`, (R, K+1, F), or Âᴷx alone, (R, 1, F); x has been checked."""
        if self._plan is None:
            from gamlp.propagate import cuda

            return cuda.compute(
                self.adjacency,
                self.normalization,
                x,
                hops=hops,
                rows=rows,
                last_only=last_only,
                storage=storage,
                device=self.device,
            )
        with workers(self.threads) as run:
            return memory.compute(self._plan, x, hops=hops, rows=rows, last_only=last_only, storage=storage, run=run)


def check(
    adjacency: Adjacency,
    features: Array,
    *,
    hops: int,
    rows: Array | None = None,
    keep: str = "all",
    storage: str = "float32",
) -> Array | None:
    """Refuse what cannot be propagated; return the wanted rows as int64."""
    if hops < 0:
        raise SettingsError(f"The number of hops is {hops}.\nExpected 0 or more.")
    if keep not in ("all", "last"):
        raise SettingsError(f"keep is {keep!r}.\nExpected 'all' or 'last'.")
    if storage not in ("float32", "float16"):
        raise SettingsError(f"The storage of hops is {storage!r}.\nExpected 'float32' or 'float16'.")
    if features.ndim != 2 or len(features) != adjacency.nodes or not features.shape[1]:
        raise ShapeError(
            f"Features have the shape {features.shape}, the graph has {adjacency.nodes:,} nodes.\n"
            "Every node needs one row, isolated nodes too, and at least one column."
        )
    if rows is None:
        return None
    rows = np.ascontiguousarray(rows, dtype=np.int64)
    if rows.ndim != 1 or (len(rows) and not 0 <= rows.min() <= rows.max() < adjacency.nodes):
        raise IdError(
            f"The wanted rows reach from {rows.min():,} to {rows.max():,}, the graph has {adjacency.nodes:,} nodes.\n"
            f"Rows must be one list of numbers between 0 and {adjacency.nodes - 1:,}."
        )
    return rows
