"""Ways in which a file can be wrong: bits, ends, other files, and content that was made to harm.

A corruption is a name and a function that changes one file in place. `authored` ones are consistent in themselves (the
checksum was left out): nobody can tell them from a file that was meant so, they must only do no harm.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HEADER = 256
MARK = "gamlp-fault-was-here"  # a file that only executed content would make


@dataclass(frozen=True)
class Corruption:
    """What is done to a file."""

    name: str
    apply: Callable[[Path], None]
    authored: bool = False


def corruptions(path: Path, others: list[Path], *, random: np.random.Generator, payload: int) -> Iterator[Corruption]:
    """Yield everything that is done to one file; `others` are files of the same name from elsewhere."""
    content = path.read_bytes()
    header = range(min(len(content), HEADER if path.suffix not in (".json", ".safetensors") else 4 * HEADER))
    rest = random.integers(0, max(1, len(content)), payload).tolist()
    for at in (*header, *rest):
        if content:
            yield Corruption(f"bit at {at}", flipped(at, 1 << int(random.integers(0, 8))))
    for size in sorted({*cuts(content), *random.integers(0, max(1, len(content)), 8).tolist()}):
        yield Corruption(f"cut to {size}", lambda file, size=size: os.truncate(file, size))
    yield Corruption("longer", lambda file: file.write_bytes(content + b"\0" * 7))
    yield Corruption("twice", lambda file: file.write_bytes(content + content), authored=path.suffix == ".csv")
    for number, other in enumerate(others):
        yield Corruption(f"swap {number}", lambda file, other=other: file.write_bytes(other.read_bytes()))
    for name, hostile in hostile_contents(path.suffix).items():
        yield Corruption(name, lambda file, hostile=hostile: file.write_bytes(hostile))
    yield from places(path)
    if path.suffix == ".json":
        yield from authored(json.loads(content))


def flipped(at: int, bit: int) -> Callable[[Path], None]:
    """Return what flips one bit of a file."""

    def apply(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[at] ^= bit
        path.write_bytes(content)

    return apply


def cuts(content: bytes) -> list[int]:
    """Return where a file falls into parts: ends of headers, of members, of lines, and one byte beside."""
    ends = {0, 1, 4, 6, 8, 10, len(content) // 2, len(content) - 1, len(content) - 4, len(content) - 8}
    if content[:6] == b"\x93NUMPY":
        ends.add(10 + struct.unpack("<H", content[8:10])[0])
    elif content[:2] == b"PK":
        ends |= {at for at in range(len(content)) if content[at : at + 2] == b"PK"}
    elif len(content) > 8 and content[8:9] == b"{":
        ends.add(8 + struct.unpack("<Q", content[:8])[0])
    else:
        ends |= {at + 1 for at, byte in enumerate(content[:600]) if byte == 10}
    return [at for end in ends for at in (end, end + 1) if 0 <= at < len(content)]


class Runs:
    """Pickles to a call that leaves a mark."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (f"/tmp/{MARK}",)


def npy(header: str, values: bytes = b"\0" * 64, version: bytes = b"\x01\x00") -> bytes:
    """Return a .npy file with this header."""
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", len(header))
    return b"\x93NUMPY" + version + size + header.encode("latin1") + values


