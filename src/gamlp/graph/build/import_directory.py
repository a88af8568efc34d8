"""From files to a graph directory within a given amount of memory, in steps that are not repeated.

<out>.partial/import.json   what is imported: another import in the same place begins anew
<out>.partial/…             the arrays as they are finished; graph.json last, then the folder is renamed to <out>
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import GamlpError, StorageError
from gamlp.graph.build.assemble import as_split
from gamlp.graph.build.column_matrix import write_matrix
from gamlp.graph.build.edge_streams import ArrayEdges, EdgeSource, TableEdges, edge_source, file_key
from gamlp.graph.build.external_csr import build_adjacency
from gamlp.graph.build.node_files import NodeFiles
from gamlp.graph.readers import ogb
from gamlp.graph.readers.columns import kind_of, open_table
from gamlp.graph.readers.edges import EdgeColumns
from gamlp.graph.readers.nodes import NodeColumns
from gamlp.graph.readers.streams import read_matrix
from gamlp.graph.splits import Split, SplitRule
from gamlp.graph.store import CONTENTS, check_place, write_contents
from gamlp.storage.directories import put_in_place
from gamlp.storage.files import digest, read_array, read_json, write_array, write_json
from gamlp.storage.locks import is_bare, locked

MEMORY = 2 * 2**30
KEY = 16  # letters of the key in the name of a folder that is being put in place
KEPT = ("edges.json", "runs", "import.json")  # of a working folder, no parts of the graph; removed in this order


def import_tables(
    out: Path,
    edges: Path,
    nodes: Path | None = None,
    *,
    features: Path | None = None,
    source: str | None = None,
    target: str | None = None,
    id: str | None = None,  # noqa: A002
    label: str | None = None,
    split: str | None = None,
    weight: str | None = None,
    directed: bool = False,
    self_loops: bool = False,
    memory: int = MEMORY,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Import the files that `read_tables` reads, however large; return what the graph has of everything."""
    files = NodeFiles.open(nodes, features, NodeColumns(id=id, label=label, split=split))
    columns = EdgeColumns(source=source, target=target, weight=weight)
    ids = files.ids(memory // 2)
    stream = edge_source(Path(edges), columns, nodes=files.nodes, ids=ids)
    options = Options(memory // 2 if ids else memory, not directed, self_loops)
    with working_folder(out, digest(files.key, stream.key, repr(options)), overwrite=overwrite) as folder:
        classes, rule = write_nodes(folder, files)
        build(folder, stream, files.nodes, options)
        return finish(folder, out, name=Path(edges).name.removesuffix(".gz").removesuffix(kind_of(Path(edges))),
                      classes=classes, split=rule, feature_names=files.feature_names())  # fmt: skip


def import_ogb(
    out: Path, folder: Path, name: str, *, split: str, memory: int = MEMORY, overwrite: bool = False
) -> dict[str, Any]:
    """Import the raw folder of one of the Open Graph Benchmark's data sets (see `ogb.read_ogb`), however large."""
    raw, options = Path(folder) / "raw", Options(memory)
    write: Callable[[Path], None]
    if (raw / ogb.BINARY[0]).is_file():
        edges, features, labels = ogb.read_binary(raw)
        nodes = len(features)
        stream: EdgeSource = ArrayEdges(edges[0], edges[1], None, nodes=nodes, key=file_key(raw / ogb.BINARY[0]))
        write = partial(write_matrix, features=features)
    else:
        labels = read_matrix(raw / ogb.TEXT[2], np.float64)[:, 0]
        nodes = len(labels)
        write = NodeFiles(nodes, open_table(raw / ogb.TEXT[1]), None, NodeColumns()).write_features
        stream = TableEdges(raw / ogb.TEXT[0], EdgeColumns(), nodes=nodes)
    numbers, classes = ogb.class_numbers(labels)
    sets = [read_matrix(Path(folder) / "split" / split / f"{part}.csv.gz", np.int64)[:, 0] for part in ogb.SETS]
    fixed = as_split(*sets, nodes=nodes)
    with working_folder(out, digest(stream.key, repr(options)), overwrite=overwrite) as work:
        once(work / "features.npy", write)
        for part, values in zip(("labels", *ogb.SETS), (numbers, fixed.train, fixed.valid, fixed.test), strict=True):
            write_array(work / f"{part}.npy", values)
        build(work, stream, nodes, options)
        return finish(work, out, name=name, classes=classes, split=fixed)


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
            there = begun(folder)
            if there != {"key": key}:
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


def begun(folder: Path) -> Any:
    """Return what a working folder says it holds; None where there is none."""
    try:
        return read_json(folder / "import.json")
    except GamlpError:
        return None


def finished_folder(out: Path, key: str) -> Path:
    """Return the name of a working folder that only has to be cleared and put in place."""
    return out.with_name(f"{out.name}.{key[:KEY]}.partial")


def write_nodes(folder: Path, files: NodeFiles) -> tuple[tuple[str, ...], Split | SplitRule]:
    """Write features, names, labels and split; the first two are not written twice."""
    once(folder / "features.npy", files.write_features)
    once(folder / "names.npy", files.write_names)
    return files.write_columns(folder)


def build(folder: Path, stream: EdgeSource, nodes: int, options: Options) -> None:
    """Write the adjacency."""
    if (folder / CONTENTS).is_file():  # written when all arrays were
        return
    build_adjacency(
        folder, stream, nodes=nodes, memory=options.memory,
        symmetric=options.symmetric, self_loops=options.self_loops,
    )  # fmt: skip


def once(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file unless it is there."""
    if not path.exists():
        write(path)


def finish(
    folder: Path,
    out: Path,
    *,
    name: str,
    classes: tuple[str, ...],
    split: Split | SplitRule,
    feature_names: tuple[str, ...] | None = None,
) -> dict[str, Any]:
    """Describe the arrays in graph.json and rename the folder to its place."""
    contents = write_contents(folder, name=name, classes=classes, split=split, feature_names=feature_names)
    whole = finished_folder(Path(out), begun(folder)["key"])  # without import.json it is known by its name
    folder.rename(whole)
    for kept in KEPT:
        place = whole / kept
        shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(missing_ok=True)
    put_in_place(whole, Path(out))
    shapes = {key: part["shape"] for key, part in contents["arrays"].items()}
    return {
        "out": str(out), "dataset": name, "nodes": shapes["features"][0], "entries": shapes["indices"][0],
        "features": shapes["features"][1], "classes": len(classes),
        "labelled": int((read_array(Path(out) / "labels.npy") >= 0).sum()),
    }  # fmt: skip
