"""Fill the tables of the docs from the result files in benchmarks/recorded/: no figure there is typed.

    python scripts/results.py              write the tables anew
    python scripts/results.py --check      say which pages would change, and fail if any would
    python scripts/results.py --record RUN copy the result.json of an experiment of `gamlp paper` there first, and its
                                           figures into docs/images; of one that is not finished the seeds that
                                           it has, and the table says so

A table stands between two comments. <!-- recorded: FILE --> and <!-- end -->: FILE is the record it is made from, of an
experiment or of a benchmark.
<!-- systems --> and <!-- end -->: every system of the paper, from the experiments, src/gamlp/paper/systems.toml and all
records.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from gamlp.methods import method_named
from gamlp.paper.experiments import Column, Experiment, Row, experiment_named, experiments
from gamlp.paper.make import cell, published_test, recipe_of, run_of, shares
from gamlp.paper.table import markdown
from gamlp.runs.comparison_table import markdown_table, percent
from gamlp.targets.metrics import mean_and_std

HERE = Path(__file__).parent.parent
RECORDS = HERE / "benchmarks" / "recorded"
NAMES = ("results", "methods", "paper", "own-graph", "scale", "cost-model", "trust")
PAGES = [HERE / "docs" / f"{name}.md" for name in NAMES]
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
    whole = run / "result.json"
    result = json.loads(whole.read_text()) if whole.exists() else so_far(run)
    for found in result["cells"]:
        found.pop("run", None)
    result["command"] = told(result["command"])
    file = RECORDS / f"paper-{result['experiment']}.json"
    file.write_text(json.dumps(result, indent=1) + "\n")
    for figure in run.glob("*.png"):
        shutil.copyfile(figure, HERE / "docs" / "images" / figure.name)
    return file


def so_far(run: Path) -> dict[str, Any]:
    """Return what an experiment that is not finished has come to: each cell over the seeds that it has."""
    experiment = experiment_named(run.name.removeprefix("paper-"))
    cells = []
    for column, row in product(experiment.columns, experiment.rows):
        folder = run_of(column, row, run)
        done = [json.loads(file.read_text()) for file in sorted(folder.glob("seed-*/result.json"))]
        if done:
            line: dict[str, Any] = {"method": row.method, "parameters": done[0]["parameters"], "own_settings": ""}
            for key in ("valid_accuracy", "test_accuracy", "seconds"):
                line[key], line[f"{key}_std"] = mean_and_std([one[key] for one in done])
            fewer = {"seeds": len(done)} if len(done) < experiment.seeds else {}
            cells.append(cell(row, column, recipe_of(column), folder, line) | fewer)
    return {
        **{key: getattr(experiment, key) for key in ("title", "source", "relative")}, "cells": cells, "charts": [],
        "experiment": experiment.name, "command": f"gamlp paper {experiment.name}", "seeds": [*range(experiment.seeds)],
    }  # fmt: skip


def told(command: str) -> str:
    """Return a command without the folders of this machine."""
    return re.sub(r" --(out|root|log|cache)(=| )\S+", "", command)


def fill(text: str) -> str:
    """Return the page with every table made anew."""
    return PLACE.sub(lambda found: found[1] + (table(found[2]) if found[2] else systems()) + found[3], text)


def table(name: str) -> str:
    """Return the tables of one record, those of an experiment a heading lower than on their own."""
    result: Any = json.loads((RECORDS / name).read_text())
    if isinstance(result, list):
        return steps(result)
    kinds = {"limit_bytes": whole_recipe, "modules": mutants, "rows": by_rows}
    made = next((made for key, made in kinds.items() if key in result), None)
    if made is not None:
        return made(result)
    if all("trained" in row for row in result.values()):
        return own_tables(result)
    if "cells" not in result:
        return benchmark(result)
    body = markdown(result).partition("\n\n")[2]  # without the title, which the page has
    return re.sub(r"^## ", "### ", body, flags=re.MULTILINE)


def by_rows(result: dict[str, Any]) -> str:
    """Return the table of a benchmark that keeps its rows as they are finished."""
    kinds = {
        "kind": portfolio, "base_rate": targets, "version": versions, "system": times_to_accuracy, "kept": kept_stages,
        "inputs": products,
    }  # fmt: skip
    return next(made for key, made in kinds.items() if key in result["rows"][0])(result)


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


def times_to_accuracy(result: dict[str, Any]) -> str:
    """Return what each system took in all and to its best validation accuracy, and the default to the same."""
    header = ("graph", "system", "valid, %", "test, %", "seconds", "to its valid", "the default to that", "seeds")
    lines = [
        [row["graph"], row["system"], *(f"{100 * row[name]:.2f}" for name in ("valid", "test")),
         *("–" if row.get(name) is None else f"{row[name]:.1f}" for name in ("seconds", "to_best", "to_peer")),
         str(row["seeds"])]
        for row in result["rows"]
    ]  # fmt: skip
    return markdown_table(header, lines) + "\n"


def steps(result: list[dict[str, Any]]) -> str:
    """Return what was done one after the other, and how long each took."""
    lines = [[row["step"], f"`{row['command']}`", f"{row['seconds']:.1f}", str(row["exit"])] for row in result]
    return markdown_table(("step", "command", "seconds", "exit"), lines) + "\n"


def targets(result: dict[str, Any]) -> str:
    """Return ROC-AUC and average precision where accuracy says little."""
    lines = [
        [row["graph"], row["method"],
         *(f"{100 * row[name]:.2f} ± {100 * row[f'{name}_std']:.2f}" for name in ("roc_auc", "average_precision")),
         f"{100 * row['base_rate']:.1f}"]
        for row in result["rows"]
    ]  # fmt: skip
    return markdown_table(("graph", "method", "ROC-AUC", "average precision", "base rate"), lines) + "\n"


def portfolio(result: dict[str, Any]) -> str:
    """Return the mean test accuracy of the default and of single methods on the same splits, a table for each kind."""
    tables = []
    for kind in dict.fromkeys(row["kind"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["kind"] == kind]
        graphs = list(dict.fromkeys(row["graph"] for row in rows))
        if kind == "homophily":
            methods = sorted(dict.fromkeys(row["method"] for row in rows), key=lambda name: name != "portfolio")
            scores = [scores_of(rows, graph) for graph in graphs]
            lines = [
                [name, *(f"{fmean(one[name].values()):.2f} ({len(one[name])})" for one in scores)] for name in methods
            ]
            table = markdown_table(("test, % (splits)", *graphs), lines)
        else:
            header = ("graph", "splits", "the default, %", "best single method, %", "which", "others, %")
            table = markdown_table(header, [beside_single(graph, scores_of(rows, graph)) for graph in graphs])
        tables.append(f"### {kind}\n\n{table}")
    return "\n\n".join(tables) + "\n"


def scores_of(rows: list[dict[str, Any]], graph: str) -> dict[str, dict[int, float]]:
    """Return the test accuracy of every method on the splits of a graph that the default was fitted on."""
    of_graph = [row for row in rows if row["graph"] == graph]
    splits = {row["split"] for row in of_graph if row["method"] == "portfolio"}
    found: dict[str, dict[int, float]] = {}
    for row in of_graph:
        if row["split"] in splits:
            found.setdefault(row["method"], {})[row["split"]] = row["test"]
    return {name: scores for name, scores in found.items() if scores.keys() == splits}


def beside_single(graph: str, scores: dict[str, dict[int, float]]) -> list[str]:
    """Return a line of the table: the default, the best single method and how far it is, and the others."""
    means = {name: mean_and_std(list(found.values())) for name, found in scores.items()}
    default, _ = means.pop("portfolio")
    ordered = sorted(means, key=lambda name: -means[name][0])
    best = f"{means[ordered[0]][0]:.2f} ({default - means[ordered[0]][0]:+.2f})"
    others = ", ".join(f"{name} {means[name][0]:.2f}" for name in ordered[1:])
    own = list(scores["portfolio"].values())
    return [graph, str(len(own)), with_std(own), best, ordered[0], others]


def with_std(scores: list[float]) -> str:
    """Write 84.31 ± 0.52; of one score, that alone."""
    mean, std = mean_and_std(scores)
    return f"{mean:.2f}" + ("" if std is None else f" ± {std:.2f}")


def own_tables(result: dict[str, Any]) -> str:
    """Return what was reached on tables of one's own, by one command and by what it is compared with."""
    lines = [
        [graph, one.get("command", how), "–" if "valid" not in one else f"{one['valid']:.2f}",
         f"{one['test']:.2f} ± {one['std']:.2f}", str(len(one["seeds"]))]
        for graph, found in result.items() for how, one in found.items() if isinstance(one, dict)
    ]  # fmt: skip
    return markdown_table(("graph", "by", "valid, %", "test, %", "seeds"), lines) + "\n"


