"""gamlp update: the next version of a graph directory, and of what is kept of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from gamlp.cli.options import Answer, Memory, if_interrupted, pair
from gamlp.errors import SettingsError

if TYPE_CHECKING:
    from gamlp.graph.build.changes import Changes
    from gamlp.graph.graph import Graph


def update(
    graph: Annotated[Path, Argument(help="A graph directory made by gamlp import.")],
    *,
    edges: Annotated[Path | None, Option(help="Edges; a column op says add (the usual), change or remove.")] = None,
    nodes: Annotated[Path | None, Option(help="Nodes; a column op says add (the usual), change or remove.")] = None,
    to: Annotated[Path | None, Option(help="A graph directory: make the differences to it, by ids.")] = None,
    out: Annotated[Path | None, Option(help="Where the new version goes; by default in the place of the old.")] = None,
    cache: Annotated[Path | None, Option(help="Bring along what is kept here of the graph, as RUN/hops.")] = None,
    column: Annotated[
        list[str] | None,
        Option(metavar="ROLE=NAME", help="Which column is source, target, weight, id, label or split."),
    ] = None,
    ignore: Annotated[list[str] | None, Option(metavar="COLUMN", help="A column that is no feature.")] = None,
    directed: Annotated[
        bool | None, Option("--directed/--undirected", help="Whether edges lead one way; by default as in the graph.")
    ] = None,
    memory: Memory = None,
) -> Answer:
    """Change nodes and edges of a graph directory; what is kept of it is computed again where the change reaches."""
    from gamlp.propagate.engines.registry import EngineChoice
    from gamlp.propagate.update import update_folder
    from gamlp.storage.sizes import parse_size

    if (to is None) == (edges is None and nodes is None):
        raise SettingsError("Say what changes: --edges, --nodes or both, or --to, the graph that it is to become.")
    if_interrupted("The old version is in its place; run it again to make the new one.")
    roles = dict(pair(text, "--column") for text in column or [])
    columns = {**roles, "ignore": tuple(ignore or ())}
    choice = EngineChoice(memory=None if memory is None else parse_size(memory), cache=cache and cache.resolve())
    read = partial(changes_of, edges=edges, nodes=nodes, to=to, columns=columns)
    facts = update_folder(graph, read, choice.open(device="cpu"), directed=directed, out=out)
    return facts, words(facts)


def changes_of(
    graph: Graph, edges: Path | None, nodes: Path | None, to: Path | None, columns: dict[str, Any]
) -> Changes:
    """Read the changes, from tables or from the graph that is to be."""
    from gamlp.graph.readers.change_tables import difference, read_changes
    from gamlp.graph.store import load_graph
    from gamlp.propagate.update import check_graph_folder

    if to is None:
        return read_changes(graph, edges, nodes, **columns)
    check_graph_folder(to)
    return difference(graph, load_graph(to))


def words(facts: dict[str, Any]) -> str:
    """Say what was made."""
    kept = [f"{count:,} rows with other bits" for count in facts["rows_touched"]]
    carried = f" Kept states: {'; '.join(kept)}." if kept else ""
    return (
        f"{facts['out']}: {facts['nodes']:,} nodes ({facts['added']:,} added, {facts['removed']:,} removed), "
        f"{facts['entries']:,} entries, {facts['rows_changed']:,} rows of the adjacency changed.{carried}"
    )
