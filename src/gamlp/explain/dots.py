"""One line a method: a dot for every seed, the mean with its standard deviation, and what was published.

Places across are shares of the width, heights are pixels: the picture fits a phone and a desk alike, and its words
keep their size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from gamlp.explain.charts import nice_ticks, percent, scale
from gamlp.explain.run_summary import Entry
from gamlp.explain.table import shortened

ROW, BOTTOM = 56, 26
LEFT, RIGHT = 7.0, 93.0  # % of the width


def dot_chart(entries: Sequence[Entry]) -> Markup:
    """Draw the test accuracies; nothing where none was tested."""
    tested = [entry for entry in entries if entry.tests]
    if not tested:
        return Markup("")
    ticks = nice_ticks(*limits(tested))
    across = scale(ticks[0], ticks[-1], LEFT, RIGHT)
    height = ROW * len(tested)
    parts = [mark for tick in ticks for mark in upright(across(tick), height, percent(tick))]
    for place, entry in enumerate(tested):
        parts += row(entry, across, ROW * place)
    head = Markup('<svg class="dots" width="100%" height="{}" role="img" aria-label="Test accuracy of each method">')
    return head.format(height + BOTTOM) + Markup("").join(parts) + Markup("</svg>")


def limits(entries: Sequence[Entry]) -> tuple[float, float]:
    """Return the smallest and largest value that is drawn."""
    values: list[float] = []
    for entry in entries:
        values += entry.tests.values()
        mean, std = entry.result["test_accuracy"], entry.result["test_accuracy_std"] or 0
        values += [mean - std, mean + std]
        if entry.published is not None:
            spread = entry.published_std or 0
            values += [entry.published - spread, entry.published + spread]
    return max(0.0, min(values)), min(1.0, max(values))


def row(entry: Entry, across: Callable[[float], float], top: int) -> list[Markup]:
    """Draw one method: its name, and beneath it the dots."""
    middle = top + 30
    mean, std = entry.result["test_accuracy"], entry.result["test_accuracy_std"]
    words = Markup('<text x="0" y="{}"><tspan class="name">{}</tspan> {}</text>')
    parts = [words.format(top + 16, shortened(entry.name), hundredths(mean, std))]
    if entry.published is not None:
        parts += published(entry, across, middle + 9)
    if std is not None:
        parts.append(level("", across(mean - std), across(mean + std), middle))
    dot = Markup('<circle class="{}" cx="{:.2f}%" cy="{}" r="{}"><title>{}</title></circle>')
    for seed, value in entry.tests.items():
        parts.append(dot.format("seed", across(value), middle, 3, f"{entry.name}, seed {seed}: {hundredths(value)}"))
    parts.append(dot.format("mean", across(mean), middle, 5.5, f"{entry.name}: {hundredths(mean, std)}"))
    return parts


def published(entry: Entry, across: Callable[[float], float], y: int) -> list[Markup]:
    """Draw a diamond at the published mean, and a line for its spread."""
    assert entry.published is not None
    mean, std = entry.published, entry.published_std
    parts = [level("published", across(mean - std), across(mean + std), y)] if std else []
    words = f"{entry.name}, published: {hundredths(mean, std)}"
    shape = Markup(
        '<svg x="{:.2f}%" y="{}" width="1" height="1" overflow="visible"><path d="M0-5 5 0 0 5-5 0z"><title>{}</title>'
        "</path></svg>"
    )
    return [*parts, shape.format(across(mean), y, words)]


def level(style: str, start: float, end: float, y: int) -> Markup:
    """Draw a line across."""
    return Markup('<line class="{}" x1="{:.2f}%" y1="{}" x2="{:.2f}%" y2="{}"/>').format(style, start, y, end, y)


def upright(x: float, height: int, words: str) -> list[Markup]:
    """Draw a line from top to bottom, and its number beneath."""
    return [
        Markup('<line class="rule" x1="{0:.2f}%" y1="0" x2="{0:.2f}%" y2="{1}"/>').format(x, height),
        Markup('<text x="{:.2f}%" y="{}" text-anchor="middle">{}</text>').format(x, height + 18, words),
    ]


def hundredths(mean: float, std: float | None = None) -> str:
    """Write a share as 84.31 ± 0.52 %."""
    return f"{100 * mean:.2f}" + ("" if std is None else f" ± {100 * std:.2f}") + " %"
