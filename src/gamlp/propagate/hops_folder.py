"""A folder of hops: plain .npy arrays that any tool can map, and hops.json, written last, which says what they are.

    values.npy (R, K+1, F), rows.npy?, stationary.npy?    hops.json: format, key, each file's size and hash

The key is a hash of the graph, the features and every option (`Job.key`): hops of a graph that has changed since
have another key.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gamlp.errors import FormatError, InputError, MissingFileError, StorageError
from gamlp.propagate.hops import Hops
from gamlp.storage.checksums import file_checksum
from gamlp.storage.directories import making
from gamlp.storage.files import Array, read_array, read_json, write_array, write_json

FORMAT = 2
CONTENTS = "hops.json"
FILES = ("values.npy", "rows.npy", "stationary.npy")


def is_hops_folder(folder: Path) -> bool:
    """Say whether `folder` holds hops."""
    return (folder / CONTENTS).is_file()


def write_contents(folder: Path, key: str, hashes: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write hops.json for the arrays that are there; `hashes` of some of them may be known."""
    files = {path.name: _seal(path, hashes.get(path.name)) for path in sorted(folder.glob("*.npy"))}
    write_json(folder / CONTENTS, {"format": FORMAT, "key": key, "files": files})


def load_hops(folder: Path, key: str | None = None, *, verify: bool = True) -> Hops:
    """Map the hops of a folder; with `key`, only those of that graph and those options.

    `verify` costs one pass over the files; whoever has just written them can do without.
    """
    if not is_hops_folder(folder):
        raise MissingFileError(
            f"{folder} holds no hops: it has no {CONTENTS}.\nName a folder that gamlp propagate made."
        )
    content = read_json(folder / CONTENTS)
    if not isinstance(content, dict) or content.get("format") != FORMAT or "values.npy" not in _files(content):
        raise FormatError(f"{folder / CONTENTS} does not describe hops of format {FORMAT}.\nPropagate again.")
    if key is not None and content.get("key") != key:
        raise StorageError(
            f"{folder} holds hops of another graph, of this one before it changed, or made with other settings.\n"
            "They were left as they are: choose another folder, or ask for them to be overwritten."
        )
    arrays: dict[str, Array] = {}
    for name in FILES:
        if name not in content["files"]:
            continue
        if verify and _seal(folder / name) != content["files"][name]:
            raise InputError(f"{folder / name} has changed since it was written.\nPropagate again.")
        arrays[name] = read_array(folder / name, memory_map=True)
    rows, limit = arrays.get("rows.npy"), arrays.get("stationary.npy")
    return Hops(arrays["values.npy"], rows=rows, stationary=limit, key=str(content.get("key")))


def refuse_other_content(folder: Path) -> None:
    """Refuse to replace what is not a folder of hops."""
    if folder.exists() and not is_hops_folder(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise StorageError(f"{folder} exists and holds no hops.\nIt was left alone; choose another folder.")


def store_hops(place: Path, key: str, hops: Hops) -> None:
    """Write hops to a folder, whole or not at all; what was there goes once they are."""
    arrays = {"values": hops.values, "rows": hops.rows, "stationary": hops.stationary}
    with making(place) as temporary:
        for name, array in arrays.items():
            if array is not None:
                write_array(temporary / f"{name}.npy", array)
        write_contents(temporary, key)


def _files(content: dict[str, Any]) -> dict[str, Any]:
    files = content.get("files")
    return files if isinstance(files, dict) else {}


def _seal(path: Path, known: str | None = None) -> dict[str, Any]:
    """Return a file's size and the hash of its bytes."""
    if not path.is_file():
        raise MissingFileError(f"{path} is not there.\n{CONTENTS} names it: copy the whole folder, or propagate again.")
    return {"bytes": path.stat().st_size, "hash": known or file_checksum(path)}
