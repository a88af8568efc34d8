"""The hops of every relation subset: one stack in memory, or, where that is too large, one file a subset.

    values  (R, S, K+1, F)     in memory: an array      on disk: a Shelf, read by rows and subsets

X^(∞), which smoothing attention compares the hops with, is the mean over the subsets' own: what the mixer starts from.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.hetero import HeteroGraph
from gamlp.progress import log, progress
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.hops import Hops
from gamlp.propagate.spec import Propagation
from gamlp.propagate.subsets import Subset
from gamlp.storage.files import Array


class Shelf:
    """Hops of S subsets in S arrays (R, K+1, F), memory-mapped: what is not read is not in memory."""

    ndim = 4

    def __init__(self, parts: Sequence[Array], hops: int | None = None, whole: Shelf | None = None) -> None:
        self.parts = list(parts)
        self.whole = whole  # temporary files live as long as someone reads them
        self.hops = self.parts[0].shape[1] if hops is None else hops  # K+1, fewer where not all are wanted

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(R, S, K+1, F)."""
        return len(self.parts[0]), len(self.parts), self.hops, self.parts[0].shape[2]

    @property
    def nbytes(self) -> int:
        """The size of the files."""
        return sum(part.nbytes for part in self.parts)

    def take(self, rows: Array, subsets: Sequence[int] | None = None) -> Array:
        """Return some rows of some subsets, (B, S', K+1, F)."""
        chosen = range(len(self.parts)) if subsets is None else subsets
        taken = np.empty((len(rows), len(chosen), *self.shape[2:]), self.parts[0].dtype)
        for place, subset in enumerate(chosen):
            taken[:, place] = self.parts[subset][rows, : self.hops]
        return taken

    def first_hops(self, count: int) -> Shelf:
        """Return the same shelf, of which only `count` hops are read."""
        return Shelf(self.parts, count, whole=self)


def subset_hops(
    engine: Engine, graph: HeteroGraph, columns: Any, subsets: Sequence[Subset], spec: Propagation, *, budget: float
) -> Hops:
    """Return the hops of spec.rows over every subset; more than `budget` GiB of them stay on disk."""
    rows = np.arange(graph.nodes) if spec.rows is None else spec.rows
    shape = (len(rows), len(subsets), spec.hops + 1, columns.shape[1])
    fits = np.prod(shape, dtype=np.float64) * np.dtype(spec.storage).itemsize <= budget * 2**30
    stack = np.empty(shape, spec.storage) if fits else None
    scratch = None
    if not fits and engine.cache is None:
        scratch = Path(tempfile.mkdtemp(prefix="gamlp-hops-"))
    parts: list[Array] = []
    limit = np.zeros((len(rows), columns.shape[1]), np.float32) if spec.stationary else None
    with progress("subsets", total=len(subsets)) as advance:
        for number, subset in enumerate(subsets):
            adjacency = graph.joined(subset)
            if scratch is None:
                one = engine.propagate(adjacency, columns, spec)
            else:
                one = engine.propagate_to(scratch / str(number), adjacency, columns, spec)
            if stack is not None:
                stack[:, number] = one.values
            else:
                parts.append(one.values)
            if limit is not None and one.stationary is not None:
                limit += one.stationary.astype(np.float32) / len(subsets)
            advance(1, note=" + ".join(subset))
    limit = None if limit is None else limit.astype(spec.storage)
    if stack is not None:
        return Hops(stack, rows, limit)
    shelf = Shelf(parts)
    if scratch is not None:
        weakref.finalize(shelf, shutil.rmtree, scratch, ignore_errors=True)
    log.warning("The hops of the subsets need more than %g GiB: they stay on disk.", budget)
    return Hops(cast(Array, shelf), rows, limit)  # read through `shelf_of`


def shelf_of(hops: Hops) -> Shelf | None:
    """Return the shelf that holds the hops; None where they are an array."""
    values: object = hops.values
    return values if isinstance(values, Shelf) else None


def first_hops(hops: Hops, count: int) -> Array:
    """Return hops 0 … count−1 of what is there."""
    shelf = shelf_of(hops)
    return hops.values[..., :count, :] if shelf is None else cast(Array, shelf.first_hops(count))


def subsets_at_a_time(shape: Sequence[int], memory: float) -> int:
    """Return how many subsets are trained at once: with the sum over the others they take `memory` GiB of float32."""
    rows, subsets, hops, features = shape
    fit = int(memory * 2**30 // (4 * rows * hops * features)) - 1
    if fit < 1:
        need = 2 * 4 * rows * hops * features / 2**30
        raise SettingsError(
            f"subset_memory is {memory:g} GiB; one subset and the sum over the others need {need:.1f}.\n"
            "Raise subset_memory, take fewer hops, or rows=labelled."
        )
    return min(fit, subsets)
