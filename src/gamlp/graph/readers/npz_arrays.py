"""Read arrays out of .npz files, which are zip archives of .npy files, without ever unpickling.

An array too large for memory is mapped: a member of the zip is a .npy file. One that is stored as it is, as numpy.savez
does, is mapped where it stands in the archive, once its checksum is found right; a compressed one is unpacked beside
the archive, once.

The Amazon co-purchase and Coauthor graphs are such files: adj_{data,indices,indptr,shape}, attr_{…} and labels;
anything else in them, pickled names among it, is not read. Features stay as they are in the file. There is no fixed
split: 20 nodes of each class train, 30 validate, the rest test, drawn anew for each seed. Published tables leave out
what the largest connected component does not hold (Shchur et al. 2018): of Photo 163 of 7,650 nodes, of Computers 371.
"""

from __future__ import annotations

import lzma
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError, MissingFileError
from gamlp.graph.build.assemble import assemble
from gamlp.graph.graph import Graph
from gamlp.graph.splits import SplitRule
from gamlp.progress import progress
from gamlp.storage.files import Array, check_header, read_array, replacing
from gamlp.storage.threads import prefetch

MOST_PACKED = 1032  # a byte of deflated data stands for at most so many
MAP_FROM = 2**26  # bytes; a larger array that is stored as it is is mapped instead of read
UNPACK_FROM = 2**30  # bytes; the same of a compressed one, which takes the disk for it
CHUNK = 2**24  # bytes read at a time
ENCRYPTED = 1  # bit of a member's flags


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive; whatever is broken in it is reported with its name."""
    if not path.is_file():
        raise MissingFileError(f"{path} is not there.\nA .npz file was expected at this place.")
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (
        *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError),
        *(ValueError, OSError, OverflowError, MemoryError, RuntimeError),
    ) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(
            f"{path} is not a complete .npz file ({error}).\n"
            "It may be cut short or hold pickled objects; fetch or make it again."
        ) from error


def members(path: Path) -> set[str]:
    """Return the names of the arrays in the archive."""
    with opened(path) as archive:
        return {name.removesuffix(".npy") for name in archive.namelist()}


def read_member(path: Path, key: str) -> Array:
    """Read one array of the archive, into memory, or map it if it is very large."""
    with opened(path) as archive:
        if f"{key}.npy" not in archive.namelist():
            found = ", ".join(sorted(name.removesuffix(".npy") for name in archive.namelist()))
            raise FormatError(f"{path} has no array '{key}'.\nIt holds: {found or 'nothing'}.")
        member = archive.getinfo(f"{key}.npy")
        size, packed = member.file_size, member.compress_size
        if size > MOST_PACKED * packed + 1024 and member.compress_type == zipfile.ZIP_DEFLATED:
            raise ValueError(f"{key}.npy declares {size:,} bytes in {packed:,} packed ones")
        stored = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & ENCRYPTED
        if size < (MAP_FROM if stored else UNPACK_FROM):
            with archive.open(f"{key}.npy") as file:
                check_header(file, size)
                file.seek(0)
                return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
        if stored:
            return map_stored(path, member)
        unpacked = path.with_name(f"{path.name}.unpacked") / f"{key}.npy"
        if not unpacked.is_file() or unpacked.stat().st_mtime < path.stat().st_mtime or unpacked.stat().st_size != size:
            with archive.open(f"{key}.npy") as file:
                check_header(file, size)
            with archive.open(f"{key}.npy") as file, replacing(unpacked) as copy:
                shutil.copyfileobj(file, copy, CHUNK)
    return read_array(unpacked, memory_map=True)


def map_stored(path: Path, member: zipfile.ZipInfo) -> Array:
    """Map an array that is stored as it is, where it stands in the archive; not always at a multiple of its type."""
    with path.open("rb") as file:
        file.seek(member.header_offset + 26)  # in the header before the data: lengths of the name and an extra field
        name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
        first = member.header_offset + 30 + name + extra
        there = path.stat().st_size - first
        if member.file_size > there:
            raise ValueError(f"{member.filename} declares {member.file_size:,} bytes, {there:,} are left of the file")
        check_stored(path, member, first)
        file.seek(first)
        shape, by_columns, dtype = check_header(file, first + member.file_size)
        return np.memmap(path, dtype, "r", file.tell(), shape, "F" if by_columns else "C")


_WHOLE: set[tuple[Any, ...]] = set()  # members whose checksum was right, and the state of their archive


def check_stored(path: Path, member: zipfile.ZipInfo, first: int) -> None:
    """Compare the bytes of a stored member with its checksum, once as long as the archive stays what it is."""
    found = path.stat()
    known = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, first
    if known in _WHOLE:
        return
    sizes = (min(CHUNK, member.file_size - at) for at in range(0, member.file_size, CHUNK))
    total = 0
    with path.open("rb") as file, progress(f"check {path.name}: {member.filename}", total=member.file_size) as advance:
        file.seek(first)
        for chunk in prefetch(file.read(size) for size in sizes):
            total = zlib.crc32(chunk, total)
            advance(len(chunk))
    if total != member.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {member.filename!r}")
    _WHOLE.add(known)


def read_npz(path: Path, name: str, *, connected: bool = False) -> Graph:
    """Read one of the Amazon and Coauthor graphs, or its largest `connected` component, its nodes in their order."""
    matrix, features, labels = sparse_matrix(path, "adj"), sparse_matrix(path, "attr"), read_member(path, "labels")
    if connected:
        kept = largest_component(matrix)
        matrix, features, labels = matrix[kept][:, kept], features[kept], labels[kept]
    edges, rule = matrix.tocoo(), SplitRule(train=20, valid=30)
    return assemble(edges.row, edges.col, features=features, labels=labels, split=rule, name=name)


def largest_component(matrix: Any) -> Array:
    """Return the nodes of the largest connected component, of equally large ones the first; sorted."""
    from scipy.sparse.csgraph import connected_components

    _, component = connected_components(matrix, directed=False)
    return np.flatnonzero(component == np.bincount(component).argmax())


def sparse_matrix(path: Path, prefix: str) -> Any:
    """Build the matrix whose CSR parts have this prefix."""
    from scipy.sparse import csr_array

    *parts, shape = (read_member(path, f"{prefix}_{part}") for part in ("data", "indices", "indptr", "shape"))
    try:
        matrix = csr_array(tuple(parts), shape=tuple(int(size) for size in np.atleast_1d(shape)))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, MemoryError) as error:
        raise FormatError(
            f"{path}: the parts {prefix}_… do not make a matrix ({error}).\n"
            "Expected CSR form. Fetch the file again from its source."
        ) from error
    return matrix
