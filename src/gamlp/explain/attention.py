"""What the attention over the hops learned: which nodes look how far.

The paper's heat map (section 4.6, "Interpretability"): 20 nodes are drawn from each of the degree ranges 1–4, 5–8 and
9–12, their weights averaged, and shown relative to the largest mean of the map. Twenty nodes are few, so the same means
are also given over all nodes: by degree, by class, and by whether a test node was predicted right.

The degree is the number of neighbours, whatever the edges weigh. Cost: one pass over the (R, K+1) weights each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gamlp.explain.finished_run import OpenedRun
from gamlp.storage.files import Array

Range = tuple[int, int | None]  # smallest and largest degree; None = no limit

PAPER_RANGES: tuple[Range, ...] = ((1, 4), (5, 8), (9, 12))
ALL_RANGES: tuple[Range, ...] = ((0, 0), *PAPER_RANGES, (13, 24), (25, 99), (100, None))


@dataclass(frozen=True, eq=False)
class Weights:
    """Mean attention of G groups of nodes."""

    title: str
    groups: tuple[str, ...]  # G names
    nodes: Array  # (G,) how many nodes each mean is over
    mean: Array  # (G, K+1); rows add up to 1

    @property
    def relative(self) -> Array:
        """The means divided by the largest of them."""
        return np.asarray(self.mean / max(float(self.mean.max(initial=0.0)), np.finfo(np.float64).tiny))


def explain_attention(run: OpenedRun, *, seed: int = 0) -> list[Weights]:
    """Return the paper's heat map, then the means over all nodes by degree, by right and wrong, and by class."""
    attention = run.needed_attention()
    return [
        heat_map(attention, run.degrees, seed=seed),
        by_degree(attention, run.degrees),
        by_outcome(attention[run.test], run.predicted[run.test] == run.labels[run.test]),
        by_class(attention, run.labels, run.graph.classes),
    ]


def heat_map(
    attention: Array, degrees: Array, *, ranges: Sequence[Range] = PAPER_RANGES, sample: int = 20, seed: int = 0
) -> Weights:
    """Return the mean weights of `sample` nodes drawn from each range.  attention (R, K+1), degrees (R,)."""
    random = np.random.default_rng([seed, 0xA77])
    members = {name_of(one): np.flatnonzero(within(degrees, one)) for one in ranges}
    drawn = {name: random.choice(ids, min(sample, len(ids)), replace=False) for name, ids in members.items()}
    return means("Attention by degree, 20 nodes each" if sample == 20 else "Attention by degree", attention, drawn)


def by_degree(attention: Array, degrees: Array, *, ranges: Sequence[Range] = ALL_RANGES) -> Weights:
    """Return the mean weights of all nodes of each range."""
    members = {name_of(one): np.flatnonzero(within(degrees, one)) for one in ranges}
    return means("Attention by degree, all nodes", attention, members)


def by_outcome(attention: Array, right: Array) -> Weights:
    """Return the mean weights of test nodes predicted right and wrong."""
    members = {"right": np.flatnonzero(right), "wrong": np.flatnonzero(~right)}
    return means("Attention of test nodes", attention, members)


def by_class(attention: Array, labels: Array, classes: Sequence[str]) -> Weights:
    """Return the mean weights of the nodes known to be of each class, in the order of the classes."""
    members = {name: np.flatnonzero(labels == number) for number, name in enumerate(classes)}
    return means("Attention by class", attention, members)


def means(title: str, attention: Array, members: dict[str, Array]) -> Weights:
    """Average the rows of each group; groups without a node are left out."""
    filled = {name: ids for name, ids in members.items() if len(ids)}
    average = [attention[ids].mean(axis=0, dtype=np.float64) for ids in filled.values()]
    return Weights(
        title,
        tuple(filled),
        np.array([len(ids) for ids in filled.values()], dtype=np.int64),
        np.array(average).reshape(len(filled), attention.shape[1]),
    )


def within(degrees: Array, limits: Range) -> Array:
    """Return which degrees lie in a range."""
    low, high = limits
    inside = degrees >= low
    return inside if high is None else inside & (degrees <= high)


def name_of(limits: Range) -> str:
    """Write a range: 1–4, 0, 100 and more."""
    low, high = limits
    return f"{low:,} and more" if high is None else f"{low:,}" if low == high else f"{low:,}–{high:,}"
