"""What the attention over the hops learned: which nodes look how far.

The paper's heat map (section 4.6, "Interpretability"): 20 nodes are drawn from each of the degree ranges 1–4, 5–8 and
9–12, their weights averaged, and shown relative to the largest mean of the map. Twenty nodes are few, so the same means
are also given over all nodes: by degree, by class, and by whether a test node was predicted right.

The degree is the number of neighbours, whatever the edges weigh. Cost: one pass over the (R, K+1) weights each.

Whether weights rise or fall with the degree is said by Spearman's rank correlation, over the nodes with neighbours:

    ρ = correlation of the ranks of dᵢ and of mᵢ,     mᵢ = Σ_l l·wᵢˡ, the mean hop, or wᵢˡ, one hop's weight

with a two-sided p of ρ = 0, in every seed of the run. p takes the nodes for independent draws, which they are not:
neighbours share their hops, and a small p says that ρ is not an accident of few nodes, no more. Seeds share the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gamlp.explain.figures.cells import Cells, heat_chart
from gamlp.explain.figures.chart import Chart
from gamlp.explain.finished_run import FinishedRun
from gamlp.runs.seed import check_kept
from gamlp.storage.files import Array, read_array
from gamlp.targets.registry import kind_of

Range = tuple[int, int | None]  # smallest and largest degree; None = no limit
MOST_NODES = 2**20  # whose ranks are correlated: of more, so many are drawn
ACCIDENT = 0.05  # from this p on a correlation may be one
SLIGHT = 0.3  # below this a correlation is
VARIES = 1e-9  # by how much a measure must differ between nodes

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


@dataclass(frozen=True)
class Trend:
    """How a measure of the attention goes with the degree: its rank correlation and p in each seed."""

    measure: str  # mean hop, hop 0, …
    nodes: int
    correlations: tuple[float, ...]
    p_values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean correlation of the seeds."""
        return sum(self.correlations) / len(self.correlations)

    @property
    def p(self) -> str:
        """The largest p of the seeds, as it is written."""
        return "< 0.001" if max(self.p_values) < 0.001 else f"{max(self.p_values):.3f}"

    @property
    def agreeing(self) -> int:
        """In how many seeds the sign is that of the mean."""
        return sum((value > 0) == (self.mean > 0) for value in self.correlations)

    @property
    def seeds(self) -> str:
        """The same, of how many."""
        return f"{self.agreeing} of {len(self.correlations)}"

    @property
    def clear(self) -> bool:
        """Whether all seeds agree, and none by accident of few nodes."""
        return self.agreeing == len(self.correlations) and max(self.p_values) < ACCIDENT


def charts(run: FinishedRun) -> list[Chart]:
    """Draw the heat maps of a method that weighs hops, and its trends; groups that have no node are left out."""
    if run.attention is None:
        return []
    trends = seed_trends(run)
    notes = {"attention-by-degree": trend_sentence(trends[0])} if trends else {}
    maps = [weights_chart(one, note=notes.get(one.name, "")) for one in explain_attention(run) if one.groups]
    return maps + ([trend_chart(trends)] if trends else [])


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


def trend_chart(trends: Sequence[Trend]) -> Chart:
    """Draw the correlations, the stronger the colour the larger, of either sign."""
    columns = ("correlation", "p", "seeds of this sign")
    texts = [[f"{one.mean:+.3f}", one.p, one.seeds] for one in trends]
    shares = np.array([[abs(one.mean), 0, 0] for one in trends])
    cells = Cells([one.measure for one in trends], [one.nodes for one in trends], columns, texts, shares)
    rows = [(one.measure, one.nodes, *row) for one, row in zip(trends, texts, strict=True)]
    note = (
        "Spearman's rank correlation of a node's degree with its mean hop and with the weight of each hop, mean over "
        "the seeds, and the largest p. Neighbours share their hops, so nodes are not independent, and p is too small."
    )
    title, header = "Degree against attention", ("measure", "nodes", *columns)
    return heat_chart("attention-trend", title, cells, header=header, rows=rows, note=note)


def trend_sentence(trend: Trend) -> str:
    """Say how the mean hop goes with the degree, and no more than the numbers do."""
    way = ("slightly " if abs(trend.mean) < SLIGHT else "") + ("less" if trend.mean < 0 else "more")
    meaning = f"nodes with more neighbours look {way} far" if trend.clear else "no clear trend"
    sign = "<" if trend.p.startswith("<") else "="
    return (
        f"Rank correlation of degree and mean hop over {trend.nodes:,} nodes with neighbours: {trend.mean:+.3f} "
        f"(p {sign} {trend.p.removeprefix('< ')}, of this sign in {trend.seeds} seeds): {meaning}."
    )


def seed_trends(run: FinishedRun) -> list[Trend]:
    """Return the trends of the mean hop and of every hop over all seeds; of weights that do not vary there are none."""
    found: dict[str, list[tuple[int, float, float]]] = {}
    degrees = np.diff(run.graph.adjacency.indptr)
    for seed in run.record["seeds"]:
        place = run.folder / f"seed-{seed}"
        check_kept(place, names=("rows.npy", "attention.npy"))
        rows, attention = read_array(place / "rows.npy"), read_array(place / "attention.npy")
        for name, values in degree_trends(attention, degrees[rows]).items():
            found.setdefault(name, []).append(values)
    return [Trend(name, of[0][0], *zip(*(one[1:] for one in of), strict=True)) for name, of in found.items()]


def degree_trends(attention: Array, degrees: Array) -> dict[str, tuple[int, float, float]]:
    """Return nodes, rank correlation and p for every measure that varies.  attention (R, K+1), degrees (R,)."""
    nodes = np.flatnonzero(degrees > 0)
    if len(nodes) > MOST_NODES:
        nodes = np.random.default_rng(0).choice(nodes, MOST_NODES, replace=False)
    weights, degrees = attention[nodes].astype(np.float64), degrees[nodes]
    measures = {"mean hop": weights @ np.arange(weights.shape[1])}
    measures |= {f"hop {hop}": weights[:, hop] for hop in range(weights.shape[1])}
    if len(nodes) < 3 or not np.ptp(degrees):
        return {}
    varying = {name: values for name, values in measures.items() if np.ptp(values) > VARIES}
    return {name: (len(nodes), *rank_correlation(degrees, values)) for name, values in varying.items()}


def rank_correlation(x: Array, y: Array) -> tuple[float, float]:
    """Return Spearman's ρ and its p, that of t = ρ√((n−2)/(1−ρ²)), without scipy.stats, which takes long to import."""
    from scipy.special import stdtr

    rho = float(np.corrcoef(ranks(x), ranks(y))[0, 1].clip(-1, 1))
    with np.errstate(divide="ignore"):
        t = np.sqrt((len(x) - 2) / np.float64(1 - rho**2)) * abs(rho)
    return rho, float(2 * stdtr(len(x) - 2, -t))


def ranks(values: Array) -> Array:
    """Return the rank of each value; equal ones share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


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
    """Return the mean weights of the nodes known to be of each class, or to have each label, in their order."""
    members = dict(zip(classes, kind_of(labels).rows_of(labels, len(classes)), strict=True))
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
