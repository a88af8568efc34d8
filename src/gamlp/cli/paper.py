"""gamlp paper and methods: the experiments of the paper by name, and every method there is."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.box import SIMPLE
from typer import Argument, Option

from gamlp.cli.begin import asked, read_source
from gamlp.cli.options import Answer, ComputeOptions, Seed, Set, if_interrupted, refuse
from gamlp.cli.screen import say, screen, table


def paper(
    name: Annotated[
        str | None, Argument(metavar="NAME", help="A table or figure of the list; without, the list.")
    ] = None,
    *,
    root: Annotated[Path | None, Option(help="The folder with data sets; usually data.")] = None,
    graph: Annotated[str | None, Option(help="Another data set or graph directory than the paper's.")] = None,
    without: Annotated[str | None, Option(help="Methods to leave out, with commas between.")] = None,
    set_: Set = None,
    seeds: Annotated[int | None, Option(help="How many seeds; by default as many as the paper.", min=1)] = None,
    seed: Seed = 0,
    out: Annotated[Path | None, Option(help="The directory; by default runs/paper-NAME, where it goes on.")] = None,
    compute: ComputeOptions,
) -> Answer:
    """Make a table or a figure of the paper, or list them; what is finished is not trained again."""
    from gamlp.paper.experiments import experiment_named

    if name is None:
        refuse("{option} was given without a NAME.\nName a table or figure of the list.", but=("root", "json", "seed"))
        return listed(root)
    from gamlp.paper.make import make
    from gamlp.runs.spec import engine_options, shell_line

    experiment = experiment_named(name)
    if without:
        experiment = experiment.without([one.strip() for one in without.split(",") if one.strip()])
    if graph:
        experiment = experiment.on(graph)
    folder = out or Path("runs") / "-".join(["paper", name, *([Path(graph).name] if graph else [])])
    own, engine = asked(set_, seed, seeds or experiment.seeds), compute.choice()
    given = {"root": root, "graph": graph, "without": without, "seeds": seeds, "seed": seed or None, "out": out}
    options = [(key, value) for key, value in given.items() if value is not None]
    options += [*(("set", text) for text in set_ or []), *engine_options(engine, compute.device)]
    again = shell_line(["paper", name], options)
    if_interrupted(f"What is finished is kept; go on with: {again}")
    result = make(
        experiment, folder, root=root, engine=engine, device=compute.device, command=again, read=read_source, **own
    )
    return result, partial(show, result, folder)


def listed(root: Path | None) -> Answer:
    """List all experiments, and what of their data is missing."""
    from gamlp.paper.experiments import experiments, missing_data

    found: list[dict[str, Any]] = [
        {
            "name": one.name, "kind": one.kind, "title": one.title, "source": one.source, "seeds": one.seeds,
            "graphs": list(dict.fromkeys(column.graph or f"synth {column.synth}" for column in one.columns)),
            "methods": list(dict.fromkeys(row.method for row in one.rows)), "missing": missing_data(one, root),
        }
        for one in experiments().values()
    ]  # fmt: skip
    rows = [
        (one["name"], one["kind"], one["title"], ", ".join(one["graphs"]), "to fetch" if one["missing"] else "there")
        for one in found
    ]
    return {"experiments": found}, partial(
        print_table, "The paper", ("name", "kind", "what", "graphs", "data"), rows, left=True
    )


def show(result: dict[str, Any], folder: Path) -> None:
    """Print the tables."""
    from gamlp.paper.table import footnote, tables

    for title, header, rows in tables(result):
        print_table(f"{result['title']}: {title}", header, rows)
    say(f"{footnote(result)}\nEverything is in {folder}: report.html to look at.")


def methods() -> Answer:
    """List all methods with their reference, what they need and what can be added to them."""
    from gamlp.methods import BASES, method_named

    found = []
    for name, base in BASES.items():
        method = method_named(name)
        needs = [f"gamlp[{method.extra}]"] if method.extra else []
        needs += ["several relations"] if method.needs_relations else []
        found.append({"name": name, "reference": base.reference, "needs": needs, "additions": list(method.additions)})
    rows = [(one["name"], one["reference"], ", ".join(one["needs"]), " ".join(one["additions"])) for one in found]
    return {"methods": found}, partial(
        print_table, "Methods", ("name", "reference", "needs", "can be added"), rows, left=True
    )


def print_table(title: str, header: Any, rows: Any, *, left: bool = False) -> None:
    """Print texts in columns."""
    made = table(title, header, left=header if left else (), whole=header[:1], box=SIMPLE)
    for row in rows:
        made.add_row(*row)
    screen().print(made)
