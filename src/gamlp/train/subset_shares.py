"""What each relation subset, and each relation, has in what the network reads.

    share[l, s] = Σ_f |weight_s[l, f]| · rms_s[l, f]  /  the same summed over the subsets

rms is the root mean square of the hop over (at most a thousand) training nodes, so that a large weight of a hop that is
nearly zero counts little. A relation has an equal part of the share of each of its subsets: all relations together have
1, as all subsets have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gamlp.model import Network
from gamlp.propagate.hops import Hops
from gamlp.propagate.subsets import Subset, shelf_of
from gamlp.storage.files import Array

NODES = 1000


def subset_shares(network: Network, hops: Hops, train: Array, subsets: Sequence[Subset]) -> dict[str, Any]:
    """Return the subsets and relations by name, and their shares in each hop; nothing where there are no subsets."""
    if network.mixer is None:
        return {}
    chosen = train[:: max(1, len(train) // NODES)]
    rows = chosen if hops.rows is None else np.searchsorted(hops.rows, chosen)
    shelf = shelf_of(hops)
    values = hops.values[rows] if shelf is None else shelf.take(rows)
    size = np.sqrt(np.square(values.astype(np.float64)).mean(axis=0))  # (S, K+1, F)
    weights = np.stack([weight.detach().abs().cpu().numpy() for weight in network.mixer.weights])
    total = (weights * size).sum(axis=2)  # (S, K+1)
    shares = total / np.maximum(total.sum(axis=0), np.finfo(np.float64).tiny)
    names, each = relation_shares(subsets, shares)
    return {
        "subsets": [" + ".join(subset) for subset in subsets],
        "weights": shares.tolist(),
        "relations": names,
        "relation_weights": each.tolist(),
    }


def relation_shares(subsets: Sequence[Subset], shares: Array) -> tuple[list[str], Array]:
    """Return the relations and their shares in each hop.  shares (S, K+1) → (relations, K+1)."""
    names = list(dict.fromkeys(name for subset in subsets for name in subset))
    parts = np.array([[(name in subset) / len(subset) for subset in subsets] for name in names])  # (relations, S)
    return names, parts @ shares
