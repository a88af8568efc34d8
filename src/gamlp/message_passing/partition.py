"""Cut a graph into clusters of nearly equal size with few edges between them, for Cluster-GCN.

Nodes in breadth-first order are cut into equal clusters; then, round by round, nodes move to the cluster that holds
most of their neighbours, up to a largest size. O(E) a round, plus one (N, parts) sparse product.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from gamlp.message_passing.matrices import Matrix
from gamlp.storage.files import Array

SLACK = 1.2  # a cluster may grow to so many times its share


def clusters(matrix: Matrix, *, parts: int, rounds: int = 10) -> Array:
    """Return the cluster (0 … parts−1) of each node, (N,) int64."""
    nodes = matrix.shape[0]
    parts = min(parts, nodes)
    part = np.empty(nodes, dtype=np.int64)
    part[breadth_first(matrix)] = np.arange(nodes) * parts // nodes
    largest = int(np.ceil(SLACK * nodes / parts))
    for _ in range(rounds):
        if not move(matrix, part, parts=parts, largest=largest):
            break
    return part


def breadth_first(matrix: Matrix) -> Array:
    """Return all nodes, component after component, each in breadth-first order from its first node."""
    _, component = connected_components(matrix, directed=False)
    starts = np.unique(component, return_index=True)[1]
    return np.concatenate(
        [breadth_first_order(matrix, start, directed=False, return_predecessors=False) for start in starts]
    )


def move(matrix: Matrix, part: Array, *, parts: int, largest: int) -> int:
    """Move nodes to where most of their neighbours are, the surest gains first; return how many moved."""
    nodes = len(part)
    member = sp.csr_array((np.ones(nodes, np.float32), (np.arange(nodes), part)), shape=(nodes, parts))
    links = (matrix @ member).tocsr()  # (N, parts): weight of each node's edges into each cluster
    best = np.asarray(links.argmax(axis=1)).ravel()
    gain = np.asarray(links.max(axis=1).todense()).ravel() - np.asarray(links[np.arange(nodes), part]).ravel()
    size = np.bincount(part, minlength=parts)
    moved = 0
    for node in np.argsort(-gain, kind="stable")[: int((gain > 0).sum())]:
        if size[best[node]] < largest and size[part[node]] > 1:
            size[part[node]] -= 1
            size[best[node]] += 1
            part[node] = best[node]
            moved += 1
    return moved
