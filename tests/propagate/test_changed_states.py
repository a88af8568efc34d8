"""States that follow a change, on disk: the bytes of a fresh propagation, whatever is stored or scaled."""

from __future__ import annotations

import numpy as np
import pytest

from gamlp.errors import StorageError
from gamlp.graph.build.changes import Changes, EdgeSet, apply_changes
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Graph
from gamlp.graph.store import save_graph
from gamlp.propagate import LocalEngine, Normalization, Propagation
from gamlp.propagate.changed_states import changed_states, recomputed
from gamlp.propagate.scaling import Scaling
from gamlp.propagate.states import PREFIX, keep_states, state_job
from gamlp.propagate.update import update_folder
from gamlp.storage.locks import locked

NONE = np.zeros(0, np.int64)
HUB = 9_000  # entries of node 0: summed in two segments


@pytest.fixture(scope="module")
def graph():
    """A hub and its leaves, and a long chain that it does not reach in three hops."""
    leaves, chain = np.arange(1, HUB + 1), np.arange(HUB + 1, HUB + 4_001)
    source, target = np.concatenate([np.zeros(HUB, np.int64), chain[:-1]]), np.concatenate([leaves, chain[1:]])
    nodes = HUB + 4_001
    features = np.random.default_rng(0).standard_normal((nodes, 6)).astype(np.float32)
    return Graph(adjacency_from_edges(source, target, nodes=nodes), features, np.full(nodes, -1))


def edge(source, target):
    return EdgeSet(np.array([source]), np.array([target]))


CHANGES = {
    "an edge of the chain": Changes(edges_removed=edge(HUB + 100, HUB + 101)),
    "a leaf of the hub less": Changes(edges_removed=edge(0, 17)),
    "the hub and the chain joined": Changes(edges_added=edge(0, HUB + 50)),
    "a node less": Changes(removed=np.array([HUB + 200])),
    "other features": Changes(changed=np.array([HUB + 300]), features=np.full((1, 6), 0.5, np.float32)),
    "a larger feature than any": Changes(changed=np.array([HUB + 300]), features=np.full((1, 6), 1e4, np.float32)),
}


@pytest.mark.parametrize("storage", ["float32", "float16"])
@pytest.mark.parametrize("name", CHANGES)
def test_the_states_are_those_of_a_fresh_propagation(graph, tmp_path, name, storage):
    new, moved = apply_changes(graph, CHANGES[name], directed=False)
    spec = Propagation(3, Normalization(0.5), storage=storage)
    engine, fresh = LocalEngine(cache=tmp_path / "kept"), LocalEngine(cache=tmp_path / "fresh")
    old = keep_states(engine, graph.adjacency, graph.features, spec)
    got, touched = changed_states(engine, old, new.adjacency, new.features, moved, directed=False)
    want = keep_states(fresh, new.adjacency, new.features, spec)
    again = keep_states(engine, new.adjacency, new.features, spec)  # from its files, verified
    assert got.key == again.key == want.key
    rows = np.random.default_rng(0).integers(0, new.nodes, 500)
    assert got.values[:].tobytes() == again.values[:].tobytes() == want.values.tobytes()
    assert again.values[rows].tobytes() == want.values[rows].tobytes()
    assert again.values[rows, 2].tobytes() == want.values[rows, 2].tobytes()
    assert (tmp_path / f"kept/{PREFIX}{want.key}/states.json").read_bytes() == (
        tmp_path / f"fresh/{PREFIX}{want.key}/states.json"
    ).read_bytes()
    if "chain" in name and "hub" not in name:
        assert touched < 20


def test_change_after_change_is_one_layer_over_the_first_file(graph, tmp_path):
    """Each writes what differs; the large file has one more name, and hops are made of both to the last bit."""
    spec, engine, now = Propagation(3, Normalization(0.5)), LocalEngine(cache=tmp_path), graph
    states = keep_states(engine, graph.adjacency, graph.features, spec)
    base = tmp_path / f"{PREFIX}{states.key}" / "values.npy"
    added = Graph(adjacency_from_edges(NONE, NONE, nodes=1), np.ones((1, 6), np.float32), np.array([-1]))
    join = Changes(added=added, edges_added=edge(graph.nodes, HUB + 5))
    for change in (CHANGES["an edge of the chain"], CHANGES["other features"], join):
        now, moved = apply_changes(now, change, directed=False)
        states, _ = changed_states(engine, states, now.adjacency, now.features, moved, directed=False)
        folder = tmp_path / f"{PREFIX}{states.key}"
        assert (folder / "values.npy").samefile(base)
        assert (folder / "changed.npy").stat().st_size < base.stat().st_size / 100
    want = LocalEngine().propagate(now.adjacency, now.features, spec)
    assert states.hops(np.arange(now.nodes)).tobytes() == want.values.tobytes()
    assert engine.propagate(now.adjacency, now.features, spec).values.tobytes() == want.values.tobytes()


