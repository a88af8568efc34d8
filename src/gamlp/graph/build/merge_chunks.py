"""Merge chunks to the adjacency: as many buckets at a time as fit in memory, gathered from all, sorted, appended.

A range of buckets is a range of rows, so its rows are final when it is sorted, and the next range follows on the disk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from gamlp.errors import GamlpError, StorageError
from gamlp.graph.build import sorting
from gamlp.graph.build.array_files import HEADER, GrowingArray
from gamlp.graph.build.edge_chunks import Shape, boot
from gamlp.progress import Advance
from gamlp.storage.files import Array, read_json, write_json
from gamlp.storage.huge_pages import empty
from gamlp.storage.threads import Run, prefetch

Gathered = tuple[Array, Array | None, Array, int]  # keys, weights, where each bucket starts, the first bucket


def ranges_of(chunks: list[Array], shift: int, most: int) -> list[tuple[int, int]]:
    """Cut the buckets into ranges of at most `most` entries and rows; one that has more is a range of its own."""
    total = np.sum(chunks, axis=0) + (np.arange(len(chunks[0])) << shift)
    cuts, buckets = [0], len(total) - 1
    while cuts[-1] < buckets:
        end = int(np.searchsorted(total, total[cuts[-1]] + most, side="right")) - 1
        cuts.append(min(max(end, cuts[-1] + 1), buckets))
    return list(pairwise(cuts))


@dataclass(frozen=True, eq=False)
class ChunkFiles:
    """The finished chunks in a folder."""

    folder: Path
    shape: Shape
    starts: list[Array]  # of each chunk, (buckets+1,)

    def gather(self, first: int, last: int, keys: Array, weights: Array | None) -> Gathered:
        """Read the buckets first … last−1 of all chunks, those of one bucket side by side."""
        counts = np.array([np.diff(starts[first : last + 1]) for starts in self.starts])  # (chunks, buckets)
        starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
        places = starts[:-1] + np.cumsum(counts, axis=0) - counts
        for kind, goal in (("keys", keys), ("weights", weights)):
            if goal is not None:
                for chunk in range(len(self.starts)):
                    self._read(chunk, kind, first, counts[chunk], places[chunk], goal)
        return keys[: starts[-1]], None if weights is None else weights[: starts[-1]], starts, first

    def _read(self, chunk: int, kind: str, first: int, counts: Array, places: Array, goal: Array) -> None:
        path = self.folder / f"chunk-{chunk:05}.{kind}"
        at = int(self.starts[chunk][first]) * goal.itemsize
        with path.open("rb", buffering=0) as file:
            os.lseek(file.fileno(), at, os.SEEK_SET)
            for place, count in zip(places.tolist(), counts.tolist(), strict=True):
                part = goal[place : place + count].view(np.uint8).data
                while part:
                    done = file.readinto(part)
                    if not done:
                        raise StorageError(f"{path} was cut short.\nRemove {self.folder} and import again.")
                    part = part[done:]


def sort_range(shape: Shape, gathered: Gathered, *, run: Run, pieces: int) -> tuple[Array, Array, Array | None]:
    """Sort and merge the buckets of a range: return the entries of each of its rows, indices and weights."""
    keys, weights, starts, first = gathered
    buckets = len(starts) - 1
    degrees = np.zeros((buckets << shape.shift) + 1, np.int64)
    cuts = sorting.bucket_ranges(starts, pieces)
    fixed = (keys, weights, starts)
    rest = (shape.shift, shape.columns, shape.bits, degrees)
    run([partial(sorting.sort_bucket_range, *fixed, *piece, *rest) for piece in cuts])
    indptr = np.cumsum(degrees)
    indices = np.empty(int(indptr[-1]), shape.id_type)
    merged = None if weights is None else np.empty(len(indices), np.float32)
    last = (indptr, shape.shift, shape.columns, shape.spare, indices, merged)
    run([partial(sorting.write, *fixed, *last, *piece) for piece in cuts])
    rows = min(buckets << shape.shift, shape.nodes - (first << shape.shift))
    return degrees[1 : rows + 1], indices, merged


def write_adjacency(
    out: Path, folder: Path, shape: Shape, chunks: list[Array], *, most: int, run: Run, pieces: int, advance: Advance
) -> None:
    """Append range after range to indptr, indices and weights.npy in `out`; ranges that are there already are kept."""
    chunk_files, ranges = ChunkFiles(folder, shape, chunks), ranges_of(chunks, shape.shift, most)
    done = _state(out, folder, ranges, shape)
    longest = max(int(sum(starts[last] - starts[first] for starts in chunks)) for first, last in ranges)
    buffers = [
        (empty((longest,), np.int64), empty((longest,), np.float32) if shape.weighted else None)
        for _ in range(min(2, len(ranges)))
    ]
    todo = ranges[done["ranges"] :]

    def load(at: int) -> Gathered:
        return chunk_files.gather(*todo[at], *buffers[at % 2])

    advance(done["ranges"])
    with (
        GrowingArray(out / "indptr.npy", np.int64, done["rows"]) as indptr,
        GrowingArray(out / "indices.npy", shape.id_type, done["entries"]) as indices,
        GrowingArray(out / "weights.npy", np.float32, done["entries"] if shape.weighted else 0) as weights,
    ):
        if not indptr.length:
            indptr.append(np.zeros(1))
        for number, gathered in enumerate(prefetch(map(load, range(len(todo)))), start=done["ranges"] + 1):
            degrees, found, values = sort_range(shape, gathered, run=run, pieces=pieces)
            indptr.append(indices.length + np.cumsum(degrees))
            indices.append(found)
            if values is not None:
                weights.append(values)
            for array in (indptr, indices, weights):
                array.sync(to_disk=number == len(ranges) or not boot())
            state = {"ranges": number, "rows": indptr.length, "entries": indices.length, "cuts": ranges}
            write_json(folder / "ranges.json", state)
            advance()
    if not shape.weighted:
        (out / "weights.npy").unlink(missing_ok=True)


def _state(out: Path, folder: Path, ranges: list[tuple[int, int]], shape: Shape) -> dict[str, int]:
    """Return what is finished; nothing, where the ranges were cut otherwise or the files are not as long."""
    nothing = {"ranges": 0, "rows": 0, "entries": 0}
    try:
        there = read_json(folder / "ranges.json")
    except GamlpError:
        return nothing
    whole = {"indptr": 8 * there["rows"], "indices": np.dtype(shape.id_type).itemsize * there["entries"]}
    whole |= {"weights": 4 * there["entries"]} if shape.weighted else {}
    for name, size in whole.items():
        path = out / f"{name}.npy"
        if not path.is_file() or path.stat().st_size < HEADER + size:
            return nothing
    return there if [tuple(cut) for cut in there["cuts"]] == ranges else nothing
