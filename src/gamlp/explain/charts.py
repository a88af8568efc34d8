"""Two small charts as inline SVG: lines over epochs, and bars of calibration.

Colours come from the page's style sheet, so that a chart follows light and dark. All text goes through `escape`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from gamlp.explain.calibration import Calibration

WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 54, 24, 12, 38
MOST_POINTS = 400


@dataclass(frozen=True)
class Line:
    """One line of a chart; `style` is a class of the style sheet."""

    name: str
    style: str
    points: Sequence[tuple[float, float]]


def line_chart(
    title: str, lines: Sequence[Line], unit: Callable[[float], str], *, marks: Sequence[tuple[float, str]] = ()
) -> Markup:
    """Draw lines over epochs; `marks` are upright rules with a word, where a stage begins."""
    points = [point for line in lines for point in line.points if math.isfinite(point[1])]
    if not points:
        return Markup("")
    xs, ys = zip(*points, strict=True)
    ticks = nice_ticks(min(ys), max(ys))
    across = scale(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    up = scale(ticks[0], ticks[-1], HEIGHT - BOTTOM, TOP)
    parts = [*grid(ticks, up, unit), *epochs(min(xs), max(xs), across)]
    for x, word in marks:
        parts.append(rule("mark", across(x), TOP, across(x), HEIGHT - BOTTOM))
        parts.append(label(across(x) + 4, TOP + 10, word, anchor="start"))
    for line in lines:
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in thinned(line.points) if math.isfinite(y))
        shape = Markup('<polyline class="line {}" points="{}"><title>{}</title></polyline>')
        parts.append(shape.format(line.style, path, line.name))
    return svg(title, parts)


def reliability_chart(found: Calibration) -> Markup:
    """Draw the share that is right in each bin of confidence, beside the diagonal where both are equal."""
    across, up = scale(0, 1, LEFT, WIDTH - RIGHT), scale(0, 1, HEIGHT - BOTTOM, TOP)
    parts = grid([0, 0.25, 0.5, 0.75, 1], up, percent)
    for low, high, nodes, sure, right in zip(
        found.edges[:-1], found.edges[1:], found.nodes, found.confidence, found.right, strict=True
    ):
        if not nodes:
            continue
        left, right_end = across(low) + 2, across(high) - 2
        words = f"Confidence {percent(sure)}: {percent(right)} of {nodes:,} nodes are right"
        parts.append(bar(left, right_end, up(right), up(0), words))
        parts.append(rule("sure", left, up(sure), right_end, up(sure)))
    parts.append(rule("mark", across(0), up(0), across(1), up(1)))
    for tick in (0, 0.25, 0.5, 0.75, 1):
        parts.append(label(across(tick), HEIGHT - BOTTOM + 16, percent(tick)))
    parts.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, "confidence"))
    return svg("Share of right predictions by confidence", parts)


def grid(ticks: Sequence[float], up: Callable[[float], float], unit: Callable[[float], str]) -> list[Markup]:
    """Draw the level lines and their numbers."""
    parts = []
    for tick in ticks:
        parts.append(rule("grid", LEFT, up(tick), WIDTH - RIGHT, up(tick)))
        parts.append(label(LEFT - 6, up(tick) + 4, unit(tick), anchor="end"))
    return parts


def epochs(first: float, last: float, across: Callable[[float], float]) -> list[Markup]:
    """Write the first, middle and last epoch under the chart."""
    ticks = sorted({round(first), round((first + last) / 2), round(last)})
    numbers = [label(across(tick), HEIGHT - BOTTOM + 16, f"{tick:,}") for tick in ticks]
    return [*numbers, label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, "epoch")]


def rule(style: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    """Draw a straight line."""
    shape = Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>')
    return shape.format(style, x1, y1, x2, y2)


def bar(left: float, right: float, top: float, bottom: float, words: str) -> Markup:
    """Draw a bar that tells its words when it is pointed at."""
    shape = Markup('<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>')
    return shape.format(left, top, right - left, bottom - top, words)


def label(x: float, y: float, words: str, *, anchor: str = "middle") -> Markup:
    """Write words at a place."""
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, words)


def svg(title: str, parts: Sequence[Markup]) -> Markup:
    """Put the parts into one picture that says what it shows."""
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, escape(title))
    return head + Markup("").join(parts) + Markup("</svg>")


def scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Return the function that takes low to `start` and high to `end`; a single value goes to the middle."""
    if high == low:
        return lambda value: (start + end) / 2
    return lambda value: start + (value - low) / (high - low) * (end - start)


def nice_ticks(low: float, high: float, *, steps: int = 4) -> list[float]:
    """Return round numbers, about `steps` apart, from below `low` to above `high`."""
    if high <= low:
        low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
    rough = (high - low) / steps
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * number, 10) for number in range(first, last + 1)]


def thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Keep few enough points for a small picture, the last always."""
    every = math.ceil(len(points) / MOST_POINTS)
    return points if every == 1 or not points else [*points[:-1:every], points[-1]]


def percent(value: float) -> str:
    """Write a share."""
    return f"{100 * value:.3g} %"
