"""The cells of an experiment as tables: Markdown to read, CSV to compute with, and a page.

With several columns an overview comes first, test accuracy beside the published one; then each column on its own, with
validation, seconds and parameters. A cell more than half a point below what was published is marked ▾. The numbers of
a chart that something is said of stand below; the page has the chart itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gamlp.explain.figures.chart import ACCENT, BAR, INK, SECOND, SOFT, Chart, legend_above, write_charts
from gamlp.explain.report import render_page
from gamlp.runs.comparison_table import as_csv, markdown_table, percent, told_apart
from gamlp.storage.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEADER = ("method", "valid, %", "published", "test, %", "published", "s/seed", "parameters")
FEWEST = 5  # rows with a published value whose order says something
BELOW = 0.005  # from how far below the published value on a cell is marked

STYLES: list[dict[str, Any]] = [
    {"color": colour, "marker": marker}
    for colour, marker in zip((SOFT, BAR, INK, SECOND, ACCENT), "s^Do*", strict=True)
]

Table = tuple[str, Sequence[str], list[list[str]]]  # title, header, rows


def write_results(result: Mapping[str, Any], folder: Path, charts: Sequence[Chart] = ()) -> list[Path]:
    """Write table.md, table.csv, report.html and the charts; return the files."""
    charts = [*charts, *by_number(result["cells"])]
    rows = [{key: value for key, value in cell.items() if key != "set"} for cell in result["cells"]]
    texts = {"table.md": markdown(result), "table.csv": as_csv(rows), "report.html": page(result, charts)}
    return [*(write_text(folder / name, text) for name, text in texts.items()), *write_charts(charts, folder)]


def markdown(result: Mapping[str, Any]) -> str:
    """Return all tables with their titles."""
    parts = [f"# {result['title']}", footnote(result)]
    for title, header, rows in tables(result):
        parts += [f"## {title}", markdown_table(header, rows)]
    for chart in result.get("charts", []):
        rows = [list(map(str, row)) for row in chart["rows"]]
        parts += [f"## {chart['title']}", markdown_table(chart["header"], rows), chart["note"]]
    return "\n\n".join(parts) + "\n"


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Return the overview, where there are several columns, and a table a column."""
    cells = result["cells"]
    columns = list(dict.fromkeys(cell["column"] for cell in cells))
    found = [relative_table(cells)] if result["relative"] else []
    if len(columns) > 1:
        found.append(overview(cells, columns))
    for column in columns:
        rows = [full_row(cell) for cell in cells if cell["column"] == column]
        found.append((f"{column} hops" if column.isdecimal() else column, HEADER, rows))
    return found


