"""The states of a graph that has changed: rows that the change reaches are computed again, all others are taken over.

    R     rows of A that are others (an edge, its weight, or a node came or went), and with them degrees
    C_0   rows whose y^(0) has other bits: among R and the nodes with other features
    A_l   R, the rows that have a neighbour in C_(l−1), and with self-loops C_(l−1) itself:  computed again, one hop
    C_l   those of A_l whose bits are others than before

Row i of y^(l) = D^(−1) A y^(l−1) is summed by the same kernels, in the order of its own entries, hubs in segments of
the same length (`chunks`): the bits are those of a propagation of the whole graph. With float16, c is that of all
features: where it changes, everything does. Scaling by columns (`standard`) is as it was measured; rotated features
(components) come from a matrix product whose bits depend on how many rows are multiplied at once, and are never taken
over.

Cost: the entries of A_1 … A_K, where they are few each several times as dear as in a hop of the whole graph, since its
neighbours' rows are gathered first; above a share MOST of the entries of all hops the whole is propagated. Rows that
have other bits are written beside the old states (`layers`); where nodes move up, or much differs, all are, in one pass
over the old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from gamlp.graph.build.changed_adjacency import some_rows
from gamlp.graph.build.changes import Moved
from gamlp.graph.graph import Adjacency
from gamlp.progress import log
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.hops import file_hash, load_cached, load_hops, write_arrays
from gamlp.propagate.layers import Layers, layer_arrays, write_layers
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.reach import marked, reached
from gamlp.propagate.spec import Job, Propagation
from gamlp.propagate.states import PREFIX, States, keep_states, rows_at_once, state_job, states_from, write_about
from gamlp.storage.checksums import write_hashed
from gamlp.storage.directories import making
from gamlp.storage.files import Array, array_header
from gamlp.storage.threads import ranges

MOST = 0.6  # share of the entries of all hops from which on all is propagated: benchmarks/update.py --always
BYTES_AT_ONCE = 2**28  # of neighbours' rows


def changed_states(
    engine: Engine, old: States, adjacency: Adjacency, columns: object, moved: Moved, *, directed: bool
) -> tuple[States, int]:
    """Return the states of the changed graph, in the engine's cache if it has one, and how many rows are others."""
    job = state_job(adjacency, columns, old.spec)
    place = None if engine.cache is None else engine.cache / f"{PREFIX}{(key := job.key(engine.key_device))}"
    if place is not None and (found := load_cached(place, key, newer=True)) is not None:
        write_about(place, adjacency, columns, old.spec)  # which a kill may have left out
        return states_from(found, job, columns, old.spec), adjacency.nodes
    patches = (
        None if all_changes(old, job, columns) else recomputed(old, job, moved, directed=directed, room=engine.room)
    )
    if patches is None:
        return keep_states(engine, adjacency, columns, old.spec), adjacency.nodes
    stationary = job.stationary(engine.memory)
    if place is None:
        values = np.concatenate([np.frombuffer(part, patches.dtype) for part in written(patches)])
        new = States(adjacency, columns, old.spec, values.reshape(patches.shape), job.columns.factors, stationary)
        return new, patches.touched
    with making(place) as folder:
        write_values(folder, key, patches, stationary)
        write_about(folder, adjacency, columns, old.spec)
    return states_from(load_hops(place, key, verify=False), job, columns, old.spec), patches.touched


def write_values(folder: Path, key: str, new: Layers, stationary: Array | None) -> None:
    """Write what differs beside a link to the file of the old states; where that is much, or cannot be, all of it."""
    layers = new.over_one_file()
    described = None if layers is None else write_layers(folder, layers)
    if layers is not None and described is not None:
        known = file_hash(Path(layers.base.filename).parent, "values.npy")  # type: ignore[attr-defined]
        arrays = layer_arrays(layers)
        write_arrays(folder, key, {"values.npy": known}, described, stationary=stationary, **arrays)
        return
    parts = (part for some in ([array_header(new.shape, new.dtype)], written(new)) for part in some)
    joined = write_hashed(folder / "values.npy", parts)
    write_arrays(folder, key, {"values.npy": joined}, stationary=stationary)


def all_changes(old: States, job: Job, columns: object) -> bool:
    """Say whether no row can be taken over: other powers of two with float16, or rotated features."""
    scaling = getattr(columns, "scaling", None)
    rotated = scaling is not None and scaling.directions is not None
    return rotated or not np.array_equal(old.factors, job.columns.factors)


