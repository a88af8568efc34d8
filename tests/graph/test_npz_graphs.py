import os

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from gamlp.errors import FormatError, MissingFileError, NotFiniteError
from gamlp.graph.build.ids import NodeIds
from gamlp.graph.readers import npz_arrays
from gamlp.graph.readers.edges import open_edges
from gamlp.graph.readers.npz_arrays import read_member, read_npz
from gamlp.graph.splits import SplitRule
from gamlp.storage.array_reader import ArrayReader


def parts(**changes):
    adjacency = csr_matrix(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=np.float32))
    features = csr_matrix(np.array([[0, 2], [3, 0], [0.5, 0]], dtype=np.float32))
    content = {"labels": np.array([4, 7, 4])}
    for prefix, matrix in (("adj", adjacency), ("attr", features)):
        for part in ("data", "indices", "indptr"):
            content[f"{prefix}_{part}"] = getattr(matrix, part)
        content[f"{prefix}_shape"] = np.array(matrix.shape)
    return {**content, **changes}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.npz"


def test_features_stay_untouched_and_edges_go_both_ways(path):
    names = np.array({4: "lens", 7: "film"}, dtype=object)  # pickled, as in the published files: must not be read
    np.savez(path, **parts(idx_to_class=names))
    graph = read_npz(path, "photo")
    assert graph.features.tolist() == [[0, 2], [3, 0], [0.5, 0]]
    assert graph.adjacency.indptr.tolist() == [0, 1, 3, 4]
    assert graph.adjacency.indices.tolist() == [1, 0, 2, 1]
    assert graph.adjacency.weights is None
    assert graph.labels.tolist() == [0, 1, 0]
    assert graph.classes == ("4", "7")
    assert graph.split == SplitRule(train=20, valid=30)


def test_the_largest_component_keeps_its_nodes_in_their_order(path):
    adjacency = csr_matrix((np.ones(3), ([5, 1, 0], [1, 4, 3])), shape=(6, 6))  # 1, 4, 5 and 0, 3; 2 is alone
    changes = {f"adj_{part}": getattr(adjacency, part) for part in ("data", "indices", "indptr")}
    features = csr_matrix(np.diag(np.arange(1.0, 7)))
    changes |= {f"attr_{part}": getattr(features, part) for part in ("data", "indices", "indptr")}
    shape = np.array([6, 6])
    np.savez(path, **parts(adj_shape=shape, attr_shape=shape, labels=np.array([0, 1, 0, 0, 0, 1]), **changes))
    graph = read_npz(path, "photo-lcc", connected=True)
    assert graph.features.argmax(axis=1).tolist() == [1, 4, 5]
    assert graph.labels.tolist() == [1, 0, 1]
    assert graph.adjacency.indptr.tolist() == [0, 2, 3, 4]
    assert graph.adjacency.indices.tolist() == [1, 2, 0, 0]


def test_parts_that_are_no_matrix(path):
    np.savez(path, **parts(adj_indices=np.array([1, 2, 9])))
    with pytest.raises(FormatError, match="adj_"):
        read_npz(path, "photo")


def test_missing_part_is_named(path):
    content = parts()
    del content["attr_indptr"]
    np.savez(path, **content)
    with pytest.raises(FormatError, match="no array 'attr_indptr'"):
        read_npz(path, "photo")


def test_infinite_feature(path):
    np.savez(path, **parts(attr_data=np.array([2, np.inf, 1], dtype=np.float32)))
    with pytest.raises(NotFiniteError, match="Feature 0 of node 1 is inf"):
        read_npz(path, "photo")


def test_damaged_and_missing_archives(path):
    with pytest.raises(MissingFileError):
        read_npz(path, "photo")
    np.savez_compressed(path, **parts())
    raw = bytearray(path.read_bytes())
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(FormatError, match=r"graph\.npz"):
        read_npz(path, "photo")


