"""Write a generated graph straight to a graph directory, within a given amount of memory; go on where it was left."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.graph.build.import_directory import MEMORY, Options, build, finish, once, working_folder
from gamlp.graph.splits import Split
from gamlp.graph.store import write_by_columns, write_chunks
from gamlp.progress import progress
from gamlp.storage.files import digest, write_array
from gamlp.storage.threads import prefetch
from gamlp.synth.draw import BATCH, Drawing, SynthShape


def write_synth(
    out: Path, shape: SynthShape, *, seed: int = 0, memory: int = MEMORY, overwrite: bool = False
) -> dict[str, Any]:
    """Draw a graph of this shape; return what it has of everything."""
    drawing, options = Drawing(shape, seed), Options(memory)
    with working_folder(out, digest(repr(drawing), repr(options)), overwrite=overwrite) as folder:
        split = _split(drawing)
        for name, part in split.sets.items():
            write_array(folder / f"{name}.npy", part)
        once(folder / "labels.npy", partial(_labels, drawing))
        once(folder / "features.npy", partial(_features, drawing))
        build(folder, drawing, shape.nodes, options)
        classes = tuple(str(number) for number in range(shape.classes))
        return finish(folder, out, name=f"synth-{shape.name}", classes=classes, split=split, feature_names=None)


def _batches(drawing: Drawing) -> int:
    return -(-drawing.shape.nodes // BATCH)


def _split(drawing: Drawing) -> Split:
    parts: list[list[np.ndarray[Any, Any]]] = [[], [], []]
    for batch in range(_batches(drawing)):
        sets = drawing.sets(batch)
        for number, part in enumerate(parts):
            part.append(batch * BATCH + np.flatnonzero(sets == number))
    return Split(*(np.concatenate(part).astype(np.int64) for part in parts))


def _labels(drawing: Drawing, path: Path) -> None:
    """Write the classes of the nodes of the split, −1 for the others."""

    def labels(batch: int) -> np.ndarray[Any, Any]:
        sets = drawing.sets(batch)
        nodes = np.arange(batch * BATCH, batch * BATCH + len(sets))
        return np.where(sets >= 0, drawing.labels(nodes), -1)

    write_chunks(path, map(labels, range(_batches(drawing))), drawing.shape.nodes, np.int64)


def _features(drawing: Drawing, path: Path) -> None:
    shape = drawing.shape
    with progress("features", total=shape.nodes) as advance:

        def drawn() -> Iterator[np.ndarray[Any, Any]]:
            for rows in prefetch(map(drawing.features, range(_batches(drawing)))):
                yield rows
                advance(len(rows))

        write_by_columns(path, drawn(), shape.nodes)
