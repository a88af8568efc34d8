"""gamlp datasets, import, propagate: what there is, and what comes before training."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from gamlp.cli import common
from gamlp.cli.common import AnySeed, Column, Device, Directed, Features, Json, Root, Set, What


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: gamlp datasets --root ~/data")(datasets)
    app.command(name="import", epilog="Example: gamlp import edges.csv nodes.csv --out my-graph")(import_)
    app.command(
        epilog="Example: gamlp propagate my-graph --set hops=5 --cache hops, then gamlp train my-graph --cache hops"
    )(propagate)


def datasets(*, root: Root = Path("data"), seed: AnySeed = 0, json: Json = False) -> None:
    """List the known data sets, their sizes, and whether their files are there."""
    from gamlp.graph.datasets import describe_datasets

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
    seed: AnySeed = 0,
    json: Json = False,
) -> None:
    """Turn files, or a data set, into a graph directory that opens at once."""
    from gamlp.graph.hetero import HeteroGraph
    from gamlp.graph.store import save_graph

    with common.shown_progress():
        graph = common.read_source(common.graph_source(what, root, column, features, directed))
        if isinstance(graph, HeteroGraph):
            from gamlp.errors import SettingsError

            raise SettingsError(
                f"{graph.name} has {len(graph.types)} types of nodes and {len(graph.relations)} relations; a graph "
                "directory holds plain graphs.\nTrain on it as it is: gamlp train reads it directly."
            )
        save_graph(graph, out, overwrite=overwrite)
    facts = {
        "out": str(out), "dataset": graph.name, "nodes": graph.nodes, "entries": graph.adjacency.entries,
        "features": graph.features.shape[1], "classes": len(graph.classes), "labelled": int((graph.labels >= 0).sum()),
    }  # fmt: skip
    if json:
        common.print_json(facts)
    else:
        typer.echo(
            f"{out}: {facts['nodes']:,} nodes, {facts['entries']:,} entries, {facts['features']:,} features, "
            f"{facts['classes']} classes, {facts['labelled']:,} labelled."
        )


def propagate(
    what: What = None,
    *,
    cache: Annotated[Path, typer.Option("--cache", help="Where the propagated features go.")],
    method: Annotated[str | None, typer.Option(help="Propagate as this method would.")] = None,
    recipe: common.Recipe = None,
    set_: Set = None,
    root: Root = Path("data"),
    column: Column = None,
    features: Features = None,
    directed: Directed = False,
    device: Device = "cpu",
    seed: common.Seed = 0,
    json: Json = False,
) -> None:
    """Propagate the features of a graph and keep them for gamlp train --cache."""
    import time

    from gamlp.cli.train import default_recipe, method_of
    from gamlp.train.prepare import Workshop
    from gamlp.train.run import Order

    source = common.graph_source(what, root, column, features, directed)
    recipe = recipe or default_recipe(source["what"])
    order = Order(method or method_of(recipe), recipe, common.overrides(set_), [seed], device)
    with common.shown_progress():
        graph = common.read_source(source)
        settings = order.task(graph).settings
        if settings is None:
            from gamlp.errors import SettingsError

            raise SettingsError(f"{order.method} does not propagate beforehand.\nName a method on hops, as gamlp-jk.")
        started = time.perf_counter()
        hops = Workshop(graph, cache=cache, device=device).hops(settings, graph.split_for(seed))
    facts = {
        "dataset": graph.name, "cache": str(cache), "key": hops.key, "rows": hops.values.shape[0], "hops": hops.count,
        "features": hops.values.shape[-1], "bytes": hops.values.nbytes, "seconds": time.perf_counter() - started,
    }  # fmt: skip
    if json:
        common.print_json(facts)
    else:
        typer.echo(
            f"{facts['rows']:,} rows, {facts['hops']} hops, {facts['features']:,} features, "
            f"{hops.values.nbytes / 2**20:,.0f} MiB, in {facts['seconds']:.1f} s, below {cache}."
        )
