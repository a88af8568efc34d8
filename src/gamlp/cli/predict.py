"""gamlp predict and export: what a run says of its own graph, or of another one; its network as a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from gamlp.cli.begin import read_own_graph, read_source
from gamlp.cli.new_nodes import NewFiles, another_source, check_out, finished_model, predict_new
from gamlp.cli.options import Answer, ComputeOptions, GraphOptions, refuse
from gamlp.errors import InputError, SettingsError
from gamlp.progress import log

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.storage.files import Array
    from gamlp.train.prediction import Prediction

ModelSeed = Annotated[
    int | None, Option("--seed", help="Which seed's model; by default the best on validation.", min=0)
]
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
    probabilities: Annotated[bool, Option("--probabilities", help="Add the probability of every class.")] = False,
    logits: Annotated[bool, Option("--logits", help="Add the logits, one of every class.")] = False,
    embeddings: Annotated[bool, Option("--embeddings", help="Add what the last layer reads of a node.")] = False,
    rows: Annotated[
        str | None,
        Option(metavar="WHICH", help="all, or a file of node numbers; by default the nodes that the run predicted."),
    ] = None,
    coverage: Annotated[
        float | None, Option(metavar="SHARE", help="Add the classes that contain the truth with this probability.")
    ] = None,
    abstain: Annotated[
        bool, Option("--abstain", help="Name a class only where the set of --coverage has that one alone.")
    ] = False,
    new: NewFiles = None,
    exact: Annotated[
        bool, Option("--exact", help="With --new: let all nodes feel the new ones, as in a graph that has them.")
    ] = False,
    seed: ModelSeed = None,
    compute: ComputeOptions,
) -> Answer:
    """Write the class of every node: of the run's own graph, of another graph, or of new nodes beside the run's own.

    Other graphs and new nodes are read as the run's graph was: its columns and its direction, unless options say
    otherwise. Within --memory predictions are made and written some rows at a time.
    """
    from gamlp.model_file import load_fitted
    from gamlp.runs.predictions import Tally, stored, tables_of, write_predictions_to
    from gamlp.train.prediction import Prediction
    from gamlp.trust.promise import promised_sets

    if out.suffix not in {".parquet", ".csv"}:
        raise InputError(f"Predictions cannot be written as '{out.name}'.\nUse a name that ends in .parquet or .csv.")
    if abstain and coverage is None:
        raise SettingsError("--abstain was given without --coverage.\nSay how sure to be, as --coverage 0.9.")
    engine = compute.choice()
    if new is not None:
        shown = {"probability": probabilities, "logit": logits}
        return predict_new(run, seed, graph, new, compute, out=out, exact=exact, shown=shown)
    refuse("{option} was given without --new.\nIt says how new nodes are predicted: leave it out.", only=["exact"])
    record, chosen, folder = finished_model(run, seed)
    source = another_source(graph, record) if graph.what else record.source
    check_out(out, source)
    if not graph.what:
        refuse(NO_GRAPH, only=OF_ANOTHER)
    device, fitted, promise = compute.device if graph.what else record.device, None, None
    if graph.what or logits or embeddings or rows is not None or coverage is not None:
        opened = (engine if graph.what else record.engine).open(device=device)
        fitted = load_fitted(folder, engine=opened, device=device)
    encoding = None if fitted is None else fitted.encoding
    read = read_source(source, engine.memory, encoding) if graph.what else read_own_graph(record, graph.root)
    own = dict(read.fingerprints) == record.fingerprints or not graph.what
    split = read.split_for(chosen) if own else None  # the labels of train are then known, as in training
    parts: Iterable[Prediction] = [Prediction(*stored(folder))] if own and rows is None else []
    if fitted is not None:
        known, wanted = fitted.class_numbers(read), asked_rows(rows, read)
        if logits or embeddings or not parts:
            parts = fitted.predict_parts(read, known, split=split, rows=wanted, embeddings=embeddings)
        read = replace(read, labels=known, classes=fitted.classes)
    if coverage is not None and fitted is not None:
        said = whole(parts)
        parts, promise = [said], promised_sets(fitted, said, read, coverage, own=own)
        for sentence in promise.warnings:
            log.warning(sentence)
    tally, sets = Tally(scored=bool(graph.what)), None if promise is None else promise.sets
    asked: dict[str, Any] = {"seed": None if graph.what else chosen, "sets": sets, "abstain": abstain}
    shown = {"probability": probabilities, "logit": logits}
    write_predictions_to(tables_of(parts, read, tally, record.method, shown, asked), out)
    result: dict[str, Any] = {
        "run": str(run), "seed": chosen, "dataset": read.name, "nodes": tally.nodes, "out": str(out),
        "mean_confidence": tally.confidence / max(1, tally.nodes),
    }  # fmt: skip
    if graph.what:
        result |= tally.scores()
    words = f"{tally.nodes:,} predictions of seed {chosen} are in {out}."
    if promise is None:
        return result, words
    return result | {"sets": promise.facts, "warnings": promise.warnings}, f"{words}\n{promise.words}"


def whole(parts: Iterable[Prediction]) -> Prediction:
    """Return a prediction that came in parts as one: sets are promised for all its rows together."""
    import numpy as np

    from gamlp.train.prediction import Prediction

    found = list(parts)
    if len(found) == 1:
        return found[0]
    columns = {field.name: [getattr(part, field.name) for part in found] for field in fields(Prediction)}
    joined: dict[str, Any] = {name: None if of[0] is None else np.concatenate(of) for name, of in columns.items()}
    return Prediction(**joined)


def asked_rows(which: str | None, graph: Graph) -> Array | None:
    """Return the nodes that --rows names, ascending; None = those that the run predicted."""
    import numpy as np

    from gamlp.cli.propagate import read_rows
    from gamlp.errors import IdError
    from gamlp.methods.base import rows_of

    if which is None or which == "all":
        return None if which is None else rows_of(graph)
    rows = np.unique(read_rows(Path(which)))
    wrong = rows[(rows < 0) | (rows >= graph.nodes)]
    if len(wrong):
        raise IdError(
            f"--rows {which} names node {wrong[0]:,}, the graph has {graph.nodes:,} nodes.\n"
            f"Node numbers must lie between 0 and {graph.nodes - 1:,}."
        )
    return rows


def export(
    run: Annotated[Path, Argument(help="A run directory made by gamlp train.")],
    *,
    out: Annotated[Path, Option("--out", "-o", help="The file to write: .onnx (extra onnx), or .pt2 of torch.export.")],
    seed: ModelSeed = None,
) -> Answer:
    """Write the network of a run as a file that runs without gamlp, on hops that were propagated before."""
    from gamlp.model.export import OUTPUTS, export_network
    from gamlp.model_file import load_fitted

    record, chosen, folder = finished_model(run, seed)
    fitted = load_fitted(folder)
    if not fitted.pipeline.method.on_hops:
        raise SettingsError(
            f"{record.method} is no network on hops.\n"
            "Networks of methods on hops (gamlp-…, sign, …) can be written: they turn rows into rows."
        )
    if fitted.smoothing is not None:
        log.warning("Correct and smooth is no part of the network: the file gives what comes before it.")
    inputs = export_network(fitted.learned.networks[-1], out, classes=fitted.classes)  # type: ignore[attr-defined]
    result = {"run": str(run), "seed": chosen, "out": str(out), "inputs": inputs, "outputs": list(OUTPUTS)}
    words = ", ".join(f"{name} ({', '.join(map(str, shape))})" for name, shape in inputs.items())
    return result, f"The network of seed {chosen} is in {out}: {words} → {', '.join(OUTPUTS)}."
