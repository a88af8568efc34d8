"""Charts that are tables at heart: heat maps, and bars beside their numbers.

A cell has its number as text and a share in [0, 1], which is how strongly it is coloured, or how long its bar is: on
the page by the style sheet, in a picture by the opacity of one colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from gamlp.explain.figures.chart import BAR, HEAT, INK, SECOND, Axes, Chart, label
from gamlp.storage.files import Array

Bar = tuple[str, int, str, float]  # name, over how many nodes (or 0), text, share
MOST_ROWS = 60  # in a picture
LONGEST_UPRIGHT = 20  # letters of a column's name in a picture
STRONG = 0.65  # from this share on a cell needs light ink


@dataclass(frozen=True, eq=False)
class Cells:
    """G rows of M cells."""

    rows: Sequence[str]  # G names
    nodes: Sequence[int]  # (G,) how many nodes a row is over; 0 = it is not over nodes
    columns: Sequence[str]  # M names
    texts: Sequence[Sequence[str]]  # (G, M)
    shares: Array  # (G, M)
    framed: bool = False  # whether the cells (i, i) are framed
    style: str = "heat"  # or bars: a class of the style sheet

    def names(self) -> list[str]:
        """Return the rows' names with their counts, short enough for a picture."""
        counts = [f"  ({nodes:,})" if nodes else "" for nodes in self.nodes]
        return [label(row) + count for row, count in zip(self.rows, counts, strict=True)]

    def lines(self) -> Iterator[tuple[str, int, list[dict[str, str]]]]:
        """Yield name, nodes and cells of each row, as the page's template wants them."""
        for row, (name, nodes, texts) in enumerate(zip(self.rows, self.nodes, self.texts, strict=True)):
            yield name, nodes, [self.cell(row, column, text) for column, text in enumerate(texts)]

    def cell(self, row: int, column: int, text: str) -> dict[str, str]:
        """Return one cell for the template."""
        share = self.shares[row, column]
        found = {"framed": self.framed and row == column, "strong": self.style == "heat" and share > STRONG}
        classes = " ".join(name for name, wanted in found.items() if wanted)
        return {"text": text, "percent": f"{100 * share:.0f}", "classes": classes}

    def largest(self) -> Cells:
        """Return as many rows as a picture holds, those over the most nodes, in the same order."""
        if len(self.rows) <= MOST_ROWS:
            return self
        chosen = np.sort(np.argsort(-np.asarray(self.nodes), kind="stable")[:MOST_ROWS])
        pick = itemgetter(*chosen)
        rows, nodes, texts = pick(self.rows), pick(self.nodes), pick(self.texts)
        return replace(self, rows=rows, nodes=nodes, texts=texts, shares=self.shares[chosen])


def heat_chart(name: str, title: str, cells: Cells, *, xlabel: str = "", ylabel: str = "", **options: Any) -> Chart:
    """Return a heat map; of more rows than can be read the picture has those over the most nodes."""
    shown = cells.largest()
    longest = max(map(len, shown.columns), default=0)
    upright = longest > 6
    width = 1 + 0.08 * max(map(len, shown.names()), default=0) + (0.38 if upright else 0.46) * len(shown.columns)
    height = 0.9 + 0.28 * max(3, len(shown.rows)) + (0.08 * min(longest, LONGEST_UPRIGHT) if upright else 0)

    def draw(axes: Axes) -> None:
        draw_heat(axes, shown)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.tick_params(axis="x", rotation=90 if upright else 0)

    return Chart(name, title, draw=draw, size=(max(4.6, width), height), cells=cells, **options)


def draw_heat(axes: Axes, cells: Cells) -> None:
    """Draw cells in one colour, the larger the share the stronger, each with its text."""
    from matplotlib.colors import to_rgba_array
    from matplotlib.patches import Rectangle

    rows, columns = cells.shares.shape
    colours = to_rgba_array([HEAT] * cells.shares.size, np.clip(cells.shares, 0, 1).ravel()).reshape(rows, columns, 4)
    axes.pcolormesh(np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5, colours)
    axes.hlines(np.arange(rows - 1) + 0.5, -0.5, columns - 0.5, color="white", linewidth=1.5)
    axes.vlines(np.arange(columns - 1) + 0.5, -0.5, rows - 0.5, color="white", linewidth=1.5)
    for (row, column), share in np.ndenumerate(cells.shares):
        ink = "white" if share > STRONG else INK
        axes.text(column, row, cells.texts[row][column], ha="center", va="center", color=ink, fontsize=8)
    for at in range(min(rows, columns) if cells.framed else 0):
        axes.add_patch(Rectangle((at - 0.44, at - 0.42), 0.88, 0.84, fill=False, edgecolor=SECOND, linewidth=1.3))
    axes.set_xticks(range(columns), [label(name, length=LONGEST_UPRIGHT) for name in cells.columns])
    axes.set_yticks(range(rows), cells.names())
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))


def bar_chart(
    name: str, title: str, bars: Sequence[Bar], header: Sequence[str], *, xlabel: str, **options: Any
) -> Chart:
    """Return horizontal bars, each with its text; the last name of the header is theirs."""
    names, nodes, texts, shares = zip(*bars, strict=True)
    cells = Cells(names, nodes, header[-1:], [[text] for text in texts], np.array(shares)[:, None], style="bars")
    shown = cells.largest()

    def draw(axes: Axes) -> None:
        places = range(len(shown.rows))
        drawn = axes.barh(places, shown.shares[:, 0], color=BAR)
        axes.bar_label(drawn, [row[0] for row in shown.texts], padding=3, fontsize=8)
        axes.set_yticks(places, shown.names())
        axes.invert_yaxis()
        axes.set(xlabel=xlabel, xlim=(0, 1.15), xticks=[])
        axes.tick_params(axis="y", length=0)

    size = 4.6, 0.7 + 0.24 * max(2, len(shown.rows))
    return Chart(name, title, header, draw=draw, size=size, cells=cells, **options)
