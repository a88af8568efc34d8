"""What each relation subset, and each relation, has in what the network reads.

    share[l, s] = Σ_f |weight_s[l, f]| · rms_s[l, f]  /  the same summed over the subsets

rms is the root mean square of the hop over (at most a thousand) training nodes, so that a large weight of a hop that is
nearly zero counts little. A relation has the mean over hops 1 … K of its subsets' shares, each shared out equally among
the relations of the subset: all relations together have 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gamlp.files import Array
from gamlp.model import Network
from gamlp.propagate.hops import Hops
from gamlp.propagate.subset_hops import shelf_of
from gamlp.propagate.subsets import Subset

NODES = 1000


def subset_shares(network: Network, hops: Hops, train: Array, subsets: Sequence[Subset]) -> list[dict[str, Any]]:
    """Return for each subset its relations and its share in each hop; nothing where there are no subsets."""
    if network.mixer is None:
        return []
    chosen = train[:: max(1, len(train) // NODES)]
    rows = chosen if hops.rows is None else np.searchsorted(hops.rows, chosen)
    shelf = shelf_of(hops)
    values = hops.values[rows] if shelf is None else shelf.take(rows)
    size = np.sqrt(np.square(values.astype(np.float64)).mean(axis=0))  # (S, K+1, F)
    weights = np.stack([weight.detach().abs().cpu().numpy() for weight in network.mixer.weights])
    total = (weights * size).sum(axis=2)  # (S, K+1)
    shares = total / np.maximum(total.sum(axis=0), np.finfo(np.float64).tiny)
    return [{"relations": list(subset), "shares": row.tolist()} for subset, row in zip(subsets, shares, strict=True)]


def relation_shares(subsets: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the share of each relation, the largest first."""
    found: dict[str, float] = {}
    for subset in subsets:
        share = float(np.mean(subset["shares"][1:] or subset["shares"]))
        for name in subset["relations"]:
            found[name] = found.get(name, 0.0) + share / len(subset["relations"])
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))
