"""Build an adjacency from a stream of edges within a given amount of memory.

    a chunk    32 bytes an edge: its ends twice (one chunk is read while the one before is written) and its two keys
    a range    2·8 bytes an entry to gather (one range is read while the one before is sorted), and 4 to 8 to write

Edges that all fit in one chunk are sorted in memory and never written as such. Cost O(E) time, and 16 bytes of disk an
edge (twice that for weights), freed as soon as the adjacency stands.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from gamlp.errors import GamlpError, NotFiniteError
from gamlp.graph.build import sorting
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.build.edge_chunks import ChunkWriter, EdgeStream, Shape, boot, finished_chunks, full_chunks
from gamlp.graph.build.merge_chunks import write_adjacency
from gamlp.progress import progress
from gamlp.storage.files import Array, digest, read_json, write_array, write_json
from gamlp.storage.threads import available, prefetch, workers

BYTES_AN_EDGE = 64  # of memory, for each edge of a chunk: with room for what reading takes
BYTES_AN_ENTRY = 40  # the same for each entry of a range
LEAST = 2**10


def build_adjacency(
    folder: Path,
    source: EdgeStream,
    *,
    nodes: int,
    memory: int,
    symmetric: bool = True,
    self_loops: bool = False,
    threads: int | None = None,
) -> None:
    """Write indptr.npy, indices.npy and, of weighted edges, weights.npy to a folder; go on where it was left.

    Equal to `adjacency_from_edges` of all edges together.
    """
    threads = threads or available()
    size = max(LEAST, memory // BYTES_AN_EDGE)
    estimate = (source.estimate or 2**40) * (1 + symmetric)
    shape = Shape(nodes, sorting.shift_of(nodes, estimate), source.weighted, symmetric, self_loops)
    plan: dict[str, object] = {"key": digest(source.key, repr(shape)), "chunk": size, "boot": boot()}
    state = _open(folder, plan)
    if state.get("built"):
        return
    chunk_files = folder / "chunks"
    with workers(threads) as run:
        if not state.get("chunked"):
            if _in_one_go(folder, source, shape, size, state, threads):
                write_json(folder / "edges.json", {**plan, "built": True})
                return
            blocks = 4 * threads if threads > 1 else 1
            _write_chunks(
                chunk_files, source, ChunkWriter(chunk_files, shape, size, run=run, blocks=blocks), shape, size
            )
            write_json(folder / "edges.json", {**plan, "chunked": True})
        chunks = finished_chunks(chunk_files)
        most = max(LEAST, memory // BYTES_AN_ENTRY)
        with progress("sort edges") as advance:
            write_adjacency(folder, chunk_files, shape, chunks, most=most, run=run, pieces=8 * threads, advance=advance)
    write_json(folder / "edges.json", {**plan, "built": True})
    shutil.rmtree(chunk_files, ignore_errors=True)


def _open(folder: Path, plan: dict[str, object]) -> dict[str, object]:
    """Return how far this work is; what belongs to other work is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        there = read_json(folder / "edges.json")
    except GamlpError:
        there = {}
    built = there.get("built") and there.get("key") == plan["key"]  # on the disk, whatever happened since
    if built or {key: there.get(key) for key in plan} == plan:
        return dict(there)
    shutil.rmtree(folder / "chunks", ignore_errors=True)
    (folder / "chunks").mkdir()
    write_json(folder / "edges.json", plan)
    return {}


def _in_one_go(
    folder: Path, source: EdgeStream, shape: Shape, size: int, state: dict[str, object], threads: int
) -> bool:
    """Sort all edges in memory, if they are known to fit one chunk."""
    if state or source.estimate is None or source.estimate > size:
        return False
    for chunk in full_chunks(prefetch(source.batches(0)), shape, max(1, source.estimate)):
        _check_weights(chunk[2])
        adjacency = adjacency_from_edges(
            *chunk[:2], nodes=shape.nodes, weights=chunk[2], symmetric=shape.symmetric,
            self_loops=shape.self_loops, threads=threads,
        )  # fmt: skip
        write_array(folder / "indptr.npy", adjacency.indptr)
        write_array(folder / "indices.npy", adjacency.indices)
        if adjacency.weights is not None:
            write_array(folder / "weights.npy", adjacency.weights)
        return True
    return False


def _write_chunks(chunk_files: Path, source: EdgeStream, writer: ChunkWriter, shape: Shape, size: int) -> None:
    """Write the chunks that are not there yet."""
    chunk_files.mkdir(exist_ok=True)
    done = len(finished_chunks(chunk_files))
    total = None if source.estimate is None else source.estimate
    with progress("read edges", total=total) as advance:
        advance(done * size)
        number = done
        for chunk in full_chunks(prefetch(source.batches(done * size)), shape, size):
            _check_weights(chunk[2])
            writer.write(number, chunk)
            advance(len(chunk[0]))
            number += 1
        if number == 0:  # no edges at all
            none = np.empty(0, shape.id_type)
            writer.write(0, (none, none, np.empty(0, np.float32) if shape.weighted else None))


def _check_weights(weights: Array | None) -> None:
    if weights is not None and len(weights) and not 0 <= float(weights.min()) <= float(weights.max()) < float("inf"):
        raise NotFiniteError("Some edge weights are negative, NaN or infinite.\nWeights must be ≥ 0 and finite.")
