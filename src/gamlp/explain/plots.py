"""Pictures of what was learned, each as .png and .svg, with its numbers beside it as .csv.

Figures are made as objects, without pyplot: no global state, no display, nothing left open. The colours run from light
to dark blue-green in one direction (viridis, reversed), readable in grey and for colour-blind eyes.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gamlp.explain.attention import Weights
from gamlp.explain.receptive import Reach
from gamlp.storage.files import Array, replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gamlp.explain.hop_suitability import Suitability

COLOURS = "viridis_r"
MOST_ROWS = 60
SPARSE, DENSE = "#0072b2", "#d55e00"  # Okabe and Ito's blue and vermilion
LOOK: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "svg.hashsalt": "gamlp",  # the same picture is the same file
    "svg.fonttype": "none",
}


def write_attention(weights: Weights, stem: Path) -> list[Path]:
    """Draw mean attention as a heat map, groups × hops, relative to the largest mean.

    Of more groups than can be read the largest are drawn; the .csv has them all.
    """
    hops = weights.mean.shape[1]
    values = [
        (group, int(count), *(f"{value:.6f}" for value in row))
        for group, count, row in zip(weights.groups, weights.nodes, weights.mean, strict=True)
    ]
    table = write_csv(stem, ("group", "nodes", *(f"hop {hop}" for hop in range(hops))), values)

    drawn = np.sort(np.argsort(-weights.nodes, kind="stable")[:MOST_ROWS])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        names = [plain(weights.groups[group]) + count_of(int(weights.nodes[group])) for group in drawn]
        columns = [str(hop) for hop in range(hops)]
        heat(axes, weights.relative[drawn], rows=names, columns=columns, label="relative weight")
        axes.set(title=weights.title, xlabel="hop", ylabel=ylabel_of(weights))

    size = (max(5.2, 2.9 + 0.62 * hops), 1.5 + 0.34 * max(3, len(drawn)))
    return [*save(stem, draw, size=size), table]


def ylabel_of(weights: Weights) -> str:
    """Say what the groups are."""
    words = weights.title.lower()
    if "relation" in words:
        return "subset of the relations"
    return "degree (nodes)" if "degree" in words else "class (nodes)" if "class" in words else "predicted (nodes)"


def count_of(nodes: int) -> str:
    """Write how many nodes a mean is over; a subset of relations is over none."""
    return f"  ({nodes:,})" if nodes else ""


def write_reach(regions: Sequence[Reach], stem: Path) -> list[Path]:
    """Draw the share of the graph within each number of hops, a line per node and a thick one for the mean."""
    hops = regions[0].shares.shape[1]
    rows = [
        (reach.region, int(start), int(degree), *(f"{share:.8f}" for share in shares))
        for reach in regions
        for start, degree, shares in zip(reach.starts, reach.degrees, reach.shares, strict=True)
    ]
    table = write_csv(stem, ("region", "node", "degree", *(f"within {hop}" for hop in range(hops))), rows)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for reach, colour, marker in zip(regions, (SPARSE, DENSE), "os", strict=False):
            axes.plot(100 * reach.shares.T, color=colour, alpha=0.2, linewidth=1)
            low, high = int(reach.degrees.min()), int(reach.degrees.max())
            spread = f"{low:,}" if low == high else f"{low:,}–{high:,}"
            mean = 100 * reach.shares.mean(axis=0)
            axes.plot(mean, color=colour, marker=marker, linewidth=2.2, label=f"{reach.region}: degree {spread}")
        axes.set(title="How far nodes see", xlabel="hops", ylabel="share of the graph, %", xticks=range(hops))
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", alpha=0.25)
        axes.legend(frameon=False)

    return [*save(stem, draw, size=(5.6, 3.6)), table]


def write_suitability(found: Suitability, stem: Path) -> list[Path]:
    """Draw the share of runs that are right, hops × nodes, from white to blue as the paper does."""
    hops = [str(hop) for hop in range(len(found.shares))]
    rows = [
        (name, int(node), *(f"{share:.4f}" for share in shares))
        for name, node, shares in zip(found.names, found.nodes, found.shares.T, strict=True)
    ]
    table = write_csv(stem, ("id", "node", *(f"hop {hop}" for hop in hops)), rows)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        names = [plain(name, length=20) for name in found.names]
        heat(axes, found.shares, rows=hops, columns=names, label="share of runs that are right", colours="Blues", low=0)
        axes.tick_params(axis="x", rotation=90)
        axes.invert_yaxis()
        axes.set(title=f"How many hops suit a node: SGC, {found.runs} runs", xlabel="test node", ylabel="hops")

    return [*save(stem, draw, size=(2.4 + 0.34 * max(10, len(found.nodes)), 2.6 + 0.3 * len(hops))), table]


def heat(
    axes: Axes,
    values: Array,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    label: str,
    colours: str = COLOURS,
    low: float | None = None,
) -> None:
    """Draw values in [0, 1] as coloured cells, each written out where there is room.

    Unless told otherwise the colours begin at the tenth below the smallest value: weights that differ by a few
    hundredths still tell apart.
    """
    low = min(0.9, np.floor(10 * float(values.min(initial=1.0))) / 10) if low is None else low
    image = axes.imshow(values, cmap=colours, vmin=low, vmax=1, aspect="auto")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(len(columns) - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)
    if len(columns) <= 12:
        for (row, column), value in np.ndenumerate(values):
            ink = "white" if value > (1 + low) / 2 else "black"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=8)
    axes.figure.colorbar(image, ax=axes, label=label, fraction=0.05, pad=0.02, aspect=25)


def save(stem: Path, draw: Any, *, size: tuple[float, float]) -> list[Path]:
    """Make a figure of `size` inches, let `draw` fill it, and write both forms."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    files = []
    with mpl.rc_context(LOOK), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names in a script the font does not have
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        for ending, options in ((".png", {"dpi": 160}), (".svg", {"metadata": {"Date": None}})):
            file = stem.with_name(stem.name + ending)
            with replacing(file) as out:
                figure.savefig(out, format=ending[1:], **options)
            files.append(file)
    return files


def write_csv(stem: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write the numbers of a picture."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    file = stem.with_name(stem.name + ".csv")
    with replacing(file) as out:
        out.write(text.getvalue().encode())
    return file


def plain(text: str, *, length: int = 32) -> str:
    """Shorten a name, and keep its $ from being read as a formula."""
    return (text if len(text) <= length else text[: length - 1] + "…").replace("$", r"\$")
