"""The figures of a run, section by section: what stands on its page, and what --figures writes.

A figure is a module here with one function, `charts(run) -> list[Chart]`, which is empty where a run has nothing to
show, and one line below: its name in a section. The page, the files and their numbers follow from the charts.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from gamlp.explain.figures.chart import Chart, write_charts
from gamlp.explain.finished_run import FinishedRun
from gamlp.progress import progress


@dataclass(frozen=True)
class Section:
    """A part of the page; `modules` are the figures that it shows, in this order."""

    id: str
    title: str
    introduction: str
    modules: tuple[str, ...]

    def charts(self, run: FinishedRun) -> list[Chart]:
        """Return what the run has to show here."""
        return [chart for module in self.modules for chart in charts_of(module, run)]


SECTIONS = (
    Section("learning", "Learning", "", ("learning",)),
    Section("mistakes", "Mistakes on test nodes", "", ("mistakes",)),
    Section("calibration", "Calibration", "How often predictions of each confidence are right.", ("calibration",)),
    Section(
        "coverage",
        "Sets with a promise",
        "What gamlp predict --coverage gives: for each node the classes that contain the truth with that probability.",
        ("coverage",),
    ),
    Section(
        "attention",
        "Attention over the hops",
        "The mean weight of each hop: 0 is the node itself, 1 its neighbours, and so on. The stronger the colour the "
        "more, relative to the largest weight of the table.",
        ("attention",),
    ),
    Section(
        "relations",
        "Weights of the relations",
        "How much each subset of the relations counts at each hop: its share of what is added up there, by the size of "
        "its learned weights and of what they weigh. Hop 0, the node itself, is the same in all of them.",
        ("relations",),
    ),
)


def charts_of(module: str, run: FinishedRun) -> list[Chart]:
    """Return the charts of one module; [] where the run has nothing to show."""
    return list(import_module(f"{__name__}.{module}").charts(run))


def write_run_figures(run: FinishedRun, folder: Path) -> list[Path]:
    """Write every figure of a run as .png, .svg and .csv."""
    files: list[Path] = []
    with progress("figures", total=len(SECTIONS)) as advance:
        for section in SECTIONS:
            files += write_charts(section.charts(run), folder)
            advance()
    return files
