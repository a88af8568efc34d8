"""gamlp datasets and import: what there is, and graphs of one's own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gamlp.cli import common
from gamlp.cli.options import AnySeed, GraphOptions, Json, Memory, spelled_out
from gamlp.cli.screen import say
from gamlp.errors import SettingsError, check_utf8

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: gamlp datasets --root ~/data")(datasets)
    app.command(name="import", epilog="Example: gamlp import edges.csv nodes.csv --out my-graph")(spelled_out(import_))


def datasets(
    *,
    root: Annotated[Path, typer.Option("--root", help="The folder with data sets, laid out as PyG and OGB do.")] = Path(
        "data"
    ),
    seed: AnySeed = 0,
    json: Json = False,
) -> None:
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
    graph: GraphOptions,
    *,
    out: Annotated[Path, typer.Option("--out", help="The graph directory to make.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a graph directory that is there.")] = False,
    self_loops: Annotated[
        bool, typer.Option("--self-loops", help="Keep edges from a node to itself; with --memory.")
    ] = False,
    memory: Memory = None,
    seed: AnySeed = 0,
    json: Json = False,
) -> None:
    """Turn files, or a data set, into a graph directory that opens at once; with --memory, files of any size."""
    from gamlp.graph.build.import_directory import import_files
    from gamlp.storage.sizes import parse_size

    check_utf8(str(out))
    source = graph.source()
    again = f"What is finished is kept: run it again to go on (in {out}.partial)." if memory else ""
    with common.shown_progress(again) if memory else common.shown_progress():
        if memory is not None:
            limit = parse_size(memory)
            facts = import_files(out, source.open(), memory=limit, self_loops=self_loops, overwrite=overwrite)
        elif self_loops:
            raise SettingsError("--self-loops was given without --memory.\nGive both: without, self-loops are dropped.")
        else:
            facts = import_small(source.read(), out, overwrite=overwrite)
    if json:
        common.print_json(facts)
    else:
        say(
            f"{out}: {facts['nodes']:,} nodes, {facts['entries']:,} entries, {facts['features']:,} features, "
            f"{facts['classes']} classes, {facts['labelled']:,} labelled."
        )


def import_small(graph: Graph, out: Path, *, overwrite: bool) -> dict[str, Any]:
    """Save a graph that was read as a whole."""
    from gamlp.graph.hetero import HeteroGraph
    from gamlp.graph.store import save_graph

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
