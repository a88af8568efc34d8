"""gamlp datasets, import and synth: the graphs there are, graphs of one's own, and generated ones for measuring."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from gamlp.cli.begin import read_source
from gamlp.cli.options import Answer, GraphOptions, Memory, Seed, if_interrupted
from gamlp.cli.screen import note, screen, table
from gamlp.errors import SettingsError, check_utf8

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.graph.readers.datasets import DatasetInfo

KEPT_BESIDE = "What is finished is kept: run it again to go on (in {}.partial)."
Overwrite = Annotated[bool, Option("--overwrite", help="Replace a graph directory that is there.")]


def datasets(
    *, root: Annotated[Path, Option(help="The folder with data sets, laid out as PyG and OGB do.")] = Path("data")
) -> Answer:
    """List the known data sets, their sizes, and whether their files are there."""
    from gamlp.graph.readers.datasets import describe_datasets

    found = describe_datasets(root)
    return {"root": str(root), "datasets": [asdict(info) for info in found]}, lambda: show(root, found)


def show(root: Path, found: list[DatasetInfo]) -> None:
    """Print one line a data set."""
    from rich.box import SIMPLE

    sizes = ("nodes", "edges", "features", "classes")
    whole, title = ("name", *sizes), f"Data sets below {root}"
    made = table(title, (*whole, "on disk"), left=["name", "on disk"], whole=whole, box=SIMPLE, padding=(0, 1, 0, 0))
    for info in found:
        where = "built in" if info.built_in else "yes" if info.on_disk else f"no: {info.place}"
        made.add_row(info.name, *(f"{getattr(info, size):,}" for size in sizes), where)
    screen().print(made)


def import_(
    graph: GraphOptions,
    *,
    out: Annotated[Path, Option(help="The graph directory to make.")],
    overwrite: Overwrite = False,
    self_loops: Annotated[
        bool, Option("--self-loops", help="Keep edges from a node to itself; with --memory.")
    ] = False,
    memory: Memory = None,
) -> Answer:
    """Turn files, or a data set, into a graph directory that opens at once; with --memory, files of any size."""
    from gamlp.graph.build.import_directory import import_files
    from gamlp.storage.sizes import parse_size

    check_utf8(str(out))
    source = graph.source()
    if self_loops and memory is None:
        raise SettingsError("--self-loops was given without --memory.\nGive both: without, self-loops are dropped.")
    if memory is None:
        return described(import_small(read_source(source), out, overwrite=overwrite))
    limit, files = parse_size(memory), source.open()
    for text in files.notes:
        note(text)
    if_interrupted(KEPT_BESIDE.format(out))
    return described(import_files(out, files, memory=limit, self_loops=self_loops, overwrite=overwrite))


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


def synth(
    shape: Annotated[str, Argument(metavar="SHAPE", help="products, papers100M, mag or video.")],
    *,
    out: Annotated[Path, Option("--out", "-o", help="The graph directory to make.")],
    scale: Annotated[float, Option(help="Times the shape's nodes and edges.")] = 1.0,
    nodes: Annotated[int | None, Option(help="Instead of the shape's.", min=2)] = None,
    edges: Annotated[int | None, Option(help="Instead of the shape's; before symmetrising.", min=1)] = None,
    features: Annotated[int | None, Option(help="Instead of the shape's.", min=1)] = None,
    classes: Annotated[int | None, Option(help="Instead of the shape's.", min=2)] = None,
    homophily: Annotated[
        float | None, Option(help="Share of edges within a class; the others lead to the next class.", min=0, max=1)
    ] = None,
    overwrite: Overwrite = False,
    memory: Memory = None,
    seed: Seed = 0,
) -> Answer:
    """Generate a graph with planted classes, skewed degrees and communities, in the shape of a known data set."""
    from gamlp.graph.build.import_directory import MEMORY
    from gamlp.storage.sizes import parse_size
    from gamlp.synth.draw import shape_named
    from gamlp.synth.write import write_synth

    if not 0 < scale < float("inf"):
        raise SettingsError(f"--scale is {scale}.\nExpected a number above 0, as 0.01.")
    given: dict[str, Any] = {"nodes": nodes, "edges": edges, "features": features, "classes": classes}
    changes = {name: value for name, value in given.items() if value is not None}
    wanted = replace(shape_named(shape).scaled(scale), **changes)
    wanted = wanted if homophily is None else wanted.with_homophily(homophily)
    limit = MEMORY if memory is None else parse_size(memory)
    if_interrupted(KEPT_BESIDE.format(out))
    return described(write_synth(out, wanted, seed=seed, memory=limit, overwrite=overwrite))


def described(facts: dict[str, Any]) -> Answer:
    """Return what was made, in words too."""
    return facts, (
        f"{facts['out']}: {facts['nodes']:,} nodes, {facts['entries']:,} entries, {facts['features']:,} features, "
        f"{facts['classes']} classes, {facts['labelled']:,} labelled."
    )
