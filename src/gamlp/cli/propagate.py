"""gamlp propagate: features propagated before training, in memory or on disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from gamlp.cli.begin import asked, new_spec
from gamlp.cli.options import Answer, ComputeOptions, GraphOptions, Recipe, Seed, Set, if_interrupted
from gamlp.errors import SettingsError

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.pipeline import Pipeline
    from gamlp.propagate import Hops
    from gamlp.storage.files import Array


def propagate(
    graph: GraphOptions,
    *,
    out: Annotated[Path | None, Option("--out", "-o", help="A folder of their own for them.")] = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace what is in --out.")] = False,
    rows: Annotated[
        str | None, Option(metavar="WHICH", help="labelled, all, or a file of node numbers (.npy, or one in a line).")
    ] = None,
    states: Annotated[
        bool, Option("--states", help="Keep in --cache what gamlp update needs to bring the hops along.")
    ] = False,
    method: Annotated[str | None, Option(help="Propagate as this method would.")] = None,
    recipe: Recipe = None,
    set_: Set = None,
    compute: ComputeOptions,
    seed: Seed = 0,
) -> Answer:
    """Propagate the features of a graph and keep them, for gamlp train --cache or for anything else."""
    from gamlp.runs.run import hop_source_of, pipeline_of

    if (compute.cache is None) == (out is None):
        raise SettingsError("Name one place for the propagated features.\n--cache for gamlp train, or --out.")
    if overwrite and out is None:
        raise SettingsError("--overwrite was given without --out.\nA cache holds many propagations, none is replaced.")
    if states and out is not None:
        raise SettingsError("--states was given with --out.\nStates are kept in a cache: use --cache instead.")
    named = [f"rows={rows}"] if rows in ("labelled", "all") else []
    wanted = None if rows is None or named else read_rows(Path(rows))
    if compute.memory:
        if_interrupted("Finished blocks are kept: run it again to go on.")
    changes = asked([*(set_ or []), *named], seed, 1)
    read, spec = new_spec(graph, compute, recipe, method, **changes, to_train=False, network=True)
    started = time.perf_counter()
    pipeline = pipeline_of(spec, hop_source_of(spec, None))
    if not pipeline.method.on_hops:
        raise SettingsError(f"{spec.method} does not propagate beforehand.\nName a method on hops, as gamlp-jk.")
    split = read.split_for(seed)
    if states:
        keep_states(pipeline, read)
    if out is None:
        hops = pipeline.hops(read, split, rows=wanted)
    else:
        hops = written_to(out, pipeline, read, split, wanted, overwrite=overwrite)
    return made(read, hops, Path(out or compute.cache or ""), seconds=time.perf_counter() - started)


def keep_states(pipeline: Pipeline, graph: Graph) -> None:
    """Keep the states of the features, of which the hops are made then."""
    from gamlp.methods.hop_network import check_living
    from gamlp.train.living import feature_states

    check_living(graph)
    source, settings = pipeline.hop_source, pipeline.settings
    feature_states(source, graph, settings, source.scaling(graph, settings))


def written_to(
    out: Path, pipeline: Pipeline, graph: Graph, split: Split, rows: Array | None, *, overwrite: bool
) -> Hops:
    """Write the hops into a folder of their own."""
    from gamlp.train.hop_source import propagation_of, wanted_rows

    source, settings = pipeline.hop_source, pipeline.settings
    if settings.relations == "subsets":
        raise SettingsError("Hops of relation subsets are kept in a cache alone.\nUse --cache instead of --out.")
    spec = propagation_of(settings, wanted_rows(graph, split, settings) if rows is None else rows)
    features = source.scaling(graph, settings).seen(source.features(graph, settings))
    return source.engine.propagate_to(out, graph.adjacency, features, spec, overwrite=overwrite)


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


def made(graph: Graph, hops: Hops, place: Path, *, seconds: float) -> Answer:
    """Say what was made."""
    facts: dict[str, Any] = {
        "dataset": graph.name, "cache": str(place), "key": hops.key, "rows": hops.values.shape[0], "hops": hops.count,
        "features": hops.values.shape[-1], "bytes": hops.values.nbytes, "seconds": seconds,
    }  # fmt: skip
    return facts, (
        f"{facts['rows']:,} rows, {facts['hops']} hops, {facts['features']:,} features, "
        f"{facts['bytes'] / 2**20:,.0f} MiB, in {seconds:.1f} s, below {place}."
    )
