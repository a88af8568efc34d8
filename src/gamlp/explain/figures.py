"""All figures of a run, or of a comparison, into one folder: .png, .svg, and the numbers as .csv."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gamlp.explain import mistakes
from gamlp.explain.attention import explain_attention
from gamlp.explain.calibration import calibration
from gamlp.explain.finished_run import OpenedRun
from gamlp.explain.pictures import (
    write_calibration,
    write_confusion,
    write_groups,
    write_learning,
    write_methods,
    write_reliable,
)
from gamlp.explain.plots import write_attention
from gamlp.explain.relations import relation_weights
from gamlp.explain.run_summary import entries_of
from gamlp.progress import progress

ATTENTION = ("attention", "attention-by-degree", "attention-right-and-wrong", "attention-by-class")


def write_run_figures(run: OpenedRun, folder: Path) -> list[Path]:
    """Draw what the run's page shows; what a run does not have is left out."""
    files: list[Path] = []
    with progress("figures", total=3) as advance:
        if run.history:
            files += write_learning(run.history, folder / "learning")
        stages = next(one["stages"] for one in run.record["result"]["runs"] if one["seed"] == run.seed)
        if any(stage["reliable"] for stage in stages):
            files += write_reliable(stages, folder / "reliable-set")
        advance(1)
        files += tested_figures(run, folder) if len(run.test) else []
        advance(1)
        files += attention_figures(run, folder) if run.attention is not None else []
        relations = relation_weights(run)
        files += write_attention(relations, folder / "relations") if relations else []
        advance(1)
    return files


def tested_figures(run: OpenedRun, folder: Path) -> list[Path]:
    """Draw what only labelled test nodes can tell."""
    return [
        *write_calibration(calibration(run.confidence[run.test], mistakes.right_of(run)), folder / "calibration"),
        *write_confusion(mistakes.confusion(run), folder / "confusion"),
        *write_groups("Accuracy by number of neighbours", mistakes.by_degree(run), folder / "accuracy-by-degree"),
        *write_groups("Accuracy by class", mistakes.by_class(run), folder / "accuracy-by-class"),
    ]


def attention_figures(run: OpenedRun, folder: Path) -> list[Path]:
    """Draw the attention: the paper's heat map, and the means by degree, outcome and class."""
    tables = zip(ATTENTION, explain_attention(run), strict=True)
    return [file for stem, table in tables if table.groups for file in write_attention(table, folder / stem)]


def write_comparison_figures(folders: Sequence[Path], folder: Path) -> list[Path]:
    """Draw several runs side by side."""
    return write_methods(entries_of(folders), folder / "methods")
