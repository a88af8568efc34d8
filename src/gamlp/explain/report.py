"""One page that says all about a run: RUN/report.html, complete in itself, without a single request elsewhere.

The figures come from `figures`, the words from report.html.j2. Of more than 2,000 predictions these are shown: every
test node that was given another class with great confidence, then the test nodes about which the run is least sure,
then a sample of all rows drawn by a fixed seed.

Every name that came with the data is escaped by jinja2; in the JSON of the predictions <, > and & are escapes. Style
and script stand in the page; a content security policy allows the one script by its hash and nothing from outside, so
that even a name that slipped through could not run.

Cost: a few passes over the (R, C) probabilities. The page holds at most 4,000 predictions and stays under 5 MB.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from gamlp.explain.figures import SECTIONS
from gamlp.explain.figures.mistakes import confused_pairs
from gamlp.explain.finished_run import FinishedRun, open_run
from gamlp.graph.graph import Graph
from gamlp.runs.record import baseline_of, metric_of
from gamlp.runs.spec import RunSpec, command_of
from gamlp.storage.files import Array, write_text
from gamlp.targets.metrics import METRICS

BUILT_IN = ("debian", "debian-hetero")  # the nodes to be classified are packages, the classes sections
ROWS, DOUBTED, SURE = 2_000, 2_000, 0.9  # predictions shown: how many, as many doubted ones beside them, from where on
LONGEST_NAME = 120


def write_report(graph: Graph, run_folder: Path, *, out: Path | None = None, seed: int | None = None) -> Path:
    """Write the page of a finished run and return where it is; unless told otherwise report.html in its folder."""
    return write_text(out or run_folder / "report.html", render(open_run(graph, run_folder, seed=seed)))


def own_page(graph: Graph, run_folder: Path) -> Path:
    """Return report.html of a finished run, which is written unless it is there."""
    page = run_folder / "report.html"
    return page if page.exists() else write_report(graph, run_folder)


def render(run: FinishedRun) -> str:
    """Return the page."""
    record = run.record
    packages, metric = record["dataset"] in BUILT_IN, metric_of(record["result"])
    content = {
        "title": f"{record['method']} on {record['dataset']}",
        "run": run,
        "record": record,
        "result": record["result"],
        "metric": metric,
        "baseline": baseline_of(record["result"]),
        "others": [one for one in METRICS.values() if one != metric],
        "what": "packages" if packages else "nodes",
        "kind": "section" if packages else "class",
        "figures": [(section, charts) for section in SECTIONS if (charts := section.charts(run))],
        "doubted": [doubt(run, int(row)) for row in doubted(run)],
        "pairs": confused_pairs(run),
        "table": page_table(run),
        "tried": run.result.get("tried", []),
        "settings": {key: text_of(value) for key, value in record["settings"].items()},
        "command": command_of(RunSpec.model_validate(record)),
    }
    return render_page("report.html.j2", content, scripts=["predictions.js.j2"])


def doubted(run: FinishedRun, *, least: float = 0.0, most: int = 100) -> Array:
    """Return the rows of test nodes given another class with a confidence of `least`, the surest first.

    Such a node is a mistake of the run, or of whoever labelled it: worth a look by hand.
    """
    wrong = run.test[~run.right]
    wrong = wrong[run.confidence[wrong] >= least]
    return np.asarray(wrong[np.argsort(-run.confidence[wrong], kind="stable")][:most])


def doubt(run: FinishedRun, row: int) -> dict[str, Any]:
    """Return one line of the list of labels that the run doubts."""
    label, predicted = (run.words(labels[row : row + 1])[0] for labels in (run.labels, run.predicted))
    known = {"name": run.name_of(int(run.rows[row])), "degree": int(run.degrees[row])}
    return {**known, "label": label, "predicted": predicted, "confidence": float(run.confidence[row])}


def page_table(run: FinishedRun) -> dict[str, Any]:
    """Return the rows as plain lists: id, predicted, confidence, label, set, degree; classes and sets as numbers."""
    chosen = chosen_rows(run)
    sets = ["", "train", "valid", "test"]
    member = np.zeros(run.graph.nodes, dtype=np.int8)
    for number, name in enumerate(sets[1:], start=1):
        member[getattr(run.split, name)] = number
    classes, predicted, labels = numbered_answers(run, chosen)
    columns = (
        [shortened(run.name_of(int(node))) for node in run.rows[chosen]],
        predicted,
        [round(float(value), 4) for value in run.confidence[chosen]],
        labels,
        member[run.rows[chosen]].tolist(),
        run.degrees[chosen].tolist(),
    )
    rows = list(zip(*columns, strict=True))
    return {"classes": [shortened(name) for name in classes], "sets": sets, "total": len(run.rows), "rows": rows}


def numbered_answers(run: FinishedRun, rows: Array) -> tuple[Sequence[str], list[int], list[int]]:
    """Return answers, and the numbers of those that rows were given and have, −1 = unknown.

    They are the classes; of several labels a node, every combination of labels that occurs.
    """
    if run.kind.dimensions == 1:
        return run.classes, run.predicted[rows].tolist(), run.labels[rows].tolist()
    said, true = run.words(run.predicted[rows]), run.words(run.labels[rows])
    place = {name: at for at, name in enumerate(dict.fromkeys(word for word in (*said, *true) if word is not None))}
    numbers = [[-1 if word is None else place[word] for word in words] for words in (said, true)]
    return list(place), numbers[0], numbers[1]


def chosen_rows(run: FinishedRun) -> Array:
    """Return which rows are shown, the doubted ones first."""
    if len(run.rows) <= ROWS:
        return np.arange(len(run.rows))
    sure_and_wrong = doubted(run, least=SURE, most=DOUBTED)
    unsure = run.test[np.argsort(run.confidence[run.test], kind="stable")][: ROWS // 2]
    sample = np.random.default_rng(0).permutation(len(run.rows))
    order = np.concatenate([sure_and_wrong, unsure, sample])
    _, first = np.unique(order, return_index=True)
    return np.asarray(order[np.sort(first)][: len(sure_and_wrong) + ROWS])


def text_of(value: Any) -> str:
    """Write a setting."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def render_page(template: str, content: Mapping[str, Any], *, scripts: Sequence[str]) -> str:
    """Fill a template; `scripts` are put together into the page's one script, behind the one that switches colours."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loader = ChoiceLoader([PackageLoader("gamlp", room) for room in ("explain", "serve")])
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                            lstrip_blocks=True)  # fmt: skip
    filters: dict[str, Any] = {"count": lambda number: f"{number:,}", "short": shortened, "mebibytes": mebibytes}
    templates.filters |= filters
    script = "".join(templates.get_template(name).render() for name in ("theme.js.j2", *scripts))
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = {"script": Markup(script), "script_hash": allowed}  # noqa: S704 — ours
    return templates.get_template(template).render({**content, **own})


def mebibytes(size: float | None) -> str:
    """Write a number of bytes; – where the system did not tell."""
    return "–" if size is None else f"{size / 2**20:,.0f} MiB"


def shortened(name: str) -> str:
    """Cut a name that would fill the page."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
