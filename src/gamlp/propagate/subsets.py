"""Relation subsets: which relations are looked at together (NARS, Yu et al. 2020; paper, appendix).

A subset s keeps some relations of a heterogeneous graph and forgets their types. Its graph is undirected, and a node's
sum is divided by its degree over all relations of the subset, D_s^(−1) A_s with r = 0:

    X_s^(l) = Â_s X_s^(l−1),   s = 1 … S          → hops of the target nodes only, (R, S, K+1, F)

Cost O(K·E_s·F) for each subset. Subsets are drawn at random or given; one that never reaches a target node is refused,
as all its hops would be zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.hetero import HeteroGraph, Relation
from gamlp.progress import log

Subset = tuple[str, ...]
MOST_LISTED = 16  # relations, up to which all subsets are written down


def subsets_of(graph: HeteroGraph, wanted: int | Sequence[Sequence[str]], *, seed: int = 0) -> tuple[Subset, ...]:
    """Return the subsets: `wanted` of them drawn by `seed`, or those given, checked and in the graph's order."""
    if isinstance(wanted, int):
        return draw_subsets(graph, wanted, seed=seed)
    given = tuple(ordered(graph, subset) for subset in wanted)
    if not given:
        raise SettingsError("No relation subset is given.\nGive at least one, or a number of them to be drawn.")
    for subset in given:
        check_subset(graph, subset)
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
        if len(found) >= count:
            break
        if subset not in found and len(connected(graph, subset)) == len(subset):
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
    waiting: list[Relation] = [graph.relation(name) for name in names]
    while fresh := [one for one in waiting if one.name not in found and reached & set(one.ends)]:
        for one in fresh:
            found.add(one.name)
            reached |= set(one.ends)
    return found


def ordered(graph: HeteroGraph, names: Iterable[str]) -> Subset:
    """Return relation names in the graph's order, each once; an unknown one is refused."""
    wanted = {graph.relation(name).name for name in names}
    return tuple(one.name for one in graph.relations if one.name in wanted)


def check_subset(graph: HeteroGraph, subset: Subset) -> None:
    """Refuse a subset that never reaches the target."""
    touching = [name for name in subset if graph.target.name in graph.relation(name).ends]
    if not any(len(graph.relation(name).heads) for name in touching):
        raise SettingsError(
            f"The relation subset {{{', '.join(subset)}}} never reaches a node of '{graph.target.name}'.\n"
            f"Add a relation that joins it: {', '.join(touching_all(graph)) or 'the graph has none'}."
        )


def touching_all(graph: HeteroGraph) -> list[str]:
    """Return the relations that join the target type and have edges."""
    return [one.name for one in graph.relations if graph.target.name in one.ends and len(one.heads)]
