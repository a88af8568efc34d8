"""Build an adjacency from a stream of edges within a given amount of memory.

    a chunk    32 bytes an edge: its ends twice (one chunk is read while the one before is written) and its two keys
    a range    2·8 bytes an entry to gather (one range is read while the one before is sorted), and 4 to 8 to write

Edges that all fit in one chunk are sorted in memory and never written as such. Others are written in chunks, and these
merged: as many buckets at a time as fit in memory, gathered from all chunks, sorted, appended. A range of buckets is a
range of rows, so its rows are final when it is sorted, and the next range follows on the disk. Cost O(E) time, and 16
bytes of disk an edge (twice that for weights), freed as soon as the adjacency stands.
"""

from __future__ import annotations

import os
import shutil
from contextlib import AbstractContextManager, ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gamlp.errors import GamlpError, StorageError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.build.edge_chunks import ChunkWriter, EdgeStream, boot, finished_chunks, full_chunks
from gamlp.graph.build.sorting import Shape, shift_of, sort_range
from gamlp.graph.graph import check_weights
from gamlp.progress import progress
from gamlp.storage.files import Array, array_header, digest, read_json, write_array, write_json
from gamlp.storage.threads import Run, available, prefetch, workers

BYTES_AN_EDGE = 64  # of memory, for each edge of a chunk: with room for what reading takes
BYTES_AN_ENTRY = 40  # the same for each entry of a range
LEAST = 2**10
HEADER = 128  # bytes; numpy pads every header of one dimension to this


