"""X, ÂX, …, ÂᴷX for some rows, laid out so that a batch is one gather; in memory, or in a folder that any tool can map.

    values.npy (R, K+1, F), rows.npy?, stationary.npy?    hops.json: format, key, each file's size and hash

The key is a hash of the graph, the features and every option (`Job.key`): hops of a graph that has changed since have
another one. A folder is there whole or not at all, hops.json is written last; on load the files are memory-mapped,
their sizes and hashes compared. A cache holds a folder for each key, and what is damaged there is computed again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gamlp.errors import FormatError, InputError, MissingFileError, StorageError
from gamlp.progress import log
from gamlp.propagate.layers import read_layers
from gamlp.storage.checksums import file_checksum
from gamlp.storage.files import Array, is_older, read_array, read_json, write_array, write_json

FORMAT = 2
LAYERED = 3  # values.npy is that of an older graph, with other rows beside it (`layers`)
CONTENTS = "hops.json"


@dataclass(frozen=True, eq=False)
class Hops:
    """Propagated features: values (R, K+1, F), in memory or memory-mapped, float32 or float16.

    With relation subsets they are (R, S, K+1, F). `rows` names the node of each of the R rows; None = all nodes in
    order. `key` says what it was computed from, so that a cache never answers for another graph. `stationary` (R, F) is
    X^(∞), where it was asked for.
    """

    values: Array
    rows: Array | None = None
    stationary: Array | None = None
    key: str = ""

    @property
    def count(self) -> int:
        """K, the number of hops beyond the features themselves."""
        return int(self.values.shape[-2]) - 1

    @property
    def subsets(self) -> int:
        """S, the number of relation subsets; 0 where there are none."""
        return int(self.values.shape[1]) if self.values.ndim == 4 else 0


def cached_hops(place: Path, key: str, write: Callable[[Path, str], Hops]) -> Hops:
    """Return the hops stored at `place`, or have them written there; either way memory-mapped from the disk."""
    found = load_cached(place, key)
    if found is not None:
        return found
    shutil.rmtree(place, ignore_errors=True)  # damaged
    try:
        return write(place, key)
    except StorageError:
        found = load_cached(place, key)
        if found is None:  # unless another process was quicker
            raise
        return found


def load_cached(place: Path, key: str, *, newer: bool = False) -> Hops | None:
    """Return the hops stored at `place`, or None where there are none, or damaged ones; `newer` as in `load_hops`."""
    if not place.is_dir():
        return None
    try:
        return load_hops(place, key, newer=newer)
    except (InputError, StorageError, OSError, KeyError, TypeError, AttributeError) as error:
        log.warning("The stored hops in %s are damaged and will be computed again: %s", place, error)
        return None


def load_hops(folder: Path, key: str | None = None, *, verify: bool = True, newer: bool = False) -> Hops:
    """Map the hops of a folder; with `key`, only those of that graph and those options.

    `verify` costs one pass over the files; whoever has just written them can do without, and whoever needs few of the
    rows may look at the files alone that are `newer` than hops.json.
    """
    if not (folder / CONTENTS).is_file():
        raise MissingFileError(
            f"{folder} holds no hops: it has no {CONTENTS}.\nName a folder that gamlp propagate made."
        )
    content = read_json(folder / CONTENTS)
    files = content.get("files") if isinstance(content, dict) and content.get("format") in (FORMAT, LAYERED) else None
    if not isinstance(files, dict) or "values.npy" not in files:
        raise FormatError(f"{folder / CONTENTS} does not describe hops of format {FORMAT}.\nPropagate again.")
    if key is not None and content.get("key") != key:
        raise StorageError(
            f"{folder} holds hops of another graph, of this one before it changed, or made with other settings.\n"
            "They were left as they are: choose another folder, or ask for them to be overwritten."
        )
    arrays: dict[str, Any] = {}
    for name in ("values", "rows", "stationary", "changed_rows", "changed"):
        path = folder / f"{name}.npy"
        if path.name in files:
            known = files[path.name]["hash"] if newer and path.is_file() and is_older(path, folder / CONTENTS) else None
            if verify and _seal(path, known) != files[path.name]:
                raise InputError(f"{path} has changed since it was written.\nPropagate again.")
            arrays[name] = read_array(path, memory_map=True)
    if content["format"] == LAYERED:
        if not {"changed_rows", "changed"} <= arrays.keys():
            raise FormatError(f"{folder / CONTENTS} names no rows that changed.\nPropagate again.")
        layer = arrays.pop("changed_rows"), arrays.pop("changed")
        arrays["values"] = read_layers(arrays["values"], *layer, content.get("layers"))
    return Hops(**arrays, key=str(content.get("key")))


def write_arrays(
    folder: Path, key: str, hashes: dict[str, str] | None = None, layers: Any = None, **arrays: Array | None
) -> None:
    """Write the arrays, then hops.json for all that are there; `hashes` of some files may be known."""
    for name, array in arrays.items():
        if array is not None:
            write_array(folder / f"{name}.npy", array)
    files = {path.name: _seal(path, (hashes or {}).get(path.name)) for path in sorted(folder.glob("*.npy"))}
    more = {"format": FORMAT} if layers is None else {"format": LAYERED, "layers": layers}
    write_json(folder / CONTENTS, {**more, "key": key, "files": files})


def file_hash(folder: Path, name: str) -> str:
    """Return the hash of a file of hops, as it was written down."""
    return str(read_json(folder / CONTENTS)["files"][name]["hash"])


def _seal(path: Path, known: str | None = None) -> dict[str, Any]:
    """Return a file's size and the hash of its bytes."""
    if not path.is_file():
        raise MissingFileError(f"{path} is not there.\n{CONTENTS} names it: copy the whole folder, or propagate again.")
    return {"bytes": path.stat().st_size, "hash": known or file_checksum(path)}
