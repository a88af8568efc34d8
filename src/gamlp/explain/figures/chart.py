"""A chart: its numbers once, and from them a picture (matplotlib), a .csv file and what the page shows.

The palette is the page's in light colours (page.css.j2); on the page each colour becomes the page's variable again, so
that a picture follows light and dark, and its text has the page's font. Charts that are tables at heart (`cells`) stand
on the page as tables, which a phone can scroll and a screen reader can read, shaded by the shares that also colour the
picture. Names came with the data: matplotlib escapes them, and what is parsed here is escaped again when it is written.

Figures are made as objects, without pyplot: no global state, no display, nothing left open.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree import ElementTree

from markupsafe import Markup

from gamlp.storage.files import replacing, write_text

if TYPE_CHECKING:
    import matplotlib.axes
    from matplotlib.figure import Figure

    from gamlp.explain.figures.cells import Cells

Axes: TypeAlias = "matplotlib.axes.Axes"  # by name: matplotlib is imported when a chart is drawn

INK, SOFT, LINE = "#1b2430", "#55606e", "#d5dbe2"
ACCENT, SECOND, BAR, HEAT = "#0b5cad", "#b8430a", "#5b93c9", "#0a4a8f"
PALETTE = {  # colour → variable of page.css.j2
    INK: "--ink", SOFT: "--soft", LINE: "--line", ACCENT: "--accent", SECOND: "--second", BAR: "--bar", HEAT: "--heat",
}  # fmt: skip
LOOK: dict[Any, Any] = {
    "font.size": 10, "font.family": "DejaVu Sans", "text.color": INK, "text.parse_math": False,  # names may hold $
    "axes.labelcolor": SOFT, "axes.edgecolor": LINE, "axes.facecolor": "none", "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "xtick.color": SOFT, "ytick.color": SOFT,
    "grid.color": LINE, "legend.frameon": False, "svg.fonttype": "none",
}  # fmt: skip
LONGEST_LABEL = 32
POINT = 4 / 3  # pixels of the page
COLOUR = re.compile("|".join(PALETTE))
FONT = re.compile(r"font:[^;]*?([\d.]+px)[^;]*")


@dataclass(frozen=True, eq=False)
class Chart:
    """One figure. `rows` are its numbers under the names in `header`, as the .csv has them."""

    name: str  # of its files
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    draw: Callable[[Axes], None]
    size: tuple[float, float] = (4.6, 3.0)  # inches
    note: str = ""  # a caption for the page
    cells: Cells | None = None  # what the page shows instead of the picture

    def svg(self) -> Markup:
        """Return the picture for the page: its title stands in the page, its colours are the page's."""
        text = io.StringIO()
        with drawn(self, title=False) as figure:
            figure.savefig(text, format="svg", facecolor="none")
        return themed(text.getvalue(), self.title)


def write_charts(charts: Iterable[Chart], folder: Path) -> list[Path]:
    """Write each chart as .png, .svg and .csv; return the files."""
    files = []
    for chart in charts:
        with drawn(chart) as figure:
            for ending, options in ((".png", {"dpi": 160}), (".svg", {"metadata": {"Date": None}})):
                files.append(folder / f"{chart.name}{ending}")
                with replacing(files[-1]) as out:
                    figure.savefig(out, format=ending[1:], facecolor="white", **options)
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([chart.header, *chart.rows])
        files.append(write_text(folder / f"{chart.name}.csv", text.getvalue()))
    return files


@contextmanager
def drawn(chart: Chart, *, title: bool = True) -> Iterator[Figure]:
    """Give the chart as a figure of matplotlib; the same chart gives the same file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    look = LOOK | {"svg.hashsalt": chart.name}  # ids differ between the pictures of one page
    with mpl.rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names in a script the font does not have
        figure = Figure(figsize=chart.size, layout="constrained")
        chart.draw(figure.subplots())
        if title:
            figure.suptitle(chart.title, x=0.01, ha="left", fontsize=11)
        yield figure


def themed(text: str, title: str) -> Markup:
    """Return an <svg> element for the page from a whole .svg file.

    Ids of groups are dropped; those that are referred to are hashes salted by the chart's name, so no two pictures
    share one. The style sheet would hold for the whole page, which has it in page.css.j2.
    """
    root = ElementTree.fromstring(text)  # noqa: S314 — matplotlib's own output
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        kept = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        if element.tag == "g":
            kept.pop("id", None)
        if "style" in kept:
            sized = FONT.sub(r"font-size: \1", kept["style"])
            kept["style"] = COLOUR.sub(lambda found: f"var({PALETTE[found[0]]})", sized)
        element.attrib = kept
    for parent, name in [*((definitions, "style") for definitions in root.findall("defs")), (root, "metadata")]:
        for child in parent.findall(name):
            parent.remove(child)
    box = root.attrib["viewBox"]
    width = float(box.split()[2]) * POINT
    root.attrib = {"viewBox": box, "role": "img", "aria-label": title, "style": f"max-width:{width:.0f}px"}
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # noqa: S704 — escaped by ElementTree


def label(text: str, *, length: int = LONGEST_LABEL) -> str:
    """Shorten a name, and replace what cannot be drawn: control characters, lone surrogates."""
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in text[: length + 1])
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def legend_above(axes: Axes) -> None:
    """Name the lines over the chart, where they hide nothing."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, handlelength=1.6)
