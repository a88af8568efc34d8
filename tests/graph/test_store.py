import json

import numpy as np
import pytest

from gamlp.errors import FormatError, MissingFileError, ShapeError, StorageError
from gamlp.graph import store
from gamlp.graph.graph import Adjacency, Graph
from gamlp.graph.splits import Split, SplitRule
from gamlp.graph.store import load_graph, save_graph
from gamlp.storage.files import read_json, write_json


def ids(*values):
    return np.array(values, dtype=np.int64)


def small(**changes) -> Graph:
    values = {
        "adjacency": Adjacency(ids(0, 1, 3, 4, 4), np.array([1, 0, 2, 1], dtype=np.int32)),
        "features": np.arange(8, dtype=np.float32).reshape(4, 2),
        "labels": ids(0, 1, 1, -1),
        "classes": ("käse", "wein"),
        "split": Split(ids(0, 1), ids(2), ids(3)),
        "names": np.array(["ann", "żółw", "", "dan"]),
        "name": "tiny",
        "feature_names": ("α", "beta"),
    }
    return Graph(**{**values, **changes})


@pytest.fixture
def folder(tmp_path):
    save_graph(small(), tmp_path / "g")
    return tmp_path / "g"


def test_each_thing_has_a_fingerprint_of_its_own():
    before = small()
    changed = {
        "adjacency": Adjacency(ids(0, 1, 2, 2, 2), np.array([1, 0], dtype=np.int32)),
        "features": before.features + 1,
        "feature_names": ("beta", "α"),
        "names": np.array(["ann", "żółw", "", "Dan"]),
        "labels": ids(0, 1, 0, -1),
        "classes": ("käse", "bier"),
        "split": Split(ids(0, 2), ids(1), ids(3)),
    }
    for key, value in changed.items():
        other = small(**{key: value}).fingerprints
        assert [name for name in other if other[name] != before.fingerprints[name]] == [
            "ids" if key == "names" else key
        ]
    assert small(split=SplitRule(1, 1)).fingerprints["split"] != small(split=SplitRule(2, 1)).fingerprints["split"]
    assert small(names=None).fingerprints["ids"] != before.fingerprints["ids"]


def test_a_directory_of_0_1_0_has_no_feature_names(folder):
    contents = read_json(folder / "graph.json")
    del contents["feature_names"]
    write_json(folder / "graph.json", contents)
    assert load_graph(folder).feature_names is None
    write_json(folder / "graph.json", {**contents, "feature_names": "ab"})
    with pytest.raises(FormatError, match="lacks feature_names"):
        load_graph(folder)
    write_json(folder / "graph.json", {**contents, "feature_names": ["a"]})
    with pytest.raises(ShapeError, match="1 names for 2 features"):
        load_graph(folder)


def test_what_goes_in_comes_out(folder):
    graph, before = load_graph(folder), small()
    assert graph.fingerprint == before.fingerprint
    assert graph.fingerprints == before.fingerprints
    assert graph.feature_names == ("α", "beta")
    assert graph.labels.tolist() == [0, 1, 1, -1]
    assert graph.classes == ("käse", "wein")
    assert graph.name == "tiny"
    assert graph.names is not None
    assert graph.names.tolist() == ["ann", "żółw", "", "dan"]
    assert isinstance(graph.split, Split)
    assert [part.tolist() for part in (graph.split.train, graph.split.valid, graph.split.test)] == [[0, 1], [2], [3]]
    assert isinstance(graph.features, np.memmap)
    assert isinstance(graph.adjacency.indices, np.memmap)


def test_the_optional_parts(tmp_path):
    weighted = Adjacency(ids(0, 1, 3, 4, 4), np.array([1, 0, 2, 1], dtype=np.int32), np.array([1, 1, 2, 2], np.float32))
    save_graph(small(adjacency=weighted, split=SplitRule(20, 30), names=ids(9, 8, 7, 6)), tmp_path / "g")
    graph = load_graph(tmp_path / "g")
    assert graph.adjacency.weights is not None
    assert graph.adjacency.weights.tolist() == [1, 1, 2, 2]
    assert graph.split == SplitRule(20, 30)
    assert graph.names is not None
    assert graph.names.tolist() == [9, 8, 7, 6]


def test_a_graph_without_edges(tmp_path):
    save_graph(small(adjacency=Adjacency(ids(0, 0, 0, 0, 0), np.empty(0, dtype=np.int32))), tmp_path / "g")
    assert load_graph(tmp_path / "g").adjacency.entries == 0


def test_any_tool_can_map_the_arrays(folder):
    assert np.load(folder / "features.npy", allow_pickle=False).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert json.loads((folder / "graph.json").read_text())["arrays"]["indices"]["dtype"] == "<i4"


