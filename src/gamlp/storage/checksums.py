"""Checksums of what gamlp writes, compared when it is read, so that a changed bit is an error.

    a JSON file         its last key, "checksum", is a hash of all others
    files of a folder   a JSON file beside them names each with its hash: {"rows.npy": "3f…", …}
    a safetensors file  the hash of names, types, shapes and values is in its header

Files without a checksum, of an older version or written by hand, are read as they are. Cost: one pass at about 1 GB/s.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gamlp.errors import MissingFileError, StorageError
from gamlp.storage.threads import background


def json_digest(content: object) -> str:
    """Return a hash of what a JSON file says, however it is laid out."""
    content = json.loads(json.dumps(content))  # as it will be read: keys are strings
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def file_checksum(path: Path) -> str:
    """Return a hash of a file's bytes."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def write_hashed(path: Path, chunks: Iterable[bytes | memoryview]) -> str:
    """Write the chunks to a file, and that to the disk; return what `file_checksum` would.

    A chunk is hashed by a thread while the next one is made: whoever makes them may use two buffers in turn.
    """
    total = hashlib.blake2b(digest_size=16)
    with path.open("wb") as file, background() as start:
        for chunk in chunks:
            start(total.update, chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return total.hexdigest()


def checksums_of(paths: Iterable[Path]) -> dict[str, str]:
    """Return the hash of each file by its name; of those that are there."""
    return {path.name: file_checksum(path) for path in paths if path.is_file()}


def check_files(folder: Path, checksums: Mapping[str, Any], names: Iterable[str] | None = None) -> None:
    """Refuse files of `folder` whose checksum differs; with `names` only these are looked at."""
    for name, checksum in checksums.items():
        if Path(name).name != name or (names is not None and name not in names):
            continue
        path = folder / name
        if not path.is_file():
            raise MissingFileError(f"{path} is not there.\nIt was written with the others: copy the whole folder.")
        if file_checksum(path) != checksum:
            raise changed(path)


def changed(path: Path) -> StorageError:
    """Return the error for content that is not what was written."""
    return StorageError(
        f"{path} has changed since it was written: its checksum differs.\nRestore it from a copy, or make it again."
    )


def another_run(path: Path) -> StorageError:
    """Return the error for a file that belongs to other work."""
    return StorageError(
        f"{path} belongs to another run, seed or stage.\nRestore its own, or remove it and train again."
    )