def test_one_flipped_byte(path):
    np.savez(path, values=np.zeros(1000))
    raw = bytearray(path.read_bytes())
    raw[4000] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"graph\.npz.*CRC"):
        read_member(path, "values")


@pytest.mark.parametrize("name", ["x", "xy", "xyz", "values"])  # its length moves the values off their multiples of 8
def test_large_stored_members_are_mapped_where_they_stand(path, monkeypatch, name):
    values = np.asfortranarray(np.arange(1000.0).reshape(10, 100))
    np.savez(path, first=np.arange(3), **{name: values}, last=np.arange(500))
    monkeypatch.setattr(npz_arrays, "MAP_FROM", 100)
    mapped, last = read_member(path, name), read_member(path, "last")
    assert isinstance(mapped, np.memmap)
    assert mapped.flags.f_contiguous
    assert np.array_equal(mapped, values)
    assert np.array_equal(last, np.arange(500))
    block = ArrayReader(mapped).block(2, 5, slice(10, 20))
    assert block.flags.aligned
    assert np.array_equal(block, values[2:5, 10:20].astype(np.float32))
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", ["edges", "of edges", "the edges"])
def test_edges_in_a_mapped_member_are_those_of_the_file(path, monkeypatch, name):
    edges = np.arange(200).reshape(2, 100)
    np.savez(path, **{name: np.arange(50)}, edge_index=edges)
    monkeypatch.setattr(npz_arrays, "MAP_FROM", 100)
    source, target, _ = open_edges(path).between(NodeIds(200), NodeIds(200)).read()
    assert np.array_equal([source, target], edges)


def test_one_flipped_byte_of_a_mapped_member(path, monkeypatch):
    monkeypatch.setattr(npz_arrays, "MAP_FROM", 100)
    np.savez(path, values=np.arange(1000.0))
    assert read_member(path, "values")[999] == 999  # whole: not looked at again until the file changes
    raw, before = bytearray(path.read_bytes()), path.stat().st_mtime_ns
    raw[4000] ^= 1
    path.write_bytes(raw)
    os.utime(path, ns=(before, before + 10**9))  # clocks of files may be slow
    with pytest.raises(FormatError, match=r"graph\.npz.*CRC"):
        read_member(path, "values")


def test_a_mapped_member_that_declares_more_than_the_file_has_is_refused(path, monkeypatch):
    monkeypatch.setattr(npz_arrays, "MAP_FROM", 100)
    np.savez(path, values=np.zeros(1000))
    raw = bytearray(path.read_bytes())
    at = raw.rindex(b"PK\x01\x02")  # the entry in the central directory: its sizes, packed and not, are at 20 and 24
    raw[at + 20 : at + 28] = (2**31).to_bytes(4, "little") * 2
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"declares 2,147,483,648 bytes, 8,\d+ are left"):
        read_member(path, "values")


def test_large_compressed_members_are_unpacked_and_mapped(path, monkeypatch):
    values = np.arange(1000.0).reshape(10, 100)
    np.savez_compressed(path, values=values)
    monkeypatch.setattr(npz_arrays, "UNPACK_FROM", 100)
    mapped = read_member(path, "values")
    assert isinstance(mapped, np.memmap)
    assert np.array_equal(mapped, values)
    unpacked = path.with_name("graph.npz.unpacked") / "values.npy"
    before = unpacked.stat().st_ino
    read_member(path, "values")
    assert unpacked.stat().st_ino == before  # unpacked once
    unpacked.write_bytes(unpacked.read_bytes()[:-8])
    assert np.array_equal(read_member(path, "values"), values)  # and again if it is not whole


def test_a_member_that_declares_more_than_it_can_hold_is_refused(tmp_path):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, labels=np.zeros(100_000))
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\x01\x02")  # the entry in the central directory; its size unpacked is at 24
    content[at + 24 : at + 28] = (2**31).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(FormatError, match="packed ones"):
        read_member(path, "labels")
    assert list(tmp_path.iterdir()) == [path]
