"""Fill the tables of the docs from the result files in benchmarks/recorded/: no figure there is typed.

    python scripts/results.py              write the tables anew
    python scripts/results.py --check      say which pages would change, and fail if any would
    python scripts/results.py --record RUN copy the result.json of an experiment of `gamlp paper` there first

A table stands between two comments. <!-- recorded: FILE --> and <!-- end -->: FILE is the record it is made from, of an
experiment or of a benchmark.
<!-- systems --> and <!-- end -->: every system of the paper, from the experiments, src/gamlp/paper/systems.toml and all
records.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from gamlp.methods import method_named
from gamlp.paper.experiments import Column, Experiment, Row, experiments
from gamlp.paper.make import published_test, recipe_of, shares
from gamlp.paper.table import markdown
from gamlp.runs.comparison_table import markdown_table, percent

HERE = Path(__file__).parent.parent
RECORDS = HERE / "benchmarks" / "recorded"
PAGES = [HERE / "docs" / f"{name}.md" for name in ("results", "methods", "paper")]
PLACE = re.compile(r"(<!-- (?:recorded: (\S+)|systems) -->\n).*?(<!-- end -->)", re.DOTALL)
LARGE = ("ogbn-products", "ogbn-papers100M", "ogbn-mag")  # whose files are not on the machine of the records
HEADER = ("in the paper", "method", "equation", "compared by", "test, %: graph published → here")


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a table is not its record's")
    parser.add_argument("--record", type=Path, metavar="RUN", help="a folder of gamlp paper, to be recorded first")
    options = parser.parse_args()
    if options.record:
        print(f"recorded {record(options.record)}")
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    changed = {page: filled for page, text in texts.items() if (filled := fill(text)) != text}
    if options.check and changed:
        sys.exit(f"{', '.join(page.name for page in changed)}: not what the records say. Run scripts/results.py.")
    for page, filled in changed.items():
        page.write_text(filled, encoding="utf-8")


def record(run: Path) -> Path:
    """Copy what an experiment came to, without the paths of this machine."""
    result = json.loads((run / "result.json").read_text())
    for cell in result["cells"]:
        cell.pop("run", None)
    result["command"] = f"gamlp paper {result['experiment']}"
    file = RECORDS / f"paper-{result['experiment']}.json"
    file.write_text(json.dumps(result, indent=1) + "\n")
    return file


def fill(text: str) -> str:
    """Return the page with every table made anew."""
    return PLACE.sub(lambda found: found[1] + (table(found[2]) if found[2] else systems()) + found[3], text)


def table(name: str) -> str:
    """Return the tables of one record, those of an experiment a heading lower than on their own."""
    result: dict[str, Any] = json.loads((RECORDS / name).read_text())
    if "cells" not in result:
        return benchmark(result)
    body = markdown(result).partition("\n\n")[2]  # without the title, which the page has
    return re.sub(r"^## ", "### ", body, flags=re.MULTILINE)


def benchmark(result: dict[str, Any]) -> str:
    """Return what a benchmark compared, and where it says how much memory each took, that and the seconds."""
    ratios = [[name.replace("_", " "), f"{ratio:.2f}"] for name, ratio in result["ratios"].items()]
    tables = [markdown_table(("against", "ratio"), ratios)]
    if "peak_bytes" in result:
        lines = [
            [f"{name}{limit and f': --memory {limit}'}", f"{result['seconds'][name]:.1f}", f"{peak / 2**30:.1f}"]
            for name, peak in result["peak_bytes"].items()
            for limit in [result["memory"].get(name, "")]
        ]
        tables.append(markdown_table(("", "seconds", "peak memory, GiB"), lines))
    return "\n\n".join(tables) + "\n"


def systems() -> str:
    """Return a table with every row of every experiment; rows that are the same system are one."""
    lines: dict[tuple[str, str], list[str]] = {}
    parts: dict[tuple[str, str], list[dict[str, str]]] = {}
    for experiment in experiments().values():
        for row in experiment.rows:
            changed = "".join(f" {key}={value}" for key, value in row.set.items())
            called = row.name, f"`{row.method}{changed}`"
            lines.setdefault(called, []).extend(values(experiment, row))
            parts[called] = parts_of(row)
    rows = []
    for called, found in lines.items():
        places = [dict.fromkeys(f"`{part[key]}`" for part in parts[called]) for key in ("equation", "test")]
        rows.append([*called, *map("<br>".join, places), "<br>".join(found)])
    return markdown_table(HEADER, rows).replace("---:|", "---|") + "\n"


def parts_of(row: Row) -> list[dict[str, str]]:
    """Return the parts of a system: its base, what is added and what is set, each with what belongs to it."""
    known = tomllib.loads((resources.files("gamlp.paper") / "systems.toml").read_text(encoding="utf-8"))
    method = method_named(row.method)
    names = [name for name in (*method.added, *row.set) if name in known]
    return [known[part] for name in (method.base, *names) for part in (name, known[name].get("with")) if part]


def values(experiment: Experiment, row: Row) -> Iterator[str]:
    """Yield what was published of a system and what came out here: a line a graph, all numbers of hops in one."""
    cells = {cell["column"]: cell for cell in recorded(experiment.name) if cell["row"] == row.name}
    columns = experiment.columns
    if experiment.relative:
        own = cells and f"{cells[columns[0].title]['seconds'] / recorded(experiment.name)[0]['seconds']:.1f}"
        yield f"time relative to {experiment.rows[0].name} {row.time:g} → {own or absent(columns[0])}"
    elif all(column.title.isdecimal() for column in columns):
        own = ", ".join(f"{100 * cells[column.title]['test_accuracy']:.1f}" for column in columns if cells)
        hops = ", ".join(column.title for column in columns)
        yield f"{columns[0].graph}, {hops} hops – → {own or absent(columns[0])}"
    else:
        for column in columns:
            cell = cells.get(column.title)
            own = percent(cell["test_accuracy"], cell["test_accuracy_std"]) if cell else absent(column)
            yield f"{column.title} {published(row, column)} → {own}"


def published(row: Row, column: Column) -> str:
    """Write what was published, – where nothing was."""
    return percent(*shares(published_test(row, column, recipe_of(column).published)))


def absent(column: Column) -> str:
    """Say why there is no figure."""
    return "not run here" if column.graph in LARGE else "not recorded yet"


@cache
def recorded(name: str) -> list[dict[str, Any]]:
    """Return the cells of an experiment's record, none where there is no record."""
    file = RECORDS / f"paper-{name}.json"
    return list(json.loads(file.read_text())["cells"]) if file.exists() else []


if __name__ == "__main__":
    main()