PARTS = ["indptr", "indices", "features", "labels", "names", "train", "valid", "test"]


@pytest.mark.parametrize("part", PARTS)
def test_truncated_and_missing_files_are_named(folder, part):
    path = folder / f"{part}.npy"
    path.write_bytes(path.read_bytes()[:-1])
    for verify in (True, False):
        with pytest.raises(FormatError, match=rf"{part}\.npy"):
            load_graph(folder, verify=verify)
    path.unlink()
    with pytest.raises(FormatError, match=rf"{part}\.npy is not there"):
        load_graph(folder)


@pytest.mark.parametrize("part", PARTS)
def test_changed_values_are_noticed(folder, part):
    path = folder / f"{part}.npy"
    raw = bytearray(path.read_bytes())
    raw[-8] ^= 1
    path.write_bytes(raw)
    with pytest.raises(StorageError, match=rf"{part}\.npy has changed"):
        load_graph(folder)


def test_unverified_adjacency_still_cannot_crash_a_kernel(folder):
    np.save(folder / "indices.npy", np.array([1, 0, 99, 1], dtype=np.int32))
    with pytest.raises(ValueError, match="names node 99"):
        load_graph(folder, verify=False)


def test_swapped_files(folder):
    (folder / "train.npy").rename(folder / "x.npy")
    (folder / "labels.npy").rename(folder / "train.npy")
    (folder / "x.npy").rename(folder / "labels.npy")
    with pytest.raises(FormatError, match=r"has the shape \[2\], graph.json says \[4\]"):
        load_graph(folder)


def test_damaged_header(folder):
    raw = (folder / "labels.npy").read_bytes()
    (folder / "labels.npy").write_bytes(raw.replace(b"{'descr'", b"{{descr'"))
    with pytest.raises(FormatError, match=r"labels\.npy is not a complete .* header is damaged"):
        load_graph(folder)


def test_other_dtype(folder):
    np.save(folder / "features.npy", np.arange(8, dtype=np.int32).reshape(4, 2))
    with pytest.raises(FormatError, match=r"features\.npy has the dtype <i4, graph.json says <f4"):
        load_graph(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "format version 99"),
        ({"format": "other"}, "does not describe a graph"),
        ({"arrays": None}, "lacks arrays"),
        ({"arrays": {}}, "lacks indptr, indices, features, labels, train"),
        ({"classes": 3}, "lacks classes"),
        ({"split_rule": 3}, r"lacks split_rule\.train, split_rule\.valid"),
        ({"split_rule": {"train": 1, "valid": "some"}}, r"lacks split_rule\.valid"),
    ],
)
def test_broken_contents(folder, change, message):
    write_json(folder / "graph.json", {**read_json(folder / "graph.json"), **change})
    with pytest.raises(FormatError, match=message):
        load_graph(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"'])
def test_unreadable_contents(folder, text):
    (folder / "graph.json").write_text(text)
    with pytest.raises(FormatError, match=r"graph\.json"):
        load_graph(folder)


def test_missing_folder(tmp_path):
    with pytest.raises(MissingFileError, match="nowhere"):
        load_graph(tmp_path / "nowhere")


def test_nothing_else_is_ever_overwritten(tmp_path, folder):
    with pytest.raises(StorageError, match="already holds a graph"):
        save_graph(small(), folder)
    other = small(name="other")
    save_graph(other, folder, overwrite=True)
    assert load_graph(folder).name == "other"
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("three years of work")
    with pytest.raises(StorageError, match="not a graph directory"):
        save_graph(small(), mine, overwrite=True)
    assert (mine / "thesis.txt").read_text() == "three years of work"


def test_a_graph_can_replace_the_one_it_was_mapped_from(folder):
    save_graph(load_graph(folder).with_labels(ids(1, 0, 1, -1)), folder, overwrite=True)
    assert load_graph(folder).labels.tolist() == [1, 0, 1, -1]


def test_a_full_disk_leaves_the_old_graph(folder, monkeypatch):
    def full(path, array):
        if path.name == "labels.npy":
            raise OSError(28, "No space left on device")
        np.save(path.parent.mkdir(exist_ok=True) or path, array)

    monkeypatch.setattr(store, "write_array", full)
    with pytest.raises(StorageError, match="No space left"):
        save_graph(small(name="other"), folder, overwrite=True)
    assert load_graph(folder).name == "tiny"
    assert [path.name for path in folder.parent.iterdir()] == ["g"]  # nothing is left beside it


def test_a_kill_in_between_leaves_no_graph_in_place(tmp_path, monkeypatch):
    def killed(path, content):
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "write_json", killed)
    with pytest.raises(KeyboardInterrupt):
        save_graph(small(), tmp_path / "g")
    assert not (tmp_path / "g").exists()