def overview(cells: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """Return rows × columns of test accuracy, with the published one in brackets."""
    at = {(cell["row"], cell["column"]): cell for cell in cells}
    names = dict.fromkeys(cell["row"] for cell in cells)
    title = "Test accuracy (published)" if any(cell["published_test"] for cell in cells) else "Test accuracy"
    rows = [[name, *(beside(at.get((name, column))) for column in columns)] for name in names]
    shares = [first_share([cell for cell in cells if cell["column"] == column]) for column in columns]
    if any(shares):
        rows.append(["(largest class)", *(percent(share, None) for share in shares)])
    return title, ("method", *columns), rows


def first_share(cells: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the share of the largest class among the test nodes of a column."""
    return next((share for cell in cells if (share := cell.get("test_largest_class")) is not None), None)


def beside(cell: Mapping[str, Any] | None) -> str:
    """Write 84.31 ± 0.52 (84.3), marked where it is below; – where it was left out."""
    if cell is None:
        return "–"
    measured = percent(cell["test_accuracy"], cell["test_accuracy_std"]) + mark(cell)
    published = cell["published_test"]
    return (measured if published is None else f"{measured} ({100 * published:.1f})") + fewer_seeds(cell)


def fewer_seeds(cell: Mapping[str, Any]) -> str:
    """Say so where a cell has not as many seeds as the table."""
    return f", {cell['seeds']} of the seeds" if cell.get("seeds") else ""


def mark(cell: Mapping[str, Any]) -> str:
    """Return ▾ for a test accuracy clearly below the published one."""
    measured, published = cell["test_accuracy"], cell["published_test"]
    return " ▾" if None not in (measured, published) and measured < published - BELOW else ""


def full_row(cell: Mapping[str, Any]) -> list[str]:
    """Return all that is known of a cell, in the order of HEADER."""
    return [
        cell["row"] + fewer_seeds(cell),
        percent(cell["valid_accuracy"], cell["valid_accuracy_std"]),
        percent(cell["published_valid"], cell["published_valid_std"]),
        percent(cell["test_accuracy"], cell["test_accuracy_std"]) + mark(cell),
        percent(cell["published_test"], cell["published_test_std"]),
        f"{cell['seconds']:.1f}",
        f"{cell['parameters']:,}",
    ]


def relative_table(cells: Sequence[Mapping[str, Any]]) -> Table:
    """Return the seconds of each row relative to the first."""
    first = cells[0]["seconds"]
    rows = [
        [
            cell["row"],
            f"{cell['seconds'] / first:.1f}",
            "–" if cell["published_time"] is None else f"{cell['published_time']:g}",
        ]
        for cell in cells
    ]
    return "Training time", ("method", f"relative to {cells[0]['row']}", "published"), rows


def footnote(result: Mapping[str, Any]) -> str:
    """Say where it comes from and what the numbers are."""
    count = len(result["seeds"])
    spread = f"Mean ± std over {count} seeds" if count > 1 else "One seed"
    took = sum(cell["seconds"] * (cell.get("seeds") or count) for cell in result["cells"]) / 60
    whole = f", {took:.0f} min in all" if took >= 1 else ""
    said = f"Source: {result['source']}. {spread}. Seconds are of training{whole}."
    return said + gaps(result["cells"]) + order_of(result["cells"]) + told_apart(result["cells"])


def gaps(cells: Sequence[Mapping[str, Any]]) -> str:
    """Say which cells are marked, and by how many points they are below."""
    below: dict[str, list[str]] = {}
    for cell in filter(mark, cells):
        points = 100 * (cell["published_test"] - cell["test_accuracy"])
        below.setdefault(cell["row"], []).append(f"{cell['column']} {points:.1f}")
    told = "; ".join(f"{row} {', '.join(columns)}" for row, columns in below.items())
    return f" ▾: over half a point below the published, by so many points: {told}." if told else ""


def order_of(cells: Sequence[Mapping[str, Any]]) -> str:
    """Say how far the order of the rows is the published one: Spearman's rank correlation, a column each."""
    from scipy.stats import spearmanr

    told = []
    for column in dict.fromkeys(cell["column"] for cell in cells):
        rows = [cell for cell in cells if cell["column"] == column and cell["published_test"] is not None]
        if len(rows) >= FEWEST:
            ours, theirs = ([cell[key] for cell in rows] for key in ("test_accuracy", "published_test"))
            told.append(f"{column} {spearmanr(ours, theirs).statistic:+.2f}")
    return f" Rank correlation with the published order of the rows: {', '.join(told)}." if told else ""


def page(result: Mapping[str, Any], charts: Sequence[Chart]) -> str:
    """Return one page with the figures and the tables."""
    content = {
        "title": result["title"],
        "introduction": footnote(result),
        "tables": tables(result),
        "charts": charts,
        "command": result["command"],
    }
    return render_page("paper.html.j2", content, scripts=[])


def by_number(cells: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Draw test accuracy against the columns, a line a row, where the columns are numbers."""
    columns = list(dict.fromkeys(cell["column"] for cell in cells))
    if len(columns) < 2 or not all(column.isdecimal() for column in columns):
        return []
    lines = {
        name: [cell for cell in cells if cell["row"] == name] for name in dict.fromkeys(cell["row"] for cell in cells)
    }

    def draw(axes: Axes) -> None:
        for (name, points), style in zip(lines.items(), cycle(STYLES), strict=False):
            accuracy = [100 * point["test_accuracy"] for point in points]
            axes.plot([int(point["column"]) for point in points], accuracy, **style, label=name)
        axes.set(xlabel="hops", ylabel="test accuracy, %", xscale="log")
        axes.set_xticks([int(column) for column in columns], columns)
        axes.minorticks_off()
        axes.grid(axis="y")
        legend_above(axes)

    rows = [(name, *(f"{point['test_accuracy']:.6f}" for point in points)) for name, points in lines.items()]
    return [Chart("accuracy", "Test accuracy", ("method", *columns), rows, draw, size=(6.4, 3.6))]
