"""gamlp predict: what a run says of its own graph, or of another one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from gamlp.cli.begin import read_own_graph, read_source
from gamlp.cli.options import Answer, ComputeOptions, GraphOptions, refuse
from gamlp.errors import InputError

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.graph.readers.source import GraphSource
    from gamlp.propagate.engines.registry import EngineChoice
    from gamlp.runs.record import Record
    from gamlp.storage.files import Array

OF_ANOTHER = ("column", "ignore", "features", "directed", "engine", "memory", "address", "cache", "device")
NO_GRAPH = (
    "{option} was given, and no graph after the run: the run's own graph is read, and its predictions are there.\n"
    "Leave the option out, or name a graph."
)


def predict(
    run: Annotated[Path, Argument(help="A run directory made by gamlp train.")],
    graph: GraphOptions,
    *,
    out: Annotated[Path, Option(help="Where to write, .parquet or .csv.")] = Path("predictions.parquet"),
    seed: Annotated[int | None, Option(help="Which seed's model; by default the best on validation.", min=0)] = None,
    compute: ComputeOptions,
) -> Answer:
    """Write the class of every node: of the run's own graph, or of another graph with the same features.

    Another graph is read as the run's was: its columns and its direction, unless options say otherwise.
    """
    from gamlp.runs.predictions import prediction_tables, stored, write_predictions_to
    from gamlp.runs.record import finished_seed, read_run
    from gamlp.runs.seed import check_kept

    if out.suffix not in {".parquet", ".csv"}:
        raise InputError(f"Predictions cannot be written as '{out.name}'.\nUse a name that ends in .parquet or .csv.")
    engine = compute.choice()
    record = read_run(run)
    chosen = finished_seed(run, record, seed)
    folder = run / f"seed-{chosen}"
    check_kept(folder, record={"result": record.result}, names=("model.json",))
    source = another_source(graph, record) if graph.what else record.source
    check_out(out, source)
    if graph.what:
        read, rows, probabilities = of_another(folder, read_source(source), record, engine, compute.device)
    else:
        refuse(NO_GRAPH, only=OF_ANOTHER)
        read = read_own_graph(record, graph.root)
        rows, probabilities = stored(folder)
    tables = prediction_tables(read, rows, probabilities, seed=None if graph.what else chosen)
    write_predictions_to(tables, out)
    result: dict[str, Any] = {
        "run": str(run), "seed": chosen, "dataset": read.name, "nodes": len(rows), "out": str(out),
        "mean_confidence": float(probabilities.max(axis=1).mean()),
    }  # fmt: skip
    known = read.labels[rows] >= 0
    if graph.what and known.any():
        result["accuracy"] = float((probabilities.argmax(axis=1)[known] == read.labels[rows][known]).mean())
    return result, f"{len(rows):,} predictions of seed {chosen} are in {out}."


def another_source(graph: GraphOptions, record: Record) -> GraphSource:
    """Return the source of another graph, read as the run's graph was where both are files of tables."""
    from gamlp.graph.readers.datasets import both_tables
    from gamlp.graph.readers.table import is_table, open_table

    files = [Path(word) for word in both_tables(graph.what, {})[0]]
    if record.source is None or not all(map(is_table, files)):
        return graph.source()
    names = {name for file in files for name in open_table(file).names}
    needed = {
        role: name for role, name in record.source.columns.items() if role not in ("label", "split") or name in names
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


def of_another(
    folder: Path, graph: Graph, record: Record, engine: EngineChoice, device: str
) -> tuple[Graph, Array, Array]:
    """Return the graph with the model's class numbers, and the rows and probabilities of its nodes."""
    from gamlp.model_file import load_fitted
    from gamlp.runs.predictions import stored

    if dict(graph.fingerprints) == record.fingerprints:
        return graph, *stored(folder)
    fitted = load_fitted(folder, engine=engine.open(device=device), device=device)
    known = fitted.class_numbers(graph)
    said = fitted.predict(graph, known)
    return replace(graph, labels=known, classes=fitted.classes), said.rows, said.probabilities
