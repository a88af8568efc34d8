"""One page that says all about a run: RUN/report.html.

The figures come from `figures`, the words from report.html.j2. The predictions are embedded as JSON
in which <, > and & are written as escapes (`page` tells what else keeps a hostile name harmless).

Cost: a few passes over the (R, C) probabilities. The page holds at most 4,000 predictions and stays under 5 MB.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gamlp.explain.figures import SECTIONS
from gamlp.explain.figures.confusion import confused_pairs
from gamlp.explain.finished_run import FinishedRun, open_run
from gamlp.explain.page import render_page, write_page
from gamlp.explain.table import doubted, page_table
from gamlp.graph.graph import Graph
from gamlp.runs.command import command_of
from gamlp.runs.spec import RunSpec

BUILT_IN = ("debian", "debian-hetero")  # the nodes to be classified are packages, the classes sections


def write_report(graph: Graph, run_folder: Path, *, out: Path | None = None, seed: int | None = None) -> Path:
    """Write the page of a finished run and return where it is; unless told otherwise report.html in its folder."""
    return write_page(render(open_run(graph, run_folder, seed=seed)), out or run_folder / "report.html")


def render(run: FinishedRun) -> str:
    """Return the page."""
    record = run.record
    content = {
        "title": f"{record['method']} on {record['dataset']}",
        "run": run,
        "record": record,
        "result": record["result"],
        "what": "packages" if record["dataset"] in BUILT_IN else "nodes",
        "kind": "section" if record["dataset"] in BUILT_IN else "class",
        "figures": [(section, charts) for section in SECTIONS if (charts := section.charts(run))],
        "doubted": [doubt(run, int(row)) for row in doubted(run)],
        "pairs": confused_pairs(run),
        "table": page_table(run),
        "settings": {key: text_of(value) for key, value in record["settings"].items()},
        "command": command_of(RunSpec.model_validate(record)),
    }
    return render_page("report.html.j2", content, scripts=["predictions.js.j2"])


def doubt(run: FinishedRun, row: int) -> dict[str, Any]:
    """Return one line of the list of labels that the run doubts."""
    return {
        "name": run.name_of(int(run.rows[row])),
        "label": run.classes[run.labels[row]],
        "predicted": run.classes[run.predicted[row]],
        "confidence": float(run.confidence[row]),
        "degree": int(run.degrees[row]),
    }


def text_of(value: Any) -> str:
    """Write a setting."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
