"""The rows of a comparison as text: Markdown to read, CSV to compute with."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gamlp.storage.files import write_text

HEADER = ("method", "valid, %", "test, %", "published, %", "s/seed", "parameters", "MiB")


def write_tables(record: Mapping[str, Any], folder: Path) -> None:
    """Write comparison.md and comparison.csv."""
    for name, text in {"comparison.md": markdown(record), "comparison.csv": as_csv(record["rows"])}.items():
        write_text(folder / name, text)


def markdown(record: Mapping[str, Any]) -> str:
    """Return a table with the best test accuracy in bold, and a line that says how it came about."""
    texts, best = [cells(row) for row in record["rows"]], best_row(record["rows"])
    if best is not None:
        texts[best][2] = f"**{texts[best][2]}**"
    return f"# Methods on {record['dataset']}\n\n{markdown_table(HEADER, texts)}\n\n{footnote(record)}\n"


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


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return one row as text, in the order of HEADER."""
    return [
        row["method"],
        percent(row["valid_accuracy"], row["valid_accuracy_std"]),
        percent(row["test_accuracy"], row["test_accuracy_std"]),
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


def best_row(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Return where the best mean test accuracy stands; None where nothing was tested."""
    tested = [index for index, row in enumerate(rows) if row["test_accuracy"] is not None]
    return max(tested, key=lambda index: rows[index]["test_accuracy"], default=None)


def footnote(record: Mapping[str, Any]) -> str:
    """Say what the numbers are."""
    count = len(record["seeds"])
    spread = f"Mean ± std over {count} seeds" if count > 1 else "One seed"
    return (
        f"{spread}, recipe {record['recipe']}. Seconds are of training; propagation, which methods share, took "
        f"{record['propagation_seconds']:.1f} s. MiB: the most that the process held meanwhile."
    )
