"""gamlp predict: what a run says of its own graph, or of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gamlp.cli import common
from gamlp.cli.common import Column, Device, Directed, Features, Json, Root, What
from gamlp.cli.train import record_of


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: gamlp predict runs/RUN new-edges.parquet new-nodes.parquet --out predictions.csv")(
        predict
    )


def predict(
    run: Annotated[Path, typer.Argument(help="A run directory made by gamlp train.")],
    what: What = None,
    *,
    out: Annotated[Path, typer.Option("--out", help="Where to write, .parquet or .csv.")] = Path("predictions.parquet"),
    seed: Annotated[
        int | None, typer.Option("--seed", help="Which seed's model; by default the best on validation.")
    ] = None,
    root: Root = Path("data"),
    column: Column = None,
    features: Features = None,
    directed: Directed = False,
    device: Device = "cpu",
    json: Json = False,
) -> None:
    """Write the class of every node: of the run's own graph, or of another graph with the same features."""
    from gamlp.errors import MissingFileError
    from gamlp.runs.predictions import check_ending, prediction_tables, stored, write_predictions_to
    from gamlp.runs.seed_files import check_kept
    from gamlp.train.prepare import check_device

    check_ending(out)
    check_device(device)
    record = record_of(run)
    if "result" not in record:
        raise MissingFileError(f"{run} is not finished.\nFinish it with: gamlp train --resume {run}")
    chosen = record["result"]["best_seed"] if seed is None else seed
    folder = run / f"seed-{chosen}"
    if not folder.is_dir():
        raise MissingFileError(f"{run} has no seed {chosen}.\nIt has: {', '.join(map(str, record['seeds']))}.")
    check_kept(folder, record=record, names=("model.json",))
    with common.shown_progress():
        if what:
            graph = common.read_source(common.graph_source(what, root, column, features, directed))
            graph, probabilities = on_another_graph(folder, graph, device)
            rows = np.arange(len(probabilities))  # of several types, the target's come first
        else:
            graph = own_graph(record, run)
            rows, probabilities = stored(folder)
        write_predictions_to(prediction_tables(graph, rows, probabilities, seed=None if what else chosen), out)
    result: dict[str, Any] = {
        "run": str(run), "seed": chosen, "dataset": graph.name, "nodes": len(rows), "out": str(out),
        "mean_confidence": float(probabilities.max(axis=1).mean()),
    }  # fmt: skip
    known = graph.labels[rows] >= 0
    if what and known.any():
        result["accuracy"] = float((probabilities.argmax(axis=1)[known] == graph.labels[rows][known]).mean())
    if json:
        common.print_json(result)
    else:
        typer.echo(f"{len(rows):,} predictions of seed {chosen} are in {out}.")


def own_graph(record: dict[str, Any], run: Path) -> Any:
    """Read the graph that the run was trained on, and make sure that it still is that graph."""
    from gamlp.errors import StorageError

    graph = common.read_source(record["graph"])
    if graph.fingerprint != record["fingerprint"]:
        raise StorageError(
            f"The graph of {run} has changed since it was trained.\n"
            "Restore it, or name the changed graph after the run: gamlp predict RUN GRAPH."
        )
    return graph


def on_another_graph(folder: Path, graph: Any, device: str) -> tuple[Any, Any]:
    """Return the graph with the model's class numbers, and the model's probabilities for its nodes."""
    from dataclasses import replace

    from gamlp.pipeline import load_fitted

    model = load_fitted(folder, device=device)
    known = model.class_numbers(graph)
    return replace(graph, labels=known, classes=model.classes), model.predict(graph, known).probabilities
