"""New nodes beside the graph of a run: what predict and explain do with --new, and how a run's model is opened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from gamlp.cli.begin import read_own_graph
from gamlp.cli.options import Answer, ComputeOptions, GraphOptions, refuse
from gamlp.errors import InputError, SettingsError
from gamlp.progress import log

if TYPE_CHECKING:
    from gamlp.graph.build.new_nodes import NewNodes
    from gamlp.graph.graph import Graph
    from gamlp.graph.readers.source import GraphSource
    from gamlp.pipeline import Fitted
    from gamlp.runs.record import Record
    from gamlp.train.prediction import Prediction

NewFiles = Annotated[
    tuple[Path, Path] | None,
    Option("--new", metavar="EDGES NODES", help="Tables of nodes that the run's graph does not have, and their edges."),
]
REFUSED = ("root", "embeddings", "rows", "coverage", "abstain")


@dataclass(frozen=True, eq=False)
class Opened:
    """A run with its graph and model, and nodes beside it."""

    record: Record
    seed: int
    graph: Graph
    fitted: Fitted
    new: NewNodes

    def predict(self, *, exact: bool) -> Prediction:
        """Return what the model says of the new nodes, from what is kept of the others or with all of them."""
        split = self.graph.split_for(self.seed)
        if exact:
            return self.fitted.predict_exactly(self.graph, self.new, split=split)
        living = self.fitted.living(self.graph, split=split)
        log.info("%d bytes are kept of the graph", living.bytes)
        return living.predict(self.new)

    def joined(self) -> Graph:
        """Return the graph with the new nodes in it, its split that of the seed."""
        from gamlp.graph.build.changes import Changes, apply_changes
        from gamlp.propagate.stationary import is_symmetric

        own = replace(self.graph, split=self.graph.split_for(self.seed))
        return apply_changes(own, Changes.of_new(self.new), directed=not is_symmetric(own.adjacency))[0]


def open_beside(
    run: Path, seed: int | None, graph: GraphOptions, new: tuple[Path, Path], compute: ComputeOptions
) -> Opened:
    """Read a run, its graph, and the new nodes; what is kept of the graph lies in --cache, by default in RUN/hops."""
    from gamlp.model_file import load_fitted

    if graph.what:
        raise SettingsError("A graph was named beside --new.\nNew nodes are joined to the run's own: leave it out.")
    refuse("{option} was given with --new.\nTwo tables tell all: leave it out.", only=REFUSED)
    record, chosen, folder = finished_model(run, seed)
    own = read_own_graph(record)
    source = another_source(replace(graph, what=[str(path) for path in new]), record)
    engine = compute.choice()
    engine = engine.model_copy(update={"cache": engine.cache or run.resolve() / "hops"})
    fitted = load_fitted(folder, engine=engine.open(device=compute.device), device=compute.device)
    return Opened(record, chosen, own, fitted, source.read_beside(own))


def predict_new(
    run: Path,
    seed: int | None,
    graph: GraphOptions,
    new: tuple[Path, Path],
    compute: ComputeOptions,
    *,
    out: Path,
    exact: bool,
    shown: dict[str, bool],
) -> Answer:
    """Write the classes of new nodes."""
    import numpy as np

    from gamlp.runs.predictions import Tally, tables_of, write_predictions_to

    if out.resolve() in [path.resolve() for path in new]:
        raise InputError(f"--out {out} would write over what is read.\nChoose another name.")
    opened = open_beside(run, seed, graph, new, compute)
    fitted, nodes, tally = opened.fitted, opened.new.nodes, Tally(scored=True)
    said = replace(opened.predict(exact=exact), rows=np.arange(nodes.nodes))  # of the table, not of the graph
    known = replace(nodes, labels=fitted.class_numbers(nodes), classes=fitted.classes)
    write_predictions_to(tables_of([said], known, tally, opened.record.method, shown, {}), out)
    result: dict[str, Any] = {
        "run": str(run), "seed": opened.seed, "dataset": opened.graph.name, "nodes": tally.nodes, "exact": exact,
        "out": str(out), "mean_confidence": tally.confidence / max(1, tally.nodes), **tally.scores(),
    }  # fmt: skip
    return result, f"{nodes.nodes:,} predictions of new nodes, by seed {opened.seed}, are in {out}."


def finished_model(run: Path, seed: int | None) -> tuple[Record, int, Path]:
    """Return the record of a run, the seed that is asked for or its best, and the folder of its model, checked."""
    from gamlp.runs.record import finished_seed, read_run
    from gamlp.runs.seed import check_kept

    record = read_run(run)
    chosen = finished_seed(run, record, seed)
    folder = run / f"seed-{chosen}"
    check_kept(folder, record={"result": record.result}, names=("model.json",))
    return record, chosen, folder


def another_source(graph: GraphOptions, record: Record) -> GraphSource:
    """Return the source of another graph, read as the run's graph was where both are files of tables."""
    from gamlp.graph.readers.datasets import both_tables
    from gamlp.graph.readers.labels import has_labels
    from gamlp.graph.readers.table import is_table, open_table

    files = [Path(word) for word in both_tables(graph.what, {})[0]]
    if record.source is None or not all(map(is_table, files)):
        return graph.source()
    names = {name for file in files for name in open_table(file).names}
    needed = {
        role: name
        for role, name in record.source.columns.items()
        if role not in ("label", "split") or name in names or (role == "label" and has_labels(list(names), name))
    }
    ignored = tuple(name for name in record.source.ignore if name in names)
    return graph.source(record.source.model_copy(update={"columns": needed, "ignore": ignored}))


def check_out(out: Path, source: GraphSource | None) -> None:
    """Refuse to write over what is read."""
    from gamlp.graph.readers.databases import is_database_table

    place = out.resolve()
    given = [] if source is None else [*map(Path, source.what), *([source.features] if source.features else [])]
    given += [path.parent for path in given if is_database_table(path)]
    if any(path.exists() and (path == place or path in place.parents) for path in given):
        raise InputError(f"--out {out} would write over what the graph is read from.\nChoose another name.")
