"""The rows of a comparison as text: Markdown to read, CSV to compute with."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gamlp.methods import method_named
from gamlp.runs.record import USUAL, baseline_words, metric_of
from gamlp.storage.files import write_text
from gamlp.targets.metrics import METRICS, Metric

COSTS = ("s/seed", "parameters", "MiB")


def write_tables(record: Mapping[str, Any], folder: Path) -> None:
    """Write comparison.md and comparison.csv."""
    for name, text in {"comparison.md": markdown(record), "comparison.csv": as_csv(record["rows"])}.items():
        write_text(folder / name, text)


def markdown(record: Mapping[str, Any]) -> str:
    """Return a table with the best score on test in bold, and a line that says how it came about."""
    metric = metric_of(record["rows"][0])
    texts, best = [cells(row, metric) for row in record["rows"]], best_row(record["rows"], metric)
    if best is not None:
        texts[best][2] = f"**{texts[best][2]}**"
    return f"# Methods on {record['dataset']}\n\n{markdown_table(header(metric), texts)}\n\n{footnote(record)}\n"


def header(metric: Metric) -> list[str]:
    """Name the columns; what was published is an accuracy, which stands beside it."""
    if metric.name == USUAL:
        return ["method", "valid, %", "test, %", "published, %", *COSTS]
    scores = [f"{part} {metric.heading}" for part in ("valid", "test")]
    return ["method", *scores, f"test {METRICS[USUAL].heading}", "published, %", *COSTS]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return texts as a table, all columns but the first to the right."""
    lines = ["| " + " | ".join(row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], "|---|" + "---:|" * (len(header) - 1), *lines[1:]])


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows with all digits; what is unknown stays empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def cells(row: Mapping[str, Any], metric: Metric) -> list[str]:
    """Return one row as text, in the order of `header`."""
    shown = [f"{part}_{metric.name}" for part in ("valid", "test")]
    return [
        row["method"],
        *(metric.text(row.get(name), row.get(f"{name}_std")) for name in shown),
        *([] if metric.name == USUAL else [percent(row["test_accuracy"], row["test_accuracy_std"])]),
        percent(row["published"], row["published_std"]),
        f"{row['seconds']:.1f}",
        f"{row['parameters']:,}",
        f"{row['peak_memory_bytes'] / 2**20:,.0f}",
    ]


def percent(mean: float | None, std: float | None) -> str:
    """Write a share as 84.31 ± 0.52."""
    if mean is None:
        return "–"
    return f"{100 * mean:.2f}" + ("" if std is None else f" ± {100 * std:.2f}")


def best_row(rows: Sequence[Mapping[str, Any]], metric: Metric) -> int | None:
    """Return where the best mean score on test stands; None where nothing was tested."""
    found = {index: row.get(f"test_{metric.name}") for index, row in enumerate(rows)}
    tested = {index: metric.better(value) for index, value in found.items() if value is not None}
    return max(tested, key=tested.__getitem__, default=None)


def own_settings(name: str, settings: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what a method with additions has set otherwise than its base beside it, beyond what its name says."""
    method = method_named(name)
    own, base = settings[name], settings.get(method.base, settings[name])
    return " ".join(key for key in own if key not in method.fixed and at_first(own[key]) != at_first(base.get(key)))


def at_first(value: Any) -> Any:
    """Return the setting of the first stage: that there are later ones is in a method's name."""
    return value[0] if isinstance(value, list | tuple) and value else value


def told_apart(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say which rows differ in more than their names say."""
    told = []
    for row in rows:
        if row.get("own_settings"):
            where = f" on {row['column']}" if "column" in row else ""
            names = ", ".join(row["own_settings"].split())
            told.append(f" {row['method']}{where} also has settings of its own: {names}.")
    return "".join(told)


def footnote(record: Mapping[str, Any]) -> str:
    """Say what the numbers are."""
    count = len(record["seeds"])
    spread = f"Mean ± std over {count} seeds" if count > 1 else "One seed"
    first = record["rows"][0]
    beside = f"; {words}" if (words := baseline_words(first)) else ""
    return (
        f"{spread}, recipe {record['recipe']}; chosen by validation {metric_of(first).title}{beside}. "
        "Seconds are of training; propagation, which methods share, took "
        f"{record['propagation_seconds']:.1f} s. MiB: the most that the process held meanwhile."
        f"{told_apart(record['rows'])}"
    )
