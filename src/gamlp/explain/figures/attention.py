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

from gamlp.explain.figures.cells import Cells, heat_chart
from gamlp.explain.figures.chart import Chart
from gamlp.explain.finished_run import FinishedRun
from gamlp.storage.files import Array

Range = tuple[int, int | None]  # smallest and largest degree; None = no limit

PAPER_RANGES: tuple[Range, ...] = ((1, 4), (5, 8), (9, 12))
ALL_RANGES: tuple[Range, ...] = ((0, 0), *PAPER_RANGES, (13, 24), (25, 99), (100, None))


@dataclass(frozen=True, eq=False)
class Weights:
    """Mean attention of G groups of nodes."""

    name: str  # of the figure's files
    title: str
    groups: tuple[str, ...]  # G names
    nodes: Array  # (G,) how many nodes each mean is over
    mean: Array  # (G, K+1); rows add up to 1

    @property
    def relative(self) -> Array:
        """The means divided by the largest of them."""
        return np.asarray(self.mean / max(float(self.mean.max(initial=0.0)), np.finfo(np.float64).tiny))


def charts(run: FinishedRun) -> list[Chart]:
    """Draw the heat maps of a method that weighs hops; groups that have no node are left out."""
    return [] if run.attention is None else [weights_chart(one) for one in explain_attention(run) if one.groups]


def weights_chart(weights: Weights, *, ylabel: str = "", note: str = "") -> Chart:
    """Draw mean weights, groups × hops; the colours begin at the tenth below the smallest relative weight."""
    relative = weights.relative
    low = min(0.9, float(np.floor(10 * relative.min(initial=1.0)) / 10))
    columns = [f"hop {hop}" for hop in range(relative.shape[1])]
    texts = [[f"{value:.3f}" for value in row] for row in weights.mean]
    cells = Cells(weights.groups, weights.nodes.tolist(), columns, texts, shares=(relative - low) / (1 - low))
    rows = [
        (group, count, *(f"{value:.6f}" for value in row))
        for group, count, row in zip(weights.groups, cells.nodes, weights.mean, strict=True)
    ]
    header = ("group", "nodes", *columns)
    return heat_chart(weights.name, weights.title, cells, ylabel=ylabel, header=header, rows=rows, note=note)


def explain_attention(run: FinishedRun, *, seed: int = 0) -> list[Weights]:
    """Return the paper's heat map, then the means over all nodes by degree, by right and wrong, and by class."""
    attention = run.needed_attention()
    return [
        heat_map(attention, run.degrees, seed=seed),
        by_degree(attention, run.degrees),
        by_outcome(attention[run.test], run.right),
        by_class(attention, run.labels, run.classes),
    ]


def heat_map(attention: Array, degrees: Array, *, sample: int = 20, seed: int = 0) -> Weights:
    """Return the mean weights of `sample` nodes drawn from each range.  attention (R, K+1), degrees (R,)."""
    random = np.random.default_rng([seed, 0xA77])
    members = by_range(degrees, PAPER_RANGES)
    drawn = {name: random.choice(ids, min(sample, len(ids)), replace=False) for name, ids in members.items()}
    return means("attention", f"Attention by degree, {sample} nodes each", attention, drawn)


def by_degree(attention: Array, degrees: Array) -> Weights:
    """Return the mean weights of all nodes of each range."""
    return means("attention-by-degree", "Attention by degree, all nodes", attention, by_range(degrees, ALL_RANGES))


def by_outcome(attention: Array, right: Array) -> Weights:
    """Return the mean weights of test nodes predicted right and wrong."""
    members = {"right": np.flatnonzero(right), "wrong": np.flatnonzero(~right)}
    return means("attention-right-and-wrong", "Attention of test nodes", attention, members)


def by_class(attention: Array, labels: Array, classes: Sequence[str]) -> Weights:
    """Return the mean weights of the nodes known to be of each class, in the order of the classes."""
    members = {name: np.flatnonzero(labels == number) for number, name in enumerate(classes)}
    return means("attention-by-class", "Attention by class", attention, members)


def means(name: str, title: str, attention: Array, members: dict[str, Array]) -> Weights:
    """Average the rows of each group; groups without a node are left out."""
    filled = {group: ids for group, ids in members.items() if len(ids)}
    average = [attention[ids].mean(axis=0, dtype=np.float64) for ids in filled.values()]
    nodes = np.array([len(ids) for ids in filled.values()], dtype=np.int64)
    return Weights(name, title, tuple(filled), nodes, np.array(average).reshape(len(filled), attention.shape[1]))


def by_range(degrees: Array, ranges: Sequence[Range]) -> dict[str, Array]:
    """Return where the degrees of each range stand, by its name."""
    return {
        name_of((low, high)): np.flatnonzero((degrees >= low) & (degrees <= (np.inf if high is None else high)))
        for low, high in ranges
    }


def name_of(limits: Range) -> str:
    """Write a range: 1–4, 0, 100 and more."""
    low, high = limits
    return f"{low:,} and more" if high is None else f"{low:,}" if low == high else f"{low:,}–{high:,}"
