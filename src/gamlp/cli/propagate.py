"""gamlp propagate: features propagated before training, in memory or on disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gamlp.cli import common
from gamlp.cli.common import Column, Device, Directed, Features, Json, Memory, Root, Set, What
from gamlp.cli.engines import Address, Choice, Engine, chosen
from gamlp.errors import SettingsError

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.propagate import Hops
    from gamlp.settings import Settings
    from gamlp.storage.files import Array


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Examples: gamlp propagate my-graph --set hops=5 --cache hops, then gamlp train my-graph --cache hops · "
        "gamlp propagate big-graph --out hops --memory 8GiB --rows labelled"
    )(propagate)


def propagate(
    what: What = None,
    *,
    cache: Annotated[
        Path | None, typer.Option("--cache", help="Where gamlp train --cache finds the propagated features.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder of their own for them.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in --out.")] = False,
    engine: Engine = None,
    address: Address = None,
    memory: Memory = None,
    rows: Annotated[
        str | None,
        typer.Option(metavar="WHICH", help="labelled, all, or a file of node numbers (.npy, or one in a line)."),
    ] = None,
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
    """Propagate the features of a graph and keep them, for gamlp train --cache or for anything else."""
    from gamlp.cli.train import default_recipe, method_of
    from gamlp.runs.run import Order

    if (cache is None) == (out is None):
        raise SettingsError("Name one place for the propagated features.\n--cache for gamlp train, or --out.")
    choice = chosen(engine, memory, address, device)
    source = common.graph_source(what, root, column, features, directed)
    recipe = recipe or default_recipe(source["what"])
    overrides = common.overrides(set_) | ({"rows": rows} if rows in ("labelled", "all") else {})
    order = Order(method or method_of(recipe), recipe, overrides, [seed], device)
    again = "Finished blocks are kept: run it again to go on." if choice.memory else ""
    with common.shown_progress(again) if again else common.shown_progress():
        graph = common.read_source(source)
        settings = order.task(graph).settings
        if settings is None:
            raise SettingsError(f"{order.method} does not propagate beforehand.\nName a method on hops, as gamlp-jk.")
        started = time.perf_counter()
        wanted = None if rows in (None, "labelled", "all") else read_rows(Path(str(rows)))
        hops = compute(graph, settings, wanted, cache=cache, out=out, choice=choice, seed=seed, device=device,
                       overwrite=overwrite)  # fmt: skip
    show(graph, hops, Path(out or cache or ""), seconds=time.perf_counter() - started, json=json)


def compute(
    graph: Graph,
    settings: Settings,
    rows: Array | None,
    *,
    cache: Path | None,
    out: Path | None,
    choice: Choice,
    seed: int,
    device: str,
    overwrite: bool,
) -> Hops:
    """Return the hops in the cache or in a folder of their own."""
    from gamlp.train.prepare import Workshop

    workshop = Workshop(graph, cache=cache, device=device, memory=choice.memory, write=choice.write)
    if cache is not None and rows is None:
        return workshop.hops(settings, graph.split_for(seed))
    return workshop.hops_at(settings, graph.split_for(seed), rows=rows, out=out, overwrite=overwrite)


def read_rows(path: Path) -> Array:
    """Read node numbers from a .npy file, or from text with one in a line."""
    import numpy as np

    from gamlp.errors import FormatError, MissingFileError
    from gamlp.storage.files import read_array

    if not path.is_file():
        raise MissingFileError(f"--rows {path}: there is no such file.\nGive labelled, all, or a file of node numbers.")
    if path.suffix.lower() == ".npy":
        found = read_array(path)
    else:
        try:
            found = np.array([int(line) for line in path.read_text(encoding="utf-8").split()])
        except (ValueError, UnicodeDecodeError) as error:
            raise FormatError(f"{path} is no list of node numbers ({error}).\nWrite one in a line.") from error
    if found.ndim != 1 or found.dtype.kind not in "iu" or not len(found):
        raise FormatError(f"{path} holds {found.dtype} of the shape {found.shape}.\nExpected a row of node numbers.")
    return found.astype(np.int64)


def show(graph: Graph, hops: Hops, place: Path, *, seconds: float, json: bool) -> None:
    """Say what was made."""
    facts: dict[str, Any] = {
        "dataset": graph.name, "cache": str(place), "key": hops.key, "rows": hops.values.shape[0], "hops": hops.count,
        "features": hops.values.shape[-1], "bytes": hops.values.nbytes, "seconds": seconds,
    }  # fmt: skip
    if json:
        common.print_json(facts)
    else:
        typer.echo(
            f"{facts['rows']:,} rows, {facts['hops']} hops, {facts['features']:,} features, "
            f"{hops.values.nbytes / 2**20:,.0f} MiB, in {seconds:.1f} s, below {place}."
        )
