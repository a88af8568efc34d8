"""A graph directory: plain .npy arrays that any tool can map, and graph.json, which says what they must be.

    indptr, indices, weights?   the adjacency by rows            features   (N, F) float32
    labels                      (N,) int64, or (N, T) int8       names?     (N,) integers, or strings as UTF-8 bytes
    train, valid, test          node ids, where the split is fixed, masks (N, S) of S splits; else graph.json has a rule
    columns?                    what was learned of columns that were no numbers, flat; graph.json says how it is used
    graph.json                  format version, name, classes, names of the features where they have any, how columns
                                became features, and of each array shape, dtype, bytes and checksum

The directory is written beside its place and renamed: it is there whole or not at all. Loading maps adjacency and
features, so a graph larger than memory opens at once; `verify` costs one pass over the files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gamlp.errors import FormatError, MissingFileError, StorageError
from gamlp.graph.encode import Columns, Encoded
from gamlp.graph.graph import Adjacency, Graph, check_finite
from gamlp.graph.splits import AnySplit, Split, SplitRule, Splits
from gamlp.storage.checksums import changed
from gamlp.storage.directories import making
from gamlp.storage.files import (
    Array,
    array_header,
    digest,
    is_older,
    read_array,
    read_json,
    remember,
    replacing,
    write_array,
    write_json,
)
from gamlp.targets.registry import kind_of

VERSION = 1
CONTENTS = "graph.json"
MAPPED = ("indptr", "indices", "weights", "features")
ALWAYS = ("indptr", "indices", "features", "labels")
SETS = ("train", "valid", "test")
ARRAYS = (*MAPPED, "labels", "names", "columns", *SETS)


def is_graph_folder(folder: Path) -> bool:
    """Say whether `folder` is a graph directory."""
    return (folder / CONTENTS).is_file()


def save_graph(graph: Graph, folder: Path, *, overwrite: bool = False) -> None:
    """Write `graph` as a directory; an existing graph is replaced only with `overwrite`, anything else never."""
    graph.check()
    folder = Path(folder)
    check_place(folder, overwrite=overwrite)
    with making(folder) as temporary:
        for key, array in parts(graph).items():
            write_array(temporary / f"{key}.npy", array)
        about: dict[str, Any] = {"name": graph.name, "classes": graph.classes, "split": graph.split}
        write_contents(temporary, **about, feature_names=graph.feature_names, encoded=graph.encoded)


def load_graph(folder: Path, *, verify: bool = True, newer: bool = False) -> Graph:
    """Open a graph directory; without `verify`, the checksums and the values of the features are taken on trust.

    With `newer` instead, arrays that were not written to after graph.json are: nothing is read but what is used.
    """
    folder = Path(folder)
    contents = read_contents(folder)
    arrays = {
        key: read_part(folder, key, stored, verify=verify and not (newer and trusted(folder, key)))
        for key, stored in contents["arrays"].items()
    }
    if newer:
        check_unchanged(folder, contents, arrays)
    rule, names, columns = contents.get("split_rule"), arrays.get("names"), contents.get("feature_names")
    adjacency = Adjacency(arrays["indptr"], arrays["indices"], arrays.get("weights"))
    classes = tuple(str(name) for name in contents["classes"])
    sets = [] if rule else [arrays[key] for key in SETS]
    split = SplitRule(rule["train"], rule["valid"]) if rule else (Splits if sets[0].ndim == 2 else Split)(*sets)
    names = np.char.decode(names, "utf-8") if names is not None and names.dtype.kind == "S" else names
    columns = None if columns is None else tuple(str(name) for name in columns)
    encoded = None if contents.get("columns") is None else read_columns(folder, contents["columns"], arrays)
    plain = (adjacency, arrays["features"], arrays["labels"], classes, split, names, contents["name"], columns)
    graph = Graph(*plain, encoded=encoded)
    if verify and not newer:
        return graph.check()
    graph.adjacency.check()
    kind_of(graph.labels).check(graph.labels, graph.nodes, graph.classes)
    return graph


def trusted(folder: Path, key: str) -> bool:
    """Say whether an array was left alone since graph.json was written, the last of all."""
    path = folder / f"{key}.npy"
    return path.is_file() and is_older(path, folder / CONTENTS)


def check_unchanged(folder: Path, contents: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Refuse a directory that another process replaced meanwhile; hashes that are written down need no reading."""
    if read_contents(folder) != contents:
        raise StorageError(f"{folder} was changed by another process while it was read.\nRun it again.")
    for key, array in arrays.items():
        remember(array, str(contents["arrays"][key].get("checksum")))


