"""gamlp datasets and import: what there is, and graphs of one's own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from gamlp.cli import common
from gamlp.cli.common import AnySeed, Column, Directed, Features, Json, Memory, Root, What
from gamlp.errors import SettingsError


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: gamlp datasets --root ~/data")(datasets)
    app.command(name="import", epilog="Example: gamlp import edges.csv nodes.csv --out my-graph")(import_)


def datasets(*, root: Root = Path("data"), seed: AnySeed = 0, json: Json = False) -> None:
    """List the known data sets, their sizes, and whether their files are there."""
    from gamlp.graph.readers.datasets import describe_datasets

    found = describe_datasets(root)
    if json:
        common.print_json({"root": str(root), "datasets": [asdict(info) for info in found]})
        return
    from rich.box import SIMPLE
    from rich.table import Table

    from gamlp.cli.screen import screen

    table = Table(title=f"Data sets below {root}", title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for name in ("name", "nodes", "edges", "features", "classes"):
        table.add_column(name, justify="left" if name == "name" else "right", no_wrap=True)
    table.add_column("on disk", overflow="fold")
    for info in found:
        sizes = (info.nodes, info.edges, info.features, info.classes)
        where = "built in" if info.built_in else "yes" if info.on_disk else f"no: {info.place}"
        table.add_row(info.name, *(f"{size:,}" for size in sizes), where)
    screen().print(table)


def import_(
    what: What = None,
    *,
    out: Annotated[Path, typer.Option("--out", help="The graph directory to make.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a graph directory that is there.")] = False,
    root: Root = Path("data"),
    column: Column = None,
    features: Features = None,
    directed: Directed = False,
    self_loops: Annotated[
        bool, typer.Option("--self-loops", help="Keep edges from a node to itself; with --memory.")
    ] = False,
    memory: Memory = None,
    seed: AnySeed = 0,
    json: Json = False,
) -> None:
    """Turn files, or a data set, into a graph directory that opens at once; with --memory, files of any size."""
    source = common.graph_source(what, root, column, features, directed)
    again = f"What is finished is kept: run it again to go on (in {out}.partial)." if memory else ""
    with common.shown_progress(again) if memory else common.shown_progress():
        if memory is not None:
            facts = import_large(source, out, memory=memory, self_loops=self_loops, overwrite=overwrite)
        elif self_loops:
            raise SettingsError("--self-loops was given without --memory.\nGive both: without, self-loops are dropped.")
        else:
            facts = import_small(source, out, overwrite=overwrite)
    if json:
        common.print_json(facts)
    else:
        typer.echo(
            f"{out}: {facts['nodes']:,} nodes, {facts['entries']:,} entries, {facts['features']:,} features, "
            f"{facts['classes']} classes, {facts['labelled']:,} labelled."
        )


def import_large(
    source: dict[str, Any], out: Path, *, memory: str, self_loops: bool, overwrite: bool
) -> dict[str, Any]:
    """Import files, or an OGB data set, within some memory."""
    from gamlp.graph.build.import_directory import import_tables
    from gamlp.graph.readers.datasets import find_dataset, import_dataset
    from gamlp.storage.sizes import parse_size

    first = Path(source["what"][0])
    options: dict[str, Any] = {"memory": parse_size(memory), "overwrite": overwrite}
    dataset = find_dataset(str(source["what"][0]))
    if not first.is_file() and dataset is not None and dataset.split_folder:
        return import_dataset(dataset, Path(source["root"]), out, **options)
    if not first.is_file():
        raise SettingsError(
            f"--memory was given for '{first}', which is neither a file of edges nor one of OGB's data sets.\n"
            "Leave it out: this graph is read as a whole."
        )
    named = dict(source["options"])
    if "features" in named:
        named["features"] = Path(named["features"])
    table = Path(source["what"][1]) if source["what"][1:] else None
    return import_tables(out, first, table, self_loops=self_loops, **named, **options)


def import_small(source: dict[str, Any], out: Path, *, overwrite: bool) -> dict[str, Any]:
    """Read a graph as a whole and save it."""
    from gamlp.graph.hetero import HeteroGraph
    from gamlp.graph.store import save_graph

    graph = common.read_source(source)
    if isinstance(graph, HeteroGraph):
        raise SettingsError(
            f"{graph.name} has {len(graph.types)} types of nodes and {len(graph.relations)} relations; a graph "
            "directory holds plain graphs.\nTrain on it as it is: gamlp train reads it directly."
        )
    save_graph(graph, out, overwrite=overwrite)
    return {
        "out": str(out), "dataset": graph.name, "nodes": graph.nodes, "entries": graph.adjacency.entries,
        "features": graph.features.shape[1], "classes": len(graph.classes), "labelled": int((graph.labels >= 0).sum()),
    }  # fmt: skip
