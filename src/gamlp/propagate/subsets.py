"""Relation subsets: which relations are looked at together (NARS, Yu et al. 2020; paper, appendix), and their hops.

A subset s keeps some relations of a heterogeneous graph and forgets their types. Its graph is undirected, and a node's
sum is divided by its degree over all relations of the subset, D_s^(−1) A_s with r = 0:

    X_s^(l) = Â_s X_s^(l−1),   s = 1 … S          → hops of the target nodes only, values (R, S, K+1, F)

They are one array in memory or, where that is too large, a Shelf of one file a subset, read by rows and subsets. X^(∞),
which smoothing attention compares the hops with, is the mean over the subsets' own: what the mixer starts from. Cost
O(K·E_s·F) for each subset. Subsets are drawn at random or given; one that never reaches a target node is refused, as
all its hops would be zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Any, cast

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.hetero import HeteroGraph
from gamlp.progress import log, progress
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.hops import Hops
from gamlp.propagate.spec import Propagation
from gamlp.storage.files import Array
from gamlp.storage.scratch import removed_with, scratch_folder
from gamlp.storage.sizes import format_size

Subset = tuple[str, ...]
MOST_LISTED = 16  # relations, up to which all subsets are written down


def subsets_of(graph: HeteroGraph, wanted: int | Sequence[Sequence[str]], *, seed: int = 0) -> tuple[Subset, ...]:
    """Return the subsets: `wanted` of them drawn by `seed`, or those given, checked and in the graph's order."""
    if isinstance(wanted, int):
        return draw_subsets(graph, wanted, seed=seed)
    given = tuple(ordered(graph, subset) for subset in wanted)
    if not given:
        raise SettingsError("No relation subset is given.\nGive at least one, or a number of them to be drawn.")
    joining = [one.name for one in graph.relations if graph.target.name in one.ends and len(one.heads)]
    for subset in given:
        if not set(joining) & set(subset):
            raise SettingsError(
                f"The relation subset {{{', '.join(subset)}}} never reaches a node of '{graph.target.name}'.\n"
                f"Add a relation that joins it: {', '.join(joining) or 'the graph has none'}."
            )
    return given


def draw_subsets(graph: HeteroGraph, count: int, *, seed: int) -> tuple[Subset, ...]:
    """Draw different subsets whose relations all hang together with the target; the first holds every relation.

    Where there are fewer than `count`, all of them are returned.
    """
    names = [one.name for one in graph.relations if len(one.heads)]
    whole = ordered(graph, connected(graph, names))
    if not whole:
        raise SettingsError(
            f"No relation reaches a node of '{graph.target.name}'.\nAt least one relation must join the target type."
        )
    if len(whole) < len(names):
        cut_off = ", ".join(name for name in names if name not in whole)
        log.warning("Relations that cannot reach the target are left out: %s", cut_off)
    random = np.random.default_rng([seed, 0x5B5E7])
    found = [whole]
    for subset in candidates(whole, random):
        if len(found) < count and subset not in found and len(connected(graph, subset)) == len(subset):
            found.append(subset)
    return tuple(found)


def candidates(names: Subset, random: np.random.Generator) -> Iterable[Subset]:
    """Return subsets in random order: all of them, or, of too many relations to list, a thousand draws."""
    if len(names) <= MOST_LISTED:
        every = list(chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1)))
        return [every[at] for at in random.permutation(len(every))]
    kept = random.random((1000, len(names))) < 0.5
    return [tuple(name for name, keep in zip(names, row, strict=True) if keep) for row in kept if row.any()]


def connected(graph: HeteroGraph, names: Sequence[str]) -> set[str]:
    """Return the relations among `names` that hang together with the target type."""
    reached, found = {graph.target.name}, set[str]()
    waiting = [graph.relation(name) for name in names]
    while fresh := [one for one in waiting if one.name not in found and reached & set(one.ends)]:
        found |= {one.name for one in fresh}
        reached |= {end for one in fresh for end in one.ends}
    return found


def ordered(graph: HeteroGraph, names: Iterable[str]) -> Subset:
    """Return relation names in the graph's order, each once; an unknown one is refused."""
    wanted = {graph.relation(name).name for name in names}
    return tuple(one.name for one in graph.relations if one.name in wanted)


class Shelf:
    """Hops of S subsets in S arrays (R, K+1, F), memory-mapped: what is not read is not in memory."""

    ndim = 4

    def __init__(self, parts: list[Array], hops: int | None = None) -> None:
        self.parts = parts
        self.hops = parts[0].shape[1] if hops is None else hops  # K+1, fewer where not all are wanted

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


def subset_hops(
    engine: Engine, graph: HeteroGraph, columns: Any, subsets: Sequence[Subset], spec: Propagation, *, budget: int
) -> Hops:
    """Return the hops of spec.rows over every subset; more than `budget` bytes of them stay on disk."""
    rows = np.arange(graph.nodes) if spec.rows is None else spec.rows
    shape = (len(rows), len(subsets), spec.hops + 1, columns.shape[1])
    fits = np.prod(shape, dtype=np.float64) * np.dtype(spec.storage).itemsize <= budget
    stack = np.empty(shape, spec.storage) if fits else None
    scratch = None if fits or engine.cache else scratch_folder("gamlp-hops")
    engine = replace(engine, cache=scratch or engine.cache)
    parts: list[Array] = []
    limit = np.zeros((len(rows), columns.shape[1]), np.float32) if spec.stationary else None
    with progress("subsets", total=len(subsets)) as advance:
        for number, subset in enumerate(subsets):
            one = engine.propagate(graph.joined(subset), columns, spec)
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
    if scratch is not None:  # it goes when no shelf has the parts any more
        removed_with(parts[0], scratch)
    log.warning("The hops of the subsets need more than %s: they stay on disk.", format_size(budget))
    return Hops(cast(Array, Shelf(parts)), rows, limit)  # read through `shelf_of`


def shelf_of(hops: Hops) -> Shelf | None:
    """Return the shelf that holds the hops; None where they are an array."""
    values: object = hops.values
    return values if isinstance(values, Shelf) else None


def first_hops(hops: Hops, count: int) -> Array:
    """Return hops 0 … count−1 of what is there."""
    if count == hops.count + 1:
        return hops.values
    shelf = shelf_of(hops)
    return hops.values[..., :count, :] if shelf is None else cast(Array, Shelf(shelf.parts, count))


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
