"""From files to a graph directory within a given amount of memory, in steps that are not repeated.

<out>.partial/import.json   what is imported: another import in the same place begins anew
<out>.partial/…             the arrays as they are finished; graph.json last, then the folder is renamed to <out>
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from gamlp.errors import InputError, StorageError
from gamlp.graph.build.edge_chunks import EdgeStream
from gamlp.graph.build.external_csr import build_adjacency, read_state
from gamlp.graph.readers.nodes import NodeTable
from gamlp.graph.readers.tables import GraphFiles
from gamlp.graph.store import CONTENTS, check_place, write_by_columns, write_chunks, write_contents
from gamlp.storage.directories import put_in_place
from gamlp.storage.files import digest, read_array, write_array, write_json
from gamlp.storage.locks import is_bare, locked
from gamlp.storage.memory import LEAST
from gamlp.targets.registry import kind_of

MEMORY = 2 * 2**30
KEY = 16  # letters of the key in the name of a folder that is being put in place
WORKING = ("edges.json", "runs", "chunks", "import.json")  # no parts of the graph (runs: of 0.1.0); removed in order


def import_files(
    out: Path, files: GraphFiles, *, memory: int = MEMORY, self_loops: bool = False, overwrite: bool = False
) -> dict[str, Any]:
    """Import files however large; return what the graph has of everything."""
    nodes = files.nodes.nodes
    if not nodes:
        raise InputError("The graph has no nodes.\nAt least one node is needed.")
    memory = room_beside(memory, nodes)
    ids = files.nodes.ids(memory // 2)
    options = Options(memory // 2 if files.nodes.columns.id else memory, not files.directed, self_loops)
    key = f"{files.nodes.key} {files.edges.key} {files.directed}"  # of what is read: another key, another graph
    with working_folder(out, digest(key, repr(options)), overwrite=overwrite) as folder:
        once(folder / "features.npy", partial(write_features, files.nodes))
        once(folder / "names.npy", partial(write_names, files.nodes))
        labels, classes = files.nodes.labels()
        kind_of(labels).check(labels, nodes, classes)
        write_array(folder / "labels.npy", labels)
        split = files.nodes.split()
        split.check(nodes)
        for name, part in split.sets.items():
            write_array(folder / f"{name}.npy", part)
        build(folder, files.edges.between(ids, ids), nodes, options)
        about: dict[str, Any] = {"feature_names": files.nodes.feature_names, "encoded": files.nodes.encoded}
        return finish(folder, out, name=files.name, classes=classes, split=split, **about)


def room_beside(memory: int, nodes: int) -> int:
    """Return what is left for edges of the memory of the process: Python, and three numbers a node, are held beside.

    It follows from the arguments alone: an import that is taken up again cuts its chunks as it did.
    """
    return max(memory - 2**28 - 24 * nodes, min(memory, LEAST))


def write_features(nodes: NodeTable, path: Path) -> None:
    """Write the features by columns; a graph without any has none of N rows."""
    if nodes.features is None:
        write_array(path, np.empty((nodes.nodes, 0), np.float32))
    else:
        write_by_columns(path, nodes.feature_chunks(), nodes.nodes)


def write_names(nodes: NodeTable, path: Path) -> None:
    """Write the ids that came in: integers, or strings as UTF-8 bytes of one length; none where the row is the id."""
    if nodes.columns.id is None:
        return
    if nodes.numbered:
        chunks, kind = (values.to_numpy(zero_copy_only=False) for values in nodes.id_chunks()), "i8"
    else:
        longest = max((pc.max(pc.binary_length(values)).as_py() or 0 for values in nodes.id_chunks()), default=0)
        kind = f"S{max(1, longest)}"
        chunks = (np.array([word.encode() for word in values.to_pylist()], kind) for values in nodes.id_chunks())
    write_chunks(path, chunks, nodes.nodes, kind)


@dataclass(frozen=True)
class Options:
    """How the adjacency is built."""

    memory: int = MEMORY
    symmetric: bool = True
    self_loops: bool = False


@contextmanager
def working_folder(out: Path, key: str, *, overwrite: bool) -> Iterator[Path]:
    """Yield the folder beside `out` where the graph is made, with what was made of the same graph before."""
    out = Path(out)
    check_place(out, overwrite=overwrite)
    folder = out.with_name(f"{out.name}.partial")
    try:
        with locked(out):
            whole = finished_folder(out, key)
            for other in out.parent.glob(f"{escape(out.name)}.{'?' * KEY}.partial"):
                if other != whole:
                    shutil.rmtree(other, ignore_errors=True)
            if whole.is_dir():  # stopped on its last steps
                write_json(whole / "import.json", {"key": key})
                shutil.rmtree(folder, ignore_errors=True)
                whole.rename(folder)
            if read_state(folder / "import.json") != {"key": key}:
                if folder.exists() and not (folder / "import.json").exists() and not is_bare(folder):
                    raise StorageError(f"{folder} exists and was not made by an import.\nMove it away, then run again.")
                shutil.rmtree(folder, ignore_errors=True)
                write_json(folder / "import.json", {"key": key})
            yield folder
    except OSError as error:
        raise StorageError(
            f"{out} could not be written: {error.strerror or error}.\n"
            "What was there before is untouched, and finished steps are kept: free some space and run again."
        ) from error


def finished_folder(out: Path, key: str) -> Path:
    """Return the name of a working folder that only has to be cleared and put in place."""
    return out.with_name(f"{out.name}.{key[:KEY]}.partial")


def build(folder: Path, stream: EdgeStream, nodes: int, options: Options) -> None:
    """Write the adjacency."""
    if not (folder / CONTENTS).is_file():  # written when all arrays were
        build_adjacency(folder, stream, nodes=nodes, **asdict(options))


def once(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file unless it is there."""
    if not path.exists():
        write(path)


def finish(folder: Path, out: Path, **described: Any) -> dict[str, Any]:
    """Describe the arrays in graph.json, as `write_contents` does, and rename the folder to its place."""
    contents = write_contents(folder, **described)
    whole = finished_folder(Path(out), read_state(folder / "import.json")["key"])
    folder.rename(whole)  # without import.json it is known by its name
    for working in WORKING:
        place = whole / working
        shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(missing_ok=True)
    put_in_place(whole, Path(out))
    labels = read_array(Path(out) / "labels.npy")
    shapes = {key: part["shape"] for key, part in contents["arrays"].items()}
    return {
        "out": str(out), "dataset": contents["name"], "nodes": shapes["features"][0], "entries": shapes["indices"][0],
        "features": shapes["features"][1], "classes": len(contents["classes"]),
        "labelled": int(kind_of(labels).known(labels).sum()),
    }  # fmt: skip
