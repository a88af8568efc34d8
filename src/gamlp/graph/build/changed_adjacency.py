"""The adjacency of a graph that changes: rows that are as they were are copied, rows that change are sorted anew."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gamlp.errors import InputError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.build.new_nodes import check_ends_and_weights
from gamlp.graph.graph import Adjacency, Graph
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges

if TYPE_CHECKING:
    from gamlp.graph.build.changes import Changes, EdgeSet

NO_IDS = np.zeros(0, np.int64)
PARTS = ("added", "changed", "removed")  # of the edges
ENTRIES_AT_ONCE = 2**22


def changed_adjacency(
    graph: Graph, changes: Changes, number: Array | None, added: int, *, directed: bool
) -> tuple[Adjacency, Array]:
    """Return the adjacency with `added` rows more, and the new numbers of the rows that are not as they were."""
    old, nodes, removed = graph.adjacency, graph.nodes + added, changes.removed
    known = {name: entries_of(graph, changes, name, nodes, directed=directed) for name in PARTS}
    touched = np.unique(np.concatenate([rows for rows, _, _ in known.values()]))
    if len(removed):
        touched = np.unique(np.concatenate([touched, removed, rows_with(old, removed)]))
    within = touched[touched < graph.nodes]
    starts, columns, weights = some_rows(old, within)
    keys, weights = merged(graph, np.repeat(within, np.diff(starts)) * nodes + columns, weights, known, nodes)
    if len(removed):
        left = ~(np.isin(keys // nodes, removed) | np.isin(keys % nodes, removed))
        keys, weights = keys[left], None if weights is None else weights[left]
    counts = np.zeros(nodes, np.int64)
    counts[: graph.nodes] = np.diff(old.indptr)
    counts[touched] = np.bincount(np.searchsorted(touched, keys // nodes), minlength=len(touched))
    new_of = None if number is None else np.concatenate([number, number.max() + 1 + np.arange(added)])
    now = joined(old, touched, counts, keys % nodes, weights, new_of)
    rows = touched if new_of is None else new_of[touched]
    return now, np.union1d(rows[rows >= 0], now.nodes - added + np.arange(added))


def entries_of(
    graph: Graph, changes: Changes, name: str, nodes: int, *, directed: bool
) -> tuple[Array, Array, Array | None]:
    """Return the entries (row, column, weight) of a set of edges, without doubles, in order."""
    edges: EdgeSet = getattr(changes, f"edges_{name}")
    gone, weights = name == "removed", edges.weights
    if not len(edges.source):
        return NO_IDS, NO_IDS, None
    check_ends_and_weights(graph, edges.source, edges.target, None if gone else weights, nodes, weighted=not gone)
    ends, local = np.unique(np.concatenate([edges.source, edges.target]), return_inverse=True)
    if not gone and len(lost := np.intersect1d(ends, changes.removed)):
        raise InputError(
            f"Node {spoken(graph, lost[0])} is removed, and an edge of it is {name}.\nLeave one of them out."
        )
    weights = None if gone else weights
    both, kind = np.split(local, 2), (not directed, gone)
    near = adjacency_from_edges(*both, nodes=len(ends), weights=weights, symmetric=kind[0], self_loops=kind[1])
    return np.repeat(ends, np.diff(near.indptr)), ends[near.indices], near.weights


def merged(
    graph: Graph, keys: Array, weights: Array | None, known: dict[str, tuple[Array, Array, Array | None]], nodes: int
) -> tuple[Array, Array | None]:
    """Return the entries of the touched rows after the changes, in order: keys are row·nodes + column."""
    if (np.diff(keys) < 0).any():  # a graph made elsewhere may have its neighbours in any order
        order = np.argsort(keys, kind="stable")
        keys, weights = keys[order], None if weights is None else weights[order]
    change = {name: row * nodes + column for name, (row, column, _) in known.items()}
    check_once(graph, change, nodes)
    place = {name: np.searchsorted(keys, some) for name, some in change.items()}
    there = {
        name: (place[name] < len(keys)) & (keys[np.minimum(place[name], len(keys) - 1)] == some if len(keys) else False)
        for name, some in change.items()
    }
    check_there(graph, change, there, nodes, weighted=weights is not None)
    if weights is not None and known["changed"][2] is not None:
        weights = weights.copy()
        weights[place["changed"]] = known["changed"][2]
    new, given = ~there["added"], known["added"][2]
    left = np.ones(len(keys), bool)
    left[place["removed"]] = False
    total = np.insert(keys, place["added"][new], change["added"][new])
    kept = np.insert(left, place["added"][new], True)
    if weights is None:
        return total[kept], None
    more = np.insert(weights, place["added"][new], [] if given is None else given[new])
    return total[kept], more[kept]


def check_once(graph: Graph, change: dict[str, Array], nodes: int) -> None:
    """Refuse edges of which two things are said."""
    for one, other in (("added", "changed"), ("added", "removed"), ("changed", "removed")):
        if len(both := np.intersect1d(change[one], change[other])):
            raise InputError(f"The edge {spoken_edge(graph, both[0], nodes)} is {one} and {other}.\nSay one of them.")


def check_there(graph: Graph, change: dict[str, Array], there: dict[str, Array], nodes: int, *, weighted: bool) -> None:
    """Refuse to change or remove edges that are not there, and to add weighted ones that are."""
    for name in ("changed", "removed"):
        if not there[name].all():
            missing = change[name][~there[name]][0]
            raise InputError(
                f"The edge {spoken_edge(graph, missing, nodes)} is to be {name}, and is not in the graph.\n"
                "Were its ends swapped, or the change made before?"
            )
    if weighted and there["added"].any():
        raise InputError(
            f"The edge {spoken_edge(graph, change['added'][there['added']][0], nodes)} is to be added, and is in the "
            "graph.\nWrite 'change' to give it another weight."
        )


def spoken(graph: Graph, node: int) -> str:
    """Name a node by its id."""
    if node >= graph.nodes:
        return "that is added"
    return f"'{node if graph.names is None else graph.names[node]}'"


def spoken_edge(graph: Graph, key: int, nodes: int) -> str:
    """Name an edge by the ids of its ends."""
    return f"from node {spoken(graph, int(key) // nodes)} to node {spoken(graph, int(key) % nodes)}"


def joined(
    old: Adjacency, touched: Array, counts: Array, columns: Array, weights: Array | None, new_of: Array | None
) -> Adjacency:
    """Put rows that are as they were and `touched` ones, with these columns, together, in the numbers `new_of`."""
    starts, own = (np.concatenate([[0], np.cumsum(some)]) for some in (counts, counts[touched]))
    total = len(counts) if new_of is None else int((new_of >= 0).sum())
    indices = np.empty(starts[-1], np.int32 if total < 2**31 else np.int64)
    values = None if old.weights is None else np.empty(starts[-1], np.float32)

    def put(at: int, found: Array, weighed: Array | None) -> None:
        indices[at : at + len(found)] = found if new_of is None else new_of[found]
        if values is not None and weighed is not None:
            values[at : at + len(found)] = weighed

    for place, (before, row) in enumerate(pairwise([-1, *touched.tolist(), len(counts)])):
        begin, end = (int(old.indptr[min(at, old.nodes)]) for at in (before + 1, row))
        for first, last in ranges(end - begin, ENTRIES_AT_ONCE):
            some = slice(begin + first, begin + last)
            put(int(starts[before + 1]) + first, old.indices[some], None if old.weights is None else old.weights[some])
        if place < len(touched):
            some = slice(own[place], own[place + 1])
            put(int(starts[row]), columns[some], None if weights is None else weights[some])
    indptr = starts if new_of is None else np.concatenate([[0], np.cumsum(counts[new_of >= 0])])
    return Adjacency(indptr, indices, values)


def some_rows(adjacency: Adjacency, rows: Array) -> tuple[Array, Array, Array | None]:
    """Return the entries of some rows: where each starts (n+1,), their columns int64, and their weights."""
    begin = np.asarray(adjacency.indptr[rows])
    counts = np.asarray(adjacency.indptr[rows + 1]) - begin
    starts = np.concatenate([[0], np.cumsum(counts)])
    places = np.arange(starts[-1]) + np.repeat(begin - starts[:-1], counts)
    weights = None if adjacency.weights is None else np.asarray(adjacency.weights[places])
    return starts, np.asarray(adjacency.indices[places], np.int64), weights


def rows_with(adjacency: Adjacency, columns: Array) -> Array:
    """Return the rows that have an entry in one of these columns; one pass over the indices."""
    wanted = np.zeros(adjacency.nodes, bool)
    wanted[columns] = True
    found = [NO_IDS]
    for first, last in ranges(adjacency.entries, ENTRIES_AT_ONCE):
        places = first + np.flatnonzero(wanted[adjacency.indices[first:last]])
        found.append(np.unique(np.searchsorted(adjacency.indptr, places, side="right") - 1))
    return np.unique(np.concatenate(found))
