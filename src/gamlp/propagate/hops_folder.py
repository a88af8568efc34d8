"""A folder of hops: plain .npy arrays that any tool can map, and hops.json, written last, which says what they are.

    values.npy (R, K+1, F), rows.npy?, stationary.npy?    hops.json: format, key, each file's size and a sample's hash

The key is a hash of the graph, the features and every option (`cache.hops_key`): hops of a graph that has changed since
have another key.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from gamlp.errors import FormatError, InputError, MissingFileError, StorageError
from gamlp.files import Array, digest, read_array, read_json, sync_folder, write_array, write_json
from gamlp.propagate.hops import Hops

FORMAT = 1
CONTENTS = "hops.json"
SAMPLE = 2**16  # bytes hashed at the beginning, the middle and the end of each file


def is_hops_folder(folder: Path) -> bool:
    """Say whether `folder` holds hops."""
    return (folder / CONTENTS).is_file()


def write_contents(folder: Path, key: str) -> None:
    """Write hops.json for the arrays that are there."""
    files = {path.name: _seal(path) for path in sorted(folder.glob("*.npy"))}
    write_json(folder / CONTENTS, {"format": FORMAT, "key": key, "files": files})


def load_hops(folder: Path, key: str | None = None) -> Hops:
    """Map the hops of a folder; with `key`, only those of that graph and those options."""
    if not is_hops_folder(folder):
        raise MissingFileError(
            f"{folder} holds no hops: it has no {CONTENTS}.\nName a folder that gamlp propagate made."
        )
    content = read_json(folder / CONTENTS)
    if not isinstance(content, dict) or content.get("format") != FORMAT or "values.npy" not in content.get("files", ()):
        raise FormatError(f"{folder / CONTENTS} does not describe hops of format {FORMAT}.\nPropagate again.")
    if key is not None and content.get("key") != key:
        raise StorageError(
            f"{folder} holds hops of another graph, of this one before it changed, or made with other settings.\n"
            "They were left as they are: choose another folder, or ask for them to be overwritten."
        )
    arrays: dict[str, Array] = {}
    for name, seal in content["files"].items():
        if _seal(folder / name) != seal:
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
    temporary = place.absolute().with_name(f".{place.name}.{secrets.token_hex(4)}.tmp")
    arrays = {"values": hops.values, "rows": hops.rows, "stationary": hops.stationary}
    try:
        temporary.mkdir(parents=True)
        for name, array in arrays.items():
            if array is not None:
                write_array(temporary / f"{name}.npy", array)
        write_contents(temporary, key)
        if place.exists():
            shutil.rmtree(place)
        os.rename(temporary, place)  # noqa: PTH104 — the system call is meant
        sync_folder(place.absolute().parent)
    except OSError as error:
        raise StorageError(
            f"{place} could not be written: {error.strerror or error}.\nFree some space or choose another folder."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _seal(path: Path) -> dict[str, Any]:
    """Return a file's size and a hash of its beginning, middle and end."""
    if not path.is_file():
        raise MissingFileError(f"{path} is not there.\n{CONTENTS} names it: copy the whole folder, or propagate again.")
    size = path.stat().st_size
    parts = []
    with path.open("rb") as file:
        for at in (0, max(0, size // 2 - SAMPLE // 2), max(0, size - SAMPLE)):
            file.seek(at)
            parts.append(file.read(SAMPLE))
    return {"bytes": size, "sample": digest(*parts)}
