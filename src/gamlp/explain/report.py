"""One page that says all about a run: RUN/report.html.

The numbers come from the modules beside this one, the words from report.html.j2. The predictions are embedded as JSON
in which <, > and & are written as escapes (`page` tells what else keeps a hostile name harmless).

Cost: a few passes over the (R, C) probabilities. The page holds at most 4,000 predictions and stays under 5 MB.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gamlp.explain import mistakes
from gamlp.explain.attention import Weights, explain_attention
from gamlp.explain.calibration import calibration
from gamlp.explain.cells import confusion_table, heat_table
from gamlp.explain.charts import reliability_chart
from gamlp.explain.command import command_of
from gamlp.explain.finished_run import OpenedRun, open_run
from gamlp.explain.learning import learning_curves
from gamlp.explain.page import render_page, write_page
from gamlp.explain.relations import relation_weights, single_relation_weights
from gamlp.explain.table import page_table
from gamlp.graph.graph import Graph

BUILT_IN = ("debian", "debian-hetero")  # the nodes to be classified are packages, the classes sections


def write_report(graph: Graph, run_folder: Path, *, out: Path | None = None, seed: int | None = None) -> Path:
    """Write the page of a finished run and return where it is; unless told otherwise report.html in its folder."""
    return write_page(render(open_run(graph, run_folder, seed=seed)), out or run_folder / "report.html")


def render(run: OpenedRun) -> str:
    """Return the page."""
    title = {"title": f"{run.record['method']} on {run.record['dataset']}"}
    return render_page("report.html.j2", title | facts_of(run) | tested(run), scripts=["predictions.js.j2"])


def facts_of(run: OpenedRun) -> dict[str, Any]:
    """Return what every run has: result, seeds, curves, attention, predictions and settings."""
    result, record = run.record["result"], run.record
    relations, single = relation_weights(run), single_relation_weights(run)
    return {
        "run": run,
        "record": record,
        "result": result,
        "what": "packages" if record["dataset"] in BUILT_IN else "nodes",
        "kind": "section" if record["dataset"] in BUILT_IN else "class",
        "curves": learning_curves(run),
        "stages": next(one["stages"] for one in result["runs"] if one["seed"] == run.seed),
        "attention": [heat_table(table) for table in attention_tables(run)],
        "relations": relations and heat_table(relations),
        "single_relations": single and heat_table(single),
        "table": page_table(run),
        "settings": {key: text_of(value) for key, value in record["settings"].items()},
        "changed": set(record["overrides"]),
        "command": command_of(record),
    }


def tested(run: OpenedRun) -> dict[str, Any]:
    """Return what only labelled test nodes can tell; nothing where there are none."""
    if not len(run.test):
        return {"calibration": None, "doubted": [], "confusion": None, "pairs": [], "degrees": [], "class_groups": []}
    found = calibration(run.confidence[run.test], mistakes.right_of(run))
    return {
        "calibration": {"error": found.error, "chart": reliability_chart(found)},
        "doubted": [doubt(run, int(row)) for row in mistakes.doubted(run, most=100)],
        "confusion": confusion_table(mistakes.confusion(run)),
        "pairs": mistakes.confused_pairs(run),
        "degrees": mistakes.by_degree(run),
        "class_groups": mistakes.by_class(run),
    }


def doubt(run: OpenedRun, row: int) -> dict[str, Any]:
    """Return one line of the list of labels that the run doubts."""
    return {
        "name": run.name_of(int(run.rows[row])),
        "label": run.graph.classes[run.labels[row]],
        "predicted": run.graph.classes[run.predicted[row]],
        "confidence": float(run.confidence[row]),
        "degree": int(run.degrees[row]),
    }


def attention_tables(run: OpenedRun) -> list[Weights]:
    """Return the heat maps of a method that weighs hops: the paper's, by degree, right and wrong, and class."""
    return [] if run.attention is None else [table for table in explain_attention(run) if len(table.groups)]


def text_of(value: Any) -> str:
    """Write a setting."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
