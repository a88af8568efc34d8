"""Atomic writes: a kill or a full disk never leaves half of a file behind.

A file is written under a temporary name in its own folder, synced, renamed over the old one, and the folder is synced:
a reader sees the old content or the new, never a mixture.

Of a .npy file the header is looked at before anything is read: a few bytes can declare an array of any size, and
reading on would allocate it first and fail later.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from gamlp.errors import FormatError, MissingFileError, disk_errors
from gamlp.storage.checksums import changed, json_digest
from gamlp.storage.locks import hold, sweep, temporary_name
from gamlp.storage.threads import background, prefetch

Array = npt.NDArray[Any]
UNTOUCHED = "What was there before is untouched. Free some space or choose another folder, then run again."
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open `path` for writing; it takes its new content only if the block ends without an error."""
    temporary = temporary_name(path)
    try:
        with disk_errors(f"{path} could not be written", UNTOUCHED):
            path.parent.mkdir(parents=True, exist_ok=True)
            sweep(path)
            with temporary.open("wb") as file:
                hold(file.fileno())
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_folder(path.parent)
    finally:
        with suppress(OSError):  # where it could not be made, it cannot be removed
            temporary.unlink(missing_ok=True)


def forget(path: Path) -> None:
    """Remove a file that is no longer needed."""
    remedy = "All results are whole; it is no longer needed. Run again, and it is removed then."
    with disk_errors(f"{path} could not be removed", remedy):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power cut; Windows has no such call, and syncs with the file."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> Path:
    """Write text as UTF-8, whole or not at all; return the path."""
    with replacing(path) as file:
        file.write(text.encode())
    return path


def write_json(path: Path, content: object) -> None:
    """Write `content` as readable JSON with a checksum, whole or not at all."""
    if isinstance(content, dict):  # what is no object has no place for one
        content = {**content, "checksum": json_digest(content)}
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file that gamlp wrote; one that has changed since is refused."""
    if not path.is_file():  # nor a pipe or a device, which may never end
        raise MissingFileError(f"{path} is not there.\nIs this the right folder?")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict) and "checksum" in content and content.pop("checksum") != json_digest(content):
            raise changed(path)
        return content
    except (OSError, ValueError, RecursionError) as error:  # not UTF-8, not JSON, a number of a million digits
        raise FormatError(f"{path} is not readable JSON ({error}).\nRestore it, or make it again.") from error


def write_array(path: Path, array: Array) -> None:
    """Write one array as .npy, whole or not at all."""
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


def write_hashed_array(path: Path, array: Array) -> str:
    """Write an array in memory, by rows, as .npy, whole or not at all; return its checksum, made meanwhile."""
    array = np.ascontiguousarray(array)
    with replacing(path) as file, background() as start:
        found: list[str] = []
        start(lambda: found.append(_content(array)))
        np.save(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())  # the disk is slower than the hash
    return found[0]


def read_array(path: Path, *, memory_map: bool = False) -> Array:
    """Read or map one .npy file; a truncated or pickled one, or one with a false header, is refused by name."""
    if not path.is_file():
        raise MissingFileError(f"{path} is not there.\nA .npy file was expected at this place.")
    try:
        with path.open("rb") as file:
            values = math.prod(check_header(file, path.stat().st_size).shape)
        return np.asanyarray(np.load(path, mmap_mode="r" if memory_map and values else None, allow_pickle=False))
    except (ValueError, OSError, EOFError, OverflowError, MemoryError) as error:
        raise FormatError(
            f"{path} is not a complete .npy array ({error}).\nIt may be cut short; copy or make it again."
        ) from error


class Header(NamedTuple):
    """What a .npy header says of the values behind it."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]