def versions(result: dict[str, Any]) -> str:
    """Return what two versions reached on the same graphs and seeds, and the seconds of a seed."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in result["rows"]:
        found.setdefault((row["graph"], row["version"]), []).append(row)
    lines = []
    for (graph, version), rows in found.items():
        valid, test, seconds = ([row[key] for row in rows] for key in ("valid", "test", "seconds"))
        lines.append([graph, version, f"{fmean(valid):.2f}", with_std(test), f"{fmean(seconds):.0f}", str(len(rows))])
    return markdown_table(("graph", "version", "valid, %", "test, %", "seconds", "seeds"), lines) + "\n"


def kept_stages(result: dict[str, Any]) -> str:
    """Return what keeping the last stage and keeping the best came to on the same splits."""
    lines = []
    for graph in dict.fromkeys(row["graph"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["graph"] == graph]
        last, best = ([row["test"] for row in rows if row["kept"] == kept] for kept in ("last", "best"))
        apart = with_std([one - other for one, other in zip(last, best, strict=True)])
        lines.append([graph, "many" if rows[0]["dense"] else "few", f"{fmean(last):.2f}", f"{fmean(best):.2f}", apart])
    header = ("graph", "neighbours", "the last, %", "the best, %", "the last above the best")
    return markdown_table(header, lines) + "\n"


def products(result: dict[str, Any]) -> str:
    """Return how quick matrix products are by either library."""
    made = ("product", "gradient of the input", "gradient of the weight")
    lines = [
        [row["what"], f"{row['rows']:,} × {row['inputs']:,} × {row['outputs']:,}",
         *(f"{row[what]['torch']:.0f}, {row[what]['oneDNN']:.0f}" for what in made)]
        for row in result["rows"]
    ]  # fmt: skip
    return markdown_table(("", "rows × inputs × outputs", *(f"{what}: torch, oneDNN" for what in made)), lines) + "\n"


def whole_recipe(result: dict[str, Any]) -> str:
    """Return what every step of papers100M's recipe took, and what the cost model says of it."""
    names = {"train": "train, four stages", "predict labelled": "predict, the labelled nodes",
             "predict all": "predict, all nodes, to Parquet", "import": "import from the raw files"}  # fmt: skip
    lines = []
    for name, step in result["steps"].items():
        model, seconds = step["predicted_seconds"], step["seconds"]
        said = ("", "") if model is None else (f"{model:,.0f}", f"{seconds / model:.2f}")
        lines.append([names.get(name, name), f"{seconds:,.0f}", f"{step['cpu_seconds']:,.0f}", *said,
                      f"{step['peak_bytes'] / 2**20:,.0f} MiB"])  # fmt: skip
    limit = f"peak memory, of {result['limit_bytes'] / 2**20:,.0f} MiB"
    return markdown_table(("step", "seconds", "of one processor", "the model", "ratio", limit), lines) + "\n"


