"""One page that says all about a run: RUN/report.html, complete in itself, without a single request elsewhere.

The numbers come from the modules beside this one, the words from report.html.j2. Every name that came with the data is
escaped by jinja2; the predictions are embedded as JSON in which <, > and & are written as escapes. A content security
policy allows the one script by its hash and nothing from outside, so that even a name that slipped through could not
run.

Cost: a few passes over the (R, C) probabilities. The page holds at most 4,000 predictions and stays under 5 MB.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from markupsafe import Markup

from gamlp.explain import mistakes
from gamlp.explain.attention import Weights, explain_attention
from gamlp.explain.calibration import calibration
from gamlp.explain.cells import confusion_table, heat_table
from gamlp.explain.charts import percent, reliability_chart
from gamlp.explain.command import command_of
from gamlp.explain.learning import learning_curves
from gamlp.explain.opened import OpenedRun, open_run
from gamlp.explain.table import page_table, shortened
from gamlp.files import replacing
from gamlp.graph.graph import Graph


def write_report(graph: Graph, run_folder: Path, *, out: Path | None = None, seed: int | None = None) -> Path:
    """Write the page of a finished run and return where it is; unless told otherwise report.html in its folder."""
    path = out or run_folder / "report.html"
    page = render(open_run(graph, run_folder, seed=seed))
    with replacing(path) as file:
        file.write(page.encode())
    return path


def render(run: OpenedRun) -> str:
    """Return the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("gamlp", "explain"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"percent": percent, "count": lambda number: f"{number:,}", "short": shortened}
    script = templates.get_template("report.js.j2").render()
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    content = {**facts_of(run), **tested(run), "script": Markup(script), "script_hash": allowed}  # noqa: S704 — ours
    return templates.get_template("report.html.j2").render(content)


def facts_of(run: OpenedRun) -> dict[str, Any]:
    """Return what every run has: result, seeds, curves, attention, predictions and settings."""
    result, record = run.record["result"], run.record
    return {
        "run": run,
        "record": record,
        "result": result,
        "what": "packages" if record["dataset"] == "debian" else "nodes",
        "kind": "section" if record["dataset"] == "debian" else "class",
        "curves": learning_curves(run),
        "stages": next(one["stages"] for one in result["runs"] if one["seed"] == run.seed),
        "attention": [heat_table(table) for table in attention_tables(run)],
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
    """Return the heat maps of a method that weighs hops: the paper's, by degree, and by right and wrong."""
    return [] if run.attention is None else [table for table in explain_attention(run)[:3] if len(table.groups)]


def text_of(value: Any) -> str:
    """Write a setting."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
