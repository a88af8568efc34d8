"""gamlp predict and export: what a run says of its own graph, or of another one; its network as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from gamlp.cli.begin import read_own_graph, read_source
from gamlp.cli.options import Answer, ComputeOptions, GraphOptions, refuse
from gamlp.errors import InputError, SettingsError
from gamlp.progress import log

if TYPE_CHECKING:
    from gamlp.graph.readers.source import GraphSource
    from gamlp.runs.predictions import Beside
    from gamlp.runs.record import Record
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
    seed: ModelSeed = None,
    compute: ComputeOptions,
) -> Answer:
    """Write the class of every node: of the run's own graph, or of another graph with the same features.

    Another graph is read as the run's was: its columns and its direction, unless options say otherwise.
    """
    from gamlp.model_file import load_fitted
    from gamlp.runs.predictions import prediction_tables, stored, write_predictions_to

    if out.suffix not in {".parquet", ".csv"}:
        raise InputError(f"Predictions cannot be written as '{out.name}'.\nUse a name that ends in .parquet or .csv.")
    engine = compute.choice()
    record, chosen, folder = finished_model(run, seed)
    source = another_source(graph, record) if graph.what else record.source
    check_out(out, source)
    if not graph.what:
        refuse(NO_GRAPH, only=OF_ANOTHER)
    read = read_source(source) if graph.what else read_own_graph(record, graph.root)
    own = dict(read.fingerprints) == record.fingerprints or not graph.what
    device = compute.device if graph.what else record.device
    split = read.split_for(chosen) if own else None  # the labels of train are then known, as in training
    fitted = said = None
    if logits or embeddings or not own:
        opened = (engine if graph.what else record.engine).open(device=device)
        fitted = load_fitted(folder, engine=opened, device=device)
        known = fitted.class_numbers(read)
        said = fitted.predict(read, known, split=split) if logits or not own else None
        read = replace(read, labels=known, classes=fitted.classes)
    rows, shares = stored(folder) if said is None else (said.rows, said.probabilities)
    beside: dict[str, Beside] = {"probability": (read.classes, shares)} if probabilities else {}
    if logits and said is not None:
        beside["logit"] = (read.classes, logits_of(said, record.method))
    if embeddings and fitted is not None:
        values = fitted.embed(read, split=split)[1]
        beside["embedding"] = (range(values.shape[1]), values)
    tables = prediction_tables(read, rows, shares, seed=None if graph.what else chosen, beside=beside)
    write_predictions_to(tables, out)
    result: dict[str, Any] = {
        "run": str(run), "seed": chosen, "dataset": read.name, "nodes": len(rows), "out": str(out),
        "mean_confidence": float(shares.max(axis=1).mean()),
    }  # fmt: skip
    known = read.labels[rows] >= 0
    if graph.what and known.any():
        result["accuracy"] = float((shares.argmax(axis=1)[known] == read.labels[rows][known]).mean())
    return result, f"{len(rows):,} predictions of seed {chosen} are in {out}."


def finished_model(run: Path, seed: int | None) -> tuple[Record, int, Path]:
    """Return the record of a run, the seed that is asked for or its best, and the folder of its model, checked."""
    from gamlp.runs.record import finished_seed, read_run
    from gamlp.runs.seed import check_kept

    record = read_run(run)
    chosen = finished_seed(run, record, seed)
    folder = run / f"seed-{chosen}"
    check_kept(folder, record={"result": record.result}, names=("model.json",))
    return record, chosen, folder


def logits_of(said: Prediction, method: str) -> Array:
    """Return the logits of a prediction, or say that there are none."""
    if said.logits is None:
        raise SettingsError(
            f"{method} does not end in logits: its probabilities are no softmax.\n"
            "Leave out --logits; --probabilities gives what it says."
        )
    return said.logits


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
