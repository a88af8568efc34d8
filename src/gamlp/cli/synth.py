"""gamlp synth: generated graphs of any size, for measuring."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gamlp.cli import common
from gamlp.cli.options import Json, Memory, Seed
from gamlp.cli.screen import say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: gamlp synth papers100M --scale 0.01 --out small-papers")(synth)


def synth(
    shape: Annotated[str, typer.Argument(metavar="SHAPE", help="products, papers100M or mag.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The graph directory to make.")],
    scale: Annotated[float, typer.Option(help="Times the shape's nodes and edges.")] = 1.0,
    nodes: Annotated[int | None, typer.Option(help="Instead of the shape's.", min=2)] = None,
    edges: Annotated[int | None, typer.Option(help="Instead of the shape's; before symmetrising.", min=1)] = None,
    features: Annotated[int | None, typer.Option(help="Instead of the shape's.", min=1)] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a graph directory that is there.")] = False,
    memory: Memory = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Generate a graph with planted classes, skewed degrees and communities, in the shape of a known data set."""
    from gamlp.errors import SettingsError
    from gamlp.graph.build.import_directory import MEMORY
    from gamlp.storage.sizes import parse_size
    from gamlp.synth.draw import shape_named
    from gamlp.synth.write import write_synth

    if not 0 < scale < float("inf"):
        raise SettingsError(f"--scale is {scale}.\nExpected a number above 0, as 0.01.")
    wanted = shape_named(shape).scaled(scale)
    given: dict[str, Any] = {"nodes": nodes, "edges": edges, "features": features}
    wanted = replace(wanted, **{name: value for name, value in given.items() if value is not None})
    limit = MEMORY if memory is None else parse_size(memory)
    with common.shown_progress(f"What is finished is kept: run it again to go on (in {out}.partial)."):
        facts = write_synth(out, wanted, seed=seed, memory=limit, overwrite=overwrite)
    if json:
        common.print_json(facts)
    else:
        say(
            f"{out}: {facts['nodes']:,} nodes, {facts['entries']:,} entries, {facts['features']:,} features, "
            f"{facts['classes']} classes, {facts['labelled']:,} labelled."
        )