def zipped(members: dict[str, bytes]) -> bytes:
    """Return a zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def objects() -> bytes:
    """Return a .npy file with a pickle in it."""
    out = io.BytesIO()
    np.save(out, np.array([Runs()], dtype=object), allow_pickle=True)
    return out.getvalue()


def hostile_contents(suffix: str) -> dict[str, bytes]:
    """Return content that was made to harm, by a name for it."""
    plain = "{'descr': '<f4', 'fortran_order': False, 'shape': %s}\n"
    bomb = npy(plain % "(16777216,)", b"\0" * 2**26)
    found = {
        "empty": b"",
        "zeros": b"\0" * 4096,
        "pickle": pickle.dumps(Runs()),
        "pickle of an array": pickle.dumps(np.zeros(3)),
        "npy of objects": objects(),
        "npy of 4 EiB": npy(plain % "(1152921504606846976,)"),
        "npy of negative size": npy(plain % "(-1,)"),
        "npy of many dimensions": npy(plain % str((1,) * 70)),
        "npy with a call": npy("{'descr': __import__('os').getpid(), 'fortran_order': False, 'shape': (1,)}\n"),
        "npy nested": npy("(" * 9000 + "\n"),
        "npy of records": npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (16,)}\n"),
        "npy of version 9": npy(plain % "(16,)", version=b"\x09\x00"),
        "safetensors of 8 EiB": struct.pack("<Q", 2**63) + b"{}",
        "safetensors beyond its end": _safetensors("F32", 2**40),
        "JSON nested": b"[" * 200_000,
        "JSON of a long number": b'{"version": ' + b"9" * 10_000 + b"}",
        "JSON infinite": b'{"version": 1e999, "format": NaN}',
        "JSON null": b"null",
        "JSON list": b"[]",
        "JSON object": b"{}",
        "JSON doubled keys": b'{"format": 1, "format": [], "files": {"../../../x": 1}, "arrays": {"../x": {}}}',
        "UTF-16": "{}".encode("utf-16"),
        "markup": b"<script>alert(1)</script>\n" * 10,
        "one long line": b"a," * 300_000,
    }
    if suffix in (".npz", ".npy", ".gz"):
        found |= {
            "zip going up": zipped({"../../../../../tmp/" + MARK + ".npy": npy(plain % "(16,)")}),
            "zip with a root": zipped({"/tmp/" + MARK: npy(plain % "(16,)")}),
            "zip bomb": zipped(dict.fromkeys(("edge_index.npy", "adj_data.npy"), bomb)),
            "zip of pickles": zipped({name: objects() for name in ("edge_index.npy", "adj_data.npy", "labels.npy")}),
        }
    return found


def _safetensors(kind: str, values: int) -> bytes:
    words = json.dumps({"a": {"dtype": kind, "shape": [values], "data_offsets": [0, 4 * values]}}).encode()
    return struct.pack("<Q", len(words)) + words


def places(path: Path) -> Iterator[Corruption]:
    """Yield things that are no files where a file should be."""

    def put(make: Callable[[Path], None]) -> Callable[[Path], None]:
        def apply(file: Path) -> None:
            file.unlink()
            make(file)

        return apply

    yield Corruption("missing", lambda file: file.unlink())
    yield Corruption("a folder", put(lambda file: file.mkdir()))
    yield Corruption("a pipe", put(os.mkfifo))
    yield Corruption("a link to itself", put(lambda file: file.symlink_to(file)))
    yield Corruption("a link to zeros", put(lambda file: file.symlink_to("/dev/zero")))
    yield Corruption("a link to nothing", put(lambda file: file.symlink_to("nowhere")))


ABSURD: list[Any] = [None, -1, 0, 2**70, 1e308, "", "x" * 10_000, [], {}, [[[]]], {"a": {"b": []}}, True, "../../x"]


def authored(content: Any) -> Iterator[Corruption]:
    """Yield JSON with one value replaced by an absurd one, or left out, and no checksum."""
    if not isinstance(content, dict):
        return
    content.pop("checksum", None)
    for way in list(_ways(content))[:80]:
        for number, value in enumerate([*ABSURD, _OUT]):
            if (number + len(str(way))) % 3 == 0:
                text = json.dumps(_changed(content, way, value))
                yield Corruption(f"{way} = {value!r:.20}", lambda file, text=text: file.write_text(text), authored=True)


_OUT = object()


def _ways(content: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(inside)[:30]:
        yield (*way, key)
        if len(way) < 3:
            yield from _ways(value, (*way, key))


def _changed(content: Any, way: tuple[Any, ...], value: Any) -> Any:
    copy = dict(content) if isinstance(content, dict) else list(content)
    if len(way) > 1:
        copy[way[0]] = _changed(content[way[0]], way[1:], value)
    elif value is _OUT:
        del copy[way[0]]
    else:
        copy[way[0]] = value
    return copy