def check_header(file: IO[bytes], size: int) -> Header:
    """Read a .npy header; refuse one that declares more than there is up to `size`, the end in bytes of the file."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"format version {version} is not admitted")
    try:
        header = Header(*HEADERS[version](file))
    except Exception as error:  # the header is Python text: a damaged one fails in as many ways as Python has
        raise ValueError("its header is damaged") from error
    if header.dtype.hasobject or header.dtype.names:
        raise ValueError("it holds pickled objects or records, not plain values")
    if any(length < 0 for length in header.shape):
        raise ValueError(f"it declares the shape {header.shape}")
    declared = math.prod(header.shape) * header.dtype.itemsize
    if file.tell() + declared > size:
        raise ValueError(f"it declares {declared:,} bytes of values and has {size - file.tell():,}")
    return header


def array_header(shape: tuple[int, ...], dtype: npt.DTypeLike, *, by_columns: bool = False) -> bytes:
    """Return the header of a .npy file, for values that are written after it, chunk by chunk."""
    header = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": by_columns, "shape": shape}
    np.lib.format.write_array_header_1_0(header, described)
    return header.getvalue()


def digest(*parts: Array | str | bytes) -> str:
    """Return a short content hash of arrays and strings: the key of every cache.

    That of several parts is made of the hashes of its arrays; that of a mapped file is remembered as long as the file's
    size and date stay what they are. That of one array alone is a checksum, and reads what is there.
    """
    if len(parts) == 1 and isinstance(parts[0], np.ndarray):
        return _content(parts[0])
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            total.update(b"\1" + (_KNOWN.get(_identity(part), "") or _content(part)).encode())
        else:
            total.update(b"\0" + (part.encode() if isinstance(part, str) else part))
    return total.hexdigest()


_KNOWN: dict[tuple[Any, ...] | None, str] = {}  # mapped files whose content has been read → its hash


def _content(array: Array) -> str:
    """Return the hash of one array's type, shape and values."""
    before = _identity(array)
    total = hashlib.blake2b(f"{array.dtype.str}{array.shape}".encode(), digest_size=16)
    for chunk in _by_rows(array):
        total.update(chunk.data)
    if before is not None and before == _identity(array):
        _KNOWN[before] = total.hexdigest()
    return total.hexdigest()


def remember(array: Array, content: str) -> None:
    """Take the hash of a mapped file from where it was written down, until the file changes."""
    identity = _identity(array)
    if identity is not None:
        _KNOWN[identity] = content


def linked(old: Path, new: Path) -> bool:
    """Give a file a second name; False where the file system cannot."""
    with suppress(OSError):
        os.link(old, new)
        return True
    return False


def is_older(path: Path, contents: Path) -> bool:
    """Say whether a file was last written before the file that describes it, and so is what that describes."""
    return path.stat().st_mtime_ns <= contents.stat().st_mtime_ns


def _identity(array: Array) -> tuple[Any, ...] | None:
    """Return which file an array maps, how, and in which state; None for any other."""
    if not is_whole_file(array):
        return None
    found = Path(array.filename).stat()  # type: ignore[attr-defined]
    state = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    return *state, array.dtype.str, array.shape, array.strides, array.offset  # type: ignore[attr-defined]


def is_whole_file(array: Any) -> bool:
    """Say whether an array is a mapped file as it was opened, not a view of some of it."""
    return isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap) and array.filename is not None


def release_pages(array: Any) -> None:
    """Let go of what was read of a mapped file, or of views of it: it would count as memory of this process."""
    mapped = array
    while isinstance(mapped, np.ndarray) and not is_whole_file(mapped):
        mapped = mapped.base
    if isinstance(mapped, np.memmap) and mapped.mode == "r" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.base.madvise(mmap.MADV_DONTNEED)  # type: ignore[union-attr]


def _by_rows(array: Array) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield the bytes of an array by rows, a few MiB at a time; one stored by columns is transposed.

    A mapped file is read, not looked at through its map: a file cut short is then an error and not a crash. The next
    chunk is read while the last one is in use.
    """
    if array.ndim == 0 or (array.flags.c_contiguous and not is_whole_file(array)):
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return
    from gamlp.storage.array_reader import ArrayReader  # which is made of this module

    source, rows = ArrayReader(array), max(1, 2**24 // max(1, array[:1].nbytes))
    buffers = [np.empty((min(rows, len(array)), *array.shape[1:]), array.dtype) for _ in range(2)]

    def load(at: int) -> Array:
        first, last = at * rows, min((at + 1) * rows, len(array))
        return source.rows(first, last, buffers[at % 2])

    for chunk in prefetch(map(load, range(-(-len(array) // rows)))):
        yield chunk.reshape(-1).view(np.uint8)