def mutants(result: dict[str, Any]) -> str:
    """Return how many changes of each module its tests noticed, and why those that are left cannot be noticed."""
    header = ("module", "mutants", "killed before", "killed after", "equivalent", "left")
    counts = {
        f"`{name}`": (one["mutants"], one["killed_before"], one["killed"], len(one["equivalent"]), len(one["survived"]))
        for name, one in result["modules"].items()
    }
    counts["all"] = tuple(map(sum, zip(*counts.values(), strict=True)))
    lines = [[name, *map(str, row)] for name, row in counts.items()]
    reasons = "".join(equivalents(name, found) for name, found in result["modules"].items())
    return f"{markdown_table(header, lines)}\n\nEquivalent mutants, in brackets how many:\n\n{reasons}"


def equivalents(name: str, found: dict[str, Any]) -> str:
    """Return a line for each reason: which lines of the module were changed, and in how many ways."""
    reasons: dict[str, list[str]] = {}
    for change, reason in found["equivalent"].items():
        line = change.partition(": ")[2].partition(" → ")[0].partition("  #")[0]
        reasons.setdefault(reason, []).append(f"`{line}`")
    return "".join(
        f"- `{name}`, {', '.join(dict.fromkeys(lines))} ({len(lines)}): {reason}\n" for reason, lines in reasons.items()
    )


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
    cells = {found["column"]: found for found in recorded(experiment.name) if found["row"] == row.name}
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
            found = cells.get(column.title)
            own = percent(found["test_accuracy"], found["test_accuracy_std"]) if found else absent(column)
            yield f"{column.title} {published(row, column)} → {own}"
        for other in cells.keys() - {column.title for column in columns}:  # made on another graph
            yield f"{other} – → {percent(cells[other]['test_accuracy'], cells[other]['test_accuracy_std'])}"


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