def test_where_files_have_one_name_only_the_whole_is_written(graph, tmp_path, monkeypatch):
    spec, engine = Propagation(3, Normalization(0.5)), LocalEngine(cache=tmp_path)
    old = keep_states(engine, graph.adjacency, graph.features, spec)

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("os.link", refuse)
    new, moved = apply_changes(graph, CHANGES["an edge of the chain"], directed=False)
    got, _ = changed_states(engine, old, new.adjacency, new.features, moved, directed=False)
    want = keep_states(LocalEngine(), new.adjacency, new.features, spec)
    assert got.values.tobytes() == want.values.tobytes()
    assert not (tmp_path / f"{PREFIX}{got.key}" / "changed.npy").exists()


def test_a_damaged_layer_is_noticed_and_made_again(graph, tmp_path):
    spec, engine = Propagation(3, Normalization(0.5)), LocalEngine(cache=tmp_path)
    old = keep_states(engine, graph.adjacency, graph.features, spec)
    new, moved = apply_changes(graph, CHANGES["an edge of the chain"], directed=False)
    got, _ = changed_states(engine, old, new.adjacency, new.features, moved, directed=False)
    place = tmp_path / f"{PREFIX}{got.key}" / "changed.npy"
    content = bytearray(place.read_bytes())
    content[-1] ^= 1
    place.write_bytes(content)
    want = keep_states(LocalEngine(), new.adjacency, new.features, spec)
    assert keep_states(engine, new.adjacency, new.features, spec).values[:].tobytes() == want.values.tobytes()


def test_a_file_that_was_written_to_is_verified(graph, tmp_path):
    """Hashes are taken on trust as long as no file is newer than what describes it."""
    save_graph(graph, tmp_path / "graph")
    place = tmp_path / "graph" / "indices.npy"
    content = bytearray(place.read_bytes())
    content[-4] ^= 1
    place.write_bytes(content)
    with pytest.raises(StorageError, match="has changed since it was written"):
        update_folder(tmp_path / "graph", lambda _: CHANGES["a node less"], LocalEngine(), out=None)


def test_rows_that_the_change_cannot_reach_are_not_computed(graph):
    """Removing an edge of a chain: each end's degree changes, and three hops reach three rings on either side."""
    new, moved = apply_changes(graph, CHANGES["an edge of the chain"], directed=False)
    spec = Propagation(3, Normalization(0.5))
    old = keep_states(LocalEngine(), graph.adjacency, graph.features, spec)
    patches = recomputed(old, state_job(new.adjacency, new.features, spec), moved, directed=False)
    assert patches is not None
    ends = [HUB + 100, HUB + 101]
    for hop, rows in enumerate(patches.rows):
        assert set(rows) <= set(range(ends[0] - hop, ends[1] + hop + 1))
    assert patches.touched == 8


@pytest.mark.parametrize(("kind", "components"), [("row", 0), ("unit", 0), ("standard", 0), ("none", 3)])
def test_scaled_features_follow_too(graph, tmp_path, kind, components):
    new, moved = apply_changes(graph, CHANGES["other features"], directed=False)
    scaling, spec = Scaling.fit(kind, graph.features, components=components), Propagation(2)
    engine = LocalEngine(cache=tmp_path)
    old = keep_states(engine, graph.adjacency, scaling.seen(graph.features), spec)
    got, _ = changed_states(engine, old, new.adjacency, scaling.seen(new.features), moved, directed=False)
    want = keep_states(LocalEngine(), new.adjacency, scaling.seen(new.features), spec)
    assert got.values[:].tobytes() == want.values.tobytes()


def test_two_at_a_time_are_refused_and_nothing_changes(graph, tmp_path):
    save_graph(graph, tmp_path / "graph")
    before = (tmp_path / "graph" / "graph.json").read_bytes()

    def read(_):
        raise AssertionError("the graph is read before the lock is there")

    with locked(tmp_path / "graph"), pytest.raises(StorageError, match="Another process works on"):
        update_folder(tmp_path / "graph", read, LocalEngine(), out=None)
    assert (tmp_path / "graph" / "graph.json").read_bytes() == before
