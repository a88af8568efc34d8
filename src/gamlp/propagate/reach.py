"""Which rows of the adjacency have an entry in one of some columns: whom a change of these nodes can reach in one hop.

Where edges go both ways these are the neighbours, read off their own rows; else, and where there are many of them, it
is one pass over all entries, which leaves a row at the first that is found.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gamlp.graph.build.changed_adjacency import some_rows
from gamlp.graph.graph import Adjacency
from gamlp.propagate.chunks import equal_work
from gamlp.storage.files import Array
from gamlp.storage.numba_cache import cached_njit
from gamlp.storage.threads import available, workers

FEW = 1 / 64  # of the entries: less is read off the rows of the nodes


def reached(adjacency: Adjacency, ids: Array, *, directed: bool) -> Array:
    """Return the rows with an entry in the columns `ids`, ascending."""
    degree = adjacency.indptr[ids + 1] - adjacency.indptr[ids]
    if not directed and degree.sum() < FEW * adjacency.entries + 1000:
        return marked(adjacency.nodes, some_rows(adjacency, ids)[1])
    wanted, found = np.zeros(adjacency.nodes, bool), np.zeros(adjacency.nodes, bool)
    wanted[ids] = True
    with workers() as run:
        tasks = equal_work(np.asarray(adjacency.indptr), 8 * available())
        run([partial(mark, adjacency.indptr, adjacency.indices, wanted, found, *some) for some in tasks])
    return np.flatnonzero(found)


def marked(nodes: int, *ids: Array) -> Array:
    """Return the nodes that are named anywhere, ascending: O(N) and no sorting."""
    found = np.zeros(nodes, bool)
    for some in ids:
        found[some] = True
    return np.flatnonzero(found)


@cached_njit
def mark(indptr: Array, indices: Array, wanted: Array, found: Array, first: int, last: int) -> None:
    """Set found[i] for rows first … last−1 that have an entry in a wanted column."""
    for row in range(first, last):
        for entry in range(indptr[row], indptr[row + 1]):
            if wanted[indices[entry]]:
                found[row] = True
                break