def build_adjacency(
    folder: Path, source: EdgeStream, *, nodes: int, memory: int, symmetric: bool = True, self_loops: bool = False
) -> None:
    """Write indptr, indices and weights.npy to a folder, equal to `adjacency_from_edges`; go on where it was left."""
    size, blocks = max(LEAST, memory // BYTES_AN_EDGE), 4 * available() if available() > 1 else 1
    estimate = (source.estimate or 2**40) * (1 + symmetric)
    shape = Shape(nodes, shift_of(nodes, estimate), source.weighted, symmetric, self_loops)
    plan: dict[str, object] = {"key": digest(source.key, repr(shape)), "chunk": size, "boot": boot()}
    state = _open(folder, plan)
    if state.get("built"):
        return
    if state or not _in_one_go(folder, source, shape, size):
        with workers() as run:
            if not state.get("chunked"):
                _write_chunks(source, ChunkWriter(folder / "chunks", shape, size, run=run, blocks=blocks), size)
                write_json(folder / "edges.json", {**plan, "chunked": True})
            write_adjacency(folder, shape, most=max(LEAST, memory // BYTES_AN_ENTRY), run=run, blocks=blocks)
    write_json(folder / "edges.json", {**plan, "built": True})
    shutil.rmtree(folder / "chunks", ignore_errors=True)


def _open(folder: Path, plan: dict[str, object]) -> dict[str, object]:
    """Return how far this work is; what belongs to other work is removed."""
    (folder / "chunks").mkdir(parents=True, exist_ok=True)
    there = read_state(folder / "edges.json")
    built = there.get("built") and there.get("key") == plan["key"]  # on the disk, whatever happened since
    if built or {key: there.get(key) for key in plan} == plan:
        return there
    shutil.rmtree(folder / "chunks", ignore_errors=True)
    (folder / "chunks").mkdir()
    write_json(folder / "edges.json", plan)
    return {}


def read_state(path: Path) -> dict[str, Any]:
    """Return what was written of work that was stopped; nothing where there is none."""
    try:
        return dict(read_json(path))
    except GamlpError:
        return {}


def _in_one_go(folder: Path, source: EdgeStream, shape: Shape, size: int) -> bool:
    """Sort all edges in memory, if they are known to fit one chunk."""
    if source.estimate is None or source.estimate > size:
        return False
    nodes, both, loops = shape.nodes, shape.symmetric, shape.self_loops
    for start, end, weights in full_chunks(prefetch(source.batches(0)), shape, max(1, source.estimate)):
        adjacency = adjacency_from_edges(start, end, nodes=nodes, weights=weights, symmetric=both, self_loops=loops)
        for name in ("indptr", "indices", "weights") if shape.weighted else ("indptr", "indices"):
            write_array(folder / f"{name}.npy", getattr(adjacency, name))
        return True
    return False


def _write_chunks(source: EdgeStream, writer: ChunkWriter, size: int) -> None:
    """Write the chunks that are not there yet."""
    shape, number = writer.shape, len(finished_chunks(writer.folder))
    with progress("read edges", total=source.estimate) as advance:
        advance(number * size)
        for chunk in full_chunks(prefetch(source.batches(number * size)), shape, size):
            if chunk[2] is not None:
                check_weights(chunk[2], len(chunk[2]))
            writer.write(number, chunk)
            advance(len(chunk[0]))
            number += 1
        if number == 0:  # no edges at all
            none = np.empty(0, shape.id_type)
            writer.write(0, (none, none, np.empty(0, np.float32) if shape.weighted else None))


def write_adjacency(out: Path, shape: Shape, *, most: int, run: Run, blocks: int) -> None:
    """Append range after range to indptr, indices and weights.npy in `out`; ranges that are there already are kept."""
    folder, chunks = out / "chunks", finished_chunks(out / "chunks")
    ranges = ranges_of(chunks, shape.shift, most)
    done = _finished_ranges(out, ranges, shape)
    longest = max(int(sum(starts[last] - starts[first] for starts in chunks)) for first, last in ranges)
    buffers = [shape.buffers(longest) for _ in range(min(2, len(ranges)))]
    todo = ranges[done["ranges"] :]
    gathered = prefetch(gather(folder, chunks, *cut, *buffers[at % 2]) for at, cut in enumerate(todo))
    rows, entries = done["rows"], done["entries"]
    files: list[tuple[str, Any, int]] = [("indptr", np.int64, rows), ("indices", shape.id_type, entries)]
    files += [("weights", np.float32, entries)] if shape.weighted else []
    with ExitStack() as stack, progress("sort edges") as advance:
        arrays = [stack.enter_context(GrowingArray(out / f"{name}.npy", *rest)) for name, *rest in files]
        advance(done["ranges"])
        if not arrays[0].length:
            arrays[0].append(np.zeros(1))
        for number, buckets in enumerate(gathered, start=done["ranges"] + 1):
            offsets, *found = sort_range(shape, *buckets, run=run, blocks=blocks)
            parts = [arrays[1].length + offsets[1:], *(values for values in found if values is not None)]
            for array, values in zip(arrays, parts, strict=True):
                array.append(values, to_disk=number == len(ranges) or not boot())
            state = {"ranges": number, "rows": arrays[0].length, "entries": arrays[1].length, "cuts": ranges}
            write_json(folder / "ranges.json", state)
            advance()


def ranges_of(chunks: list[Array], shift: int, most: int) -> list[tuple[int, int]]:
    """Cut the buckets into ranges of at most `most` entries and rows; one that has more is a range of its own."""
    total = np.sum(chunks, axis=0) + (np.arange(len(chunks[0])) << shift)
    cuts, buckets = [0], len(total) - 1
    while cuts[-1] < buckets:
        end = int(np.searchsorted(total, total[cuts[-1]] + most, side="right")) - 1
        cuts.append(min(max(end, cuts[-1] + 1), buckets))
    return list(pairwise(cuts))


def gather(
    folder: Path, chunks: list[Array], first: int, last: int, keys: Array, weights: Array | None
) -> tuple[Array, Array | None, Array, int]:
    """Read the buckets first … last−1 of all chunks, those of one bucket side by side, as `sort_range` takes them."""
    counts = np.array([np.diff(starts[first : last + 1]) for starts in chunks])  # (chunks, buckets)
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places = starts[:-1] + np.cumsum(counts, axis=0) - counts
    for kind, goal in (("keys", keys), ("weights", weights)):
        if goal is None:
            continue
        for chunk in range(len(chunks)):
            path = folder / f"chunk-{chunk:05}.{kind}"
            with path.open("rb") as file:
                file.seek(int(chunks[chunk][first]) * goal.itemsize)
                for place, count in zip(places[chunk].tolist(), counts[chunk].tolist(), strict=True):
                    part = goal[place : place + count].view(np.uint8).data
                    if file.readinto(part) < len(part):
                        raise StorageError(f"{path} was cut short.\nRemove {folder} and import again.")
    return keys[: starts[-1]], None if weights is None else weights[: starts[-1]], starts, first


def _finished_ranges(out: Path, ranges: list[tuple[int, int]], shape: Shape) -> dict[str, Any]:
    """Return what is finished; nothing, where the ranges were cut otherwise or the files are not as long."""
    nothing = {"ranges": 0, "rows": 0, "entries": 0}
    there = read_state(out / "chunks" / "ranges.json") or {**nothing, "cuts": []}
    sizes = {"indptr": 8 * there["rows"], "indices": np.dtype(shape.id_type).itemsize * there["entries"]}
    sizes |= {"weights": 4 * there["entries"]} if shape.weighted else {}
    paths = {out / f"{name}.npy": HEADER + size for name, size in sizes.items()}
    whole = all(path.is_file() and path.stat().st_size >= size for path, size in paths.items())
    return there if whole and [tuple(cut) for cut in there["cuts"]] == ranges else nothing


class GrowingArray(AbstractContextManager["GrowingArray"]):
    """An array of one dimension on disk; `length` values are there already when it is opened again."""

    def __init__(self, path: Path, dtype: npt.DTypeLike, length: int) -> None:
        self.dtype: np.dtype[np.generic] = np.dtype(dtype)
        self.length = length
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(HEADER + length * self.dtype.itemsize)

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, values: Array, *, to_disk: bool = False) -> None:
        """Write values at the end, so that the file can be read; bring it to the disk, or leave that to the system."""
        self._file.seek(0, os.SEEK_END)
        self._file.write(np.ascontiguousarray(values, dtype=self.dtype).view(np.uint8).data)
        self.length += len(values)
        header = array_header((self.length,), self.dtype)
        if len(header) != HEADER:
            raise AssertionError("numpy writes headers of another size")
        self._file.seek(0)
        self._file.write(header)
        self._file.flush()
        if to_disk:
            os.fsync(self._file.fileno())