def check_place(folder: Path, *, overwrite: bool) -> None:
    """Refuse to write over what is not ours, or over a graph without being asked to."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not is_graph_folder(folder):
        raise StorageError(f"{folder} exists and is not a graph directory.\nIt was left alone; choose another folder.")
    if not overwrite:
        raise StorageError(f"{folder} already holds a graph.\nChoose another folder, or overwrite it (overwrite=True).")


def read_columns(folder: Path, described: Any, arrays: dict[str, Array]) -> Encoded:
    """Return how columns became features."""
    try:
        return Encoded({"": Columns.from_data(described, arrays["columns"])})
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"{folder / CONTENTS}: the columns cannot be read ({str(error).splitlines()[0]}).\n"
            "Restore it, or make the graph again."
        ) from error


def write_contents(
    folder: Path,
    *,
    name: str,
    classes: Sequence[str],
    split: AnySplit,
    feature_names: Sequence[str] | None,
    encoded: Encoded | None = None,
    known: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Write graph.json for the arrays that are in the folder, and return it; checksums of some may be `known`."""
    described = None
    if encoded is not None:
        described, learned = encoded.columns[""].data()
        write_array(folder / "columns.npy", learned)
    paths = [folder / f"{key}.npy" for key in ARRAYS]
    arrays = {path: read_array(path, memory_map=True) for path in paths if path.exists()}
    checksums = {path: (known or {}).get(path.stem) or digest(array) for path, array in arrays.items()}
    contents = {
        "format": "gamlp graph",
        "version": VERSION,
        "name": name,
        "classes": list(classes),
        "feature_names": None if feature_names is None else list(feature_names),
        "columns": described,
        "split_rule": asdict(split) if isinstance(split, SplitRule) else None,
        "arrays": {path.stem: {**describe(path, array), "checksum": checksums[path]} for path, array in arrays.items()},
    }
    write_json(folder / CONTENTS, contents)
    return contents


def write_chunks(path: Path, chunks: Iterable[Array], length: int, dtype: npt.DTypeLike) -> None:
    """Write an array of one dimension, of a known length, whole or not at all."""
    with replacing(path) as file:
        file.write(array_header((length,), dtype))
        for values in chunks:
            file.write(np.ascontiguousarray(values, dtype=dtype).view(np.uint8).data)


def write_by_columns(path: Path, chunks: Iterable[Array], nodes: int) -> None:
    """Write features (N, F) float32, which come by rows, in column order, whole or not at all.

    Propagation reads blocks of columns; of a file stored by rows it would read all of it for every block.
    """
    filled = start = 0
    with replacing(path) as file:
        for rows in chunks:
            check_finite(rows, filled)
            if not filled:
                start = file.write(array_header((nodes, rows.shape[1]), np.float32, by_columns=True))
            for column, values in enumerate(np.ascontiguousarray(rows.T, dtype=np.float32)):
                file.seek(start + 4 * (column * nodes + filled))
                file.write(values.view(np.uint8).data)
            filled += len(rows)


def parts(graph: Graph, without: Collection[str] = ()) -> dict[str, Array]:
    """Return the arrays to be stored, by file name; names as integers, or as UTF-8 bytes of one length."""
    adjacency, names = graph.adjacency, None if "names" in without else graph.names
    arrays = {
        "indptr": adjacency.indptr,
        "indices": adjacency.indices,
        "weights": adjacency.weights,
        "features": None if "features" in without else np.ascontiguousarray(graph.features),
        "labels": graph.labels,
        "names": names if names is None or names.dtype.kind in "iu" else np.char.encode(names.astype(str), "utf-8"),
        **graph.split.sets,
    }
    return {key: array for key, array in arrays.items() if array is not None and key not in without}


def describe(path: Path, array: Array) -> dict[str, Any]:
    """Say what a stored array is, but for its values."""
    return {"shape": list(array.shape), "dtype": array.dtype.str, "bytes": path.stat().st_size}


def read_contents(folder: Path) -> dict[str, Any]:
    """Read graph.json and check that it is one of ours."""
    if not folder.is_dir():
        raise MissingFileError(f"{folder} is not there.\nA graph directory was expected, as save_graph writes it.")
    contents = read_json(folder / CONTENTS)
    if not isinstance(contents, dict) or contents.get("format") != "gamlp graph":
        raise FormatError(f"{folder / CONTENTS} does not describe a graph.\nIs this the right folder?")
    if contents.get("version") != VERSION:
        raise FormatError(
            f"{folder} has the format version {contents.get('version')}, this gamlp reads version {VERSION}.\n"
            "Use the gamlp that wrote it, or make it again."
        )
    kinds = {"name": str, "classes": list, "arrays": dict, "feature_names": list | None}  # 0.1.0 kept no names
    missing = [key for key, kind in kinds.items() if not isinstance(contents.get(key), kind)]
    arrays, rule = contents["arrays"] if "arrays" not in missing else {}, contents.get("split_rule")
    missing += [key for key in (*ALWAYS, *(() if rule else SETS)) if key not in arrays]
    missing += [key for key, stored in arrays.items() if not isinstance(stored, dict)]
    numbers = rule if isinstance(rule, dict) else {}
    if rule:
        missing += [f"split_rule.{key}" for key in SETS[:2] if not isinstance(numbers.get(key), int | float)]
    if missing:
        raise FormatError(f"{folder / CONTENTS} lacks {', '.join(missing)}.\nRestore it, or make the graph again.")
    contents["arrays"] = {key: stored for key, stored in arrays.items() if key in ARRAYS}
    return contents


def read_part(folder: Path, key: str, stored: dict[str, Any], *, verify: bool) -> Array:
    """Read or map one array and compare it with what graph.json says."""
    path = folder / f"{key}.npy"
    if not path.is_file():
        raise FormatError(f"{path} is not there.\ngraph.json names it: copy the whole directory, or make it again.")
    array = read_array(path, memory_map=key in MAPPED)
    for what, value in describe(path, array).items():
        if stored.get(what) != value:
            raise FormatError(
                f"{path} has the {what} {value}, graph.json says {stored.get(what)}.\n"
                "It was changed, swapped or cut short: copy the whole directory, or make it again."
            )
    if verify and digest(array) != stored.get("checksum"):
        raise changed(path)
    return array
