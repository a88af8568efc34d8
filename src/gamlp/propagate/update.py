"""A new version of a graph directory, and of what a cache keeps of it: `gamlp update`.

    1  the changed graph is made in memory (`graph.build.changes`) and written beside its place; files that did not
       change are linked
    2  the states of its features, for every propagation that the cache keeps of the old one, are written to the cache:
       rows that differ, beside a link to the old ones (`layers`)
    3  the graph directory takes its place in one step

Killed before 3, the old version is in place, and the new states wait in the cache under a key that only the new graph
asks for; after 3 the new one is. The same update, run again, finds what was finished. One process at a time updates a
directory, from before it is read.

Of files that nobody wrote to since their hashes were written down (graph.json, hops.json) the hashes are taken from
there: only what changes is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gamlp.errors import StorageError
from gamlp.graph.build.changes import Changes, apply_changes
from gamlp.graph.graph import Adjacency, Graph
from gamlp.graph.store import (
    check_place,
    is_graph_folder,
    load_graph,
    parts,
    read_contents,
    write_by_columns,
    write_contents,
)
from gamlp.propagate.changed_states import changed_states
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.states import states_in
from gamlp.propagate.stationary import is_symmetric
from gamlp.storage.directories import making
from gamlp.storage.files import Array, is_whole_file, linked, read_array, remember, write_hashed_array
from gamlp.storage.locks import locked
from gamlp.storage.threads import ranges

ROWS_AT_ONCE = 2**16


def update_folder(
    folder: Path, read: Callable[[Graph], Changes], engine: Engine, *, directed: bool | None = None, out: Path | None
) -> dict[str, Any]:
    """Make the next version of a graph directory of the changes that `read` gives for it: see `update_graph`."""
    place = Path(out or folder)
    check_graph_folder(folder)
    with locked(place):
        started = time.perf_counter()
        graph = load_graph(folder, newer=True)
        changes = read(graph)
        one_way = not is_symmetric(graph.adjacency) if directed is None else directed
        before = {"read": time.perf_counter() - started}
        facts = update_graph(folder, graph, changes, engine, directed=one_way, out=out)
    return {**facts, "seconds": before | facts["seconds"]}


def update_graph(
    folder: Path, graph: Graph, changes: Changes, engine: Engine, *, directed: bool, out: Path | None = None
) -> dict[str, Any]:
    """Make the next version of a graph directory, in its place or in `out`, and return what was done.

    `graph` is what `load_graph(folder)` gives; the states are those in the engine's cache. The caller holds the lock.
    """
    place = Path(out or folder)
    if place.resolve() != Path(folder).resolve():
        check_place(place, overwrite=False)
    clock = [time.perf_counter()]
    new, moved = apply_changes(graph, changes, directed=directed)
    clock.append(time.perf_counter())
    with making(place) as made:
        new = written(Path(folder), graph, new, made)
        clock.append(time.perf_counter())
        touched = [] if engine.cache is None else carried(engine, graph, new, moved, directed=directed)
    clock.append(time.perf_counter())
    names = ("graph", "write", "states")
    times = {name: end - begin for name, begin, end in zip(names, clock, clock[1:], strict=False)}
    return {
        "out": str(place), "dataset": new.name, "nodes": new.nodes, "entries": new.adjacency.entries,
        "added": moved.added, "removed": len(changes.removed), "rows_changed": len(moved.rows),
        "states": len(touched), "rows_touched": touched, "seconds": times,
    }  # fmt: skip


def carried(engine: Engine, graph: Graph, new: Graph, moved: Any, *, directed: bool) -> list[int]:
    """Make states of the new graph of all that the cache keeps of the old one; return how many rows of each differ."""
    assert engine.cache is not None
    touched = []
    for old in states_in(engine.cache, graph.adjacency, graph.features, engine.key_device):
        scaling = getattr(old.columns, "scaling", None)
        columns = new.features if scaling is None else scaling.seen(new.features)
        touched.append(changed_states(engine, old, new.adjacency, columns, moved, directed=directed)[1])
    return touched


def written(folder: Path, graph: Graph, new: Graph, made: Path) -> Graph:
    """Write the new graph into `made`, and return it as it lies there; what is the same as in `folder` is linked."""
    given = read_contents(folder)["arrays"] if is_graph_folder(folder) else {}
    same = [key for key in given if raw(new).get(key) is raw(graph).get(key)]
    known = {key: given[key]["checksum"] for key in same if linked(folder / f"{key}.npy", made / f"{key}.npy")}
    for key, array in parts(new, without=known).items():
        path = made / f"{key}.npy"
        if key == "features" and is_whole_file(graph.features) and not graph.features.flags.c_contiguous:
            write_by_columns(path, (array[first:last] for first, last in ranges(len(array), ROWS_AT_ONCE)), new.nodes)
        else:
            known[key] = write_hashed_array(path, array)
    about: dict[str, Any] = {"name": new.name, "classes": new.classes, "split": new.split, "encoded": new.encoded}
    contents = write_contents(made, **about, feature_names=new.feature_names, known=known)
    mapped = {key: mapped_part(made, key, contents) for key in ("indptr", "indices", "weights", "features")}
    adjacency = Adjacency(mapped["indptr"], mapped["indices"], mapped["weights"])  # type: ignore[arg-type]
    return replace(new, adjacency=adjacency, features=mapped["features"])  # type: ignore[arg-type]


def mapped_part(folder: Path, key: str, contents: dict[str, Any]) -> Array | None:
    """Map an array that was just written, with its hash."""
    if key not in contents["arrays"]:
        return None
    array = read_array(folder / f"{key}.npy", memory_map=True)
    remember(array, contents["arrays"][key]["checksum"])
    return array


def raw(graph: Graph) -> dict[str, Array | None]:
    """Return the arrays of a graph by the names of their files, as they are in memory."""
    own = {"features": graph.features, "labels": graph.labels, "names": graph.names, **graph.split.sets}
    return own | {key: getattr(graph.adjacency, key) for key in ("indptr", "indices", "weights")}


def check_graph_folder(folder: Path) -> None:
    """Refuse what is no graph directory."""
    if not is_graph_folder(folder):
        raise StorageError(
            f"{folder} is not a graph directory: it has no graph.json.\nMake one: gamlp import … --out {folder}"
        )