def recomputed(old: States, job: Job, moved: Moved, *, directed: bool, room: int | None = None) -> Layers | None:
    """Compute every row again that the change reaches, hop by hop; None where propagating all of it costs less.

    A hop of which few rows are wanted gathers their neighbours, some rows at a time; one with more entries than there
    are nodes reads all of y^(l−1) at once, if `room` bytes are enough, and sums the wanted rows of the graph as it is.
    """
    adjacency, spec = job.adjacency, job.spec
    before = None if moved.number is None else np.flatnonzero(moved.number >= 0)
    patches = Layers(old.values, adjacency.nodes, [], [], before)
    reach = partial(reached, adjacency, directed=directed)
    counts, loops = np.diff(adjacency.indptr), spec.normalization.self_loops
    first = np.union1d(moved.rows, moved.features)
    keep_changed(patches, 0, first, job.columns[first, :].astype(spec.storage))
    if too_many(patches.rows[0], moved.rows, reach, counts, job, room):
        return None
    for hop in range(1, spec.hops + 1):
        last = patches.rows[-1]
        rows = marked(adjacency.nodes, moved.rows, reach(last), last if loops else last[:0])
        if counts[rows].sum() > adjacency.nodes and (room is None or 16 * adjacency.nodes * job.width < room):
            one_hop = Propagation(1, Normalization(0.0, loops), rows, keep="last")
            parts = [LocalEngine().propagate(adjacency, patches.whole_hop(hop - 1), one_hop).values[:, 0]]
        else:
            take = partial(patches.hop, hop=hop - 1)
            parts = [next_rows(adjacency, some, take, loops=loops) for some in portions(rows, counts, job)]
        values = np.concatenate([np.empty((0, job.width), np.float32), *parts]).astype(spec.storage)
        keep_changed(patches, hop, rows, values)
        log.info("hop %d: %d rows computed again, %d have other bits", hop, len(rows), len(patches.rows[-1]))
    return patches


def too_many(
    changed: Array, own: Array, reach: Callable[[Array], Array], counts: Array, job: Job, room: int | None
) -> bool:
    """Say whether the rows that a change of y^(0) and of A can reach have more than MOST of the entries of all hops.

    Or whether they alone take a quarter of `room`: they are held until they are written.
    """
    loops, hops = job.spec.normalization.self_loops, job.spec.hops
    rows, work, held, whole = changed, 0.0, 0, hops * float(counts.sum() + 4 * len(counts))
    for _ in range(hops):
        rows = marked(len(counts), own, reach(rows), rows if loops else own)
        work, held = work + float(counts[rows].sum() + 4 * len(rows)), held + 4 * job.width * len(rows)
        if work > MOST * whole or (room is not None and held > room // 4):
            log.info("The change reaches most rows: all of them are propagated again.")
            return True
    return False


def keep_changed(patches: Layers, hop: int, rows: Array, values: Array) -> None:
    """Take rows into the patches whose bits are others than before; those of added nodes always."""
    kept = patches.base.shape[0] if patches.before is None else len(patches.before)
    differs = rows >= kept
    known = np.flatnonzero(~differs)
    for begin, end in ranges(len(known), rows_at_once(8 * values.shape[1])):
        some = known[begin:end]
        ids = rows[some] if patches.before is None else patches.before[rows[some]]
        before = np.ascontiguousarray(patches.base[ids, hop])
        differs[some] = (before.view(np.uint8) != np.ascontiguousarray(values[some]).view(np.uint8)).any(axis=1)
    patches.rows.append(rows[differs])
    patches.values.append(values[differs])


def next_rows(adjacency: Adjacency, rows: Array, take: Callable[[Array], Array], *, loops: bool) -> Array:
    """Return D^(−1) A y of some rows, ascending, alone: (n, F) float32, with the bits of a hop of the whole graph.

    `take(ids)` gives y of nodes, (m, F).
    """
    starts, columns, weights = some_rows(adjacency, rows)
    ids = marked(adjacency.nodes, columns, rows)
    place = np.empty(adjacency.nodes, np.int32 if adjacency.nodes < 2**31 else np.int64)
    place[ids] = np.arange(len(ids))
    counts, at = np.zeros(len(ids), np.int64), place[rows]
    counts[at] = np.diff(starts)
    near = Adjacency(np.concatenate([[0], np.cumsum(counts)]), place[columns], weights)
    values = np.ascontiguousarray(take(ids), dtype=np.float32)
    found = LocalEngine().propagate(near, values, Propagation(1, Normalization(0.0, loops), at, keep="last"))
    return found.values[:, 0]


def portions(rows: Array, counts: Array, job: Job) -> Iterator[Array]:
    """Cut rows into parts whose neighbours take so many bytes at most."""
    most = max(1, BYTES_AT_ONCE // (4 * job.width))
    part = np.cumsum(counts[rows] + 1) // most
    yield from (some for some in np.split(rows, np.flatnonzero(np.diff(part)) + 1) if len(some))


def written(values: Layers) -> Iterator[memoryview]:
    """Yield the bytes of the new states, (N', K+1, F), some rows at a time."""
    nodes, hops, width = values.shape
    for first, last in ranges(nodes, rows_at_once(8 * width * hops)):
        yield values[first:last].reshape(-1).view(np.uint8).data
