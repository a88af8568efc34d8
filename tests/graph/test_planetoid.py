import os
import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from gamlp.errors import FormatError, ShapeError
from gamlp.graph.readers import planetoid
from gamlp.graph.readers.pickles import read_pickle
from gamlp.graph.readers.planetoid import read_planetoid
from gamlp.graph.splits import Split

EYE = np.eye(3, dtype=np.int32)


def save(path: Path, content: object) -> None:
    """Write as the old files are: protocol 2, with the module names of their time."""
    raw = pickle.dumps(content, protocol=2)
    raw = raw.replace(b"numpy._core.multiarray", b"numpy.core.multiarray").replace(
        b"scipy.sparse._csr", b"scipy.sparse.csr"
    )
    path.write_bytes(raw)


@pytest.fixture
def raw(tmp_path):
    """Seven nodes: 0, 1 train, 2, 3 valid, 6 and 4 test (in this order), 5 in the gap."""
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    neighbours = defaultdict(list, {0: [1, 1, 2], 1: [0], 2: [2, 0], 6: [0], 4: [3]})
    content = {
        "x": csr_matrix(rows[:2]),
        "allx": csr_matrix(rows),
        "tx": csr_matrix(np.array([[60, 61], [40, 41]], dtype=np.float32)),
        "y": EYE[[2, 0]],
        "ally": EYE[[2, 0, 1, 1]],
        "ty": EYE[[1, 2]],
        "graph": neighbours,
    }
    for part, value in content.items():
        save(tmp_path / f"ind.tiny.{part}", value)
    (tmp_path / "ind.tiny.test.index").write_text("6\n4\n")
    return tmp_path


def test_test_rows_go_to_their_ids_and_gaps_stay_empty(raw):
    graph = read_planetoid(raw, "tiny")
    assert graph.features.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [40, 41], [0, 0], [60, 61]]
    assert graph.labels.tolist() == [2, 0, 1, 1, 2, -1, 1]
    assert graph.classes == ("0", "1", "2")
    assert isinstance(graph.split, Split)
    assert [part.tolist() for part in (graph.split.train, graph.split.valid, graph.split.test)] == [
        [0, 1],
        [2, 3],
        [4, 6],
    ]


def test_the_supervised_split_trains_on_all_before_the_last_valid_nodes(raw, monkeypatch):
    monkeypatch.setattr(planetoid, "VALID", 1)
    graph = read_planetoid(raw, "tiny", supervised=True)
    assert graph.name == "tiny-supervised"
    assert isinstance(graph.split, Split)
    assert [part.tolist() for part in (graph.split.train, graph.split.valid, graph.split.test)] == [
        [0, 1, 2],
        [3],
        [4, 6],
    ]


def test_edges_go_both_ways_once_without_loops(raw):
    adjacency = read_planetoid(raw, "tiny").adjacency
    assert adjacency.indptr.tolist() == [0, 3, 4, 5, 6, 7, 7, 8]
    assert adjacency.indices.tolist() == [1, 2, 6, 0, 0, 4, 3, 0]


def test_files_of_two_data_sets(raw):
    (raw / "ind.tiny.test.index").write_text("6\n4\n5\n")
    with pytest.raises(ShapeError, match="names 3 nodes from 4 on; there are 2 test rows after 4 others"):
        read_planetoid(raw, "tiny")


@pytest.mark.parametrize("text", ["", "4\nsix\n"])
def test_broken_index(raw, text):
    (raw / "ind.tiny.test.index").write_text(text)
    with pytest.raises(FormatError, match=r"ind\.tiny\.test\.index"):
        read_planetoid(raw, "tiny")


class Hostile:
    """Runs a command when unpickled the usual way."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def test_hostile_pickle_runs_nothing(raw, tmp_path):
    witness = tmp_path / "witness"
    payload = pickle.dumps(Hostile(f"touch {witness}"), protocol=2)
    pickle.loads(payload)
    assert witness.exists()  # the payload works
    witness.unlink()
    (raw / "ind.tiny.graph").write_bytes(payload)
    with pytest.raises(FormatError, match=r"hostile or foreign pickle.*posix\.system"):
        read_planetoid(raw, "tiny")
    assert not witness.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",  # a function by name
        b"c__builtin__\ngetattr\n(c__builtin__\nlist\nS'__class__'\ntR.",  # the way around by attributes
        pickle.dumps(np.array([None, 1], dtype=object), protocol=2),  # objects inside an array
        pickle.dumps([1, 2], protocol=2),  # no array, matrix or dictionary
        pickle.dumps(np.arange(50), protocol=2)[:-40],  # cut short
        pickle.dumps({1: [2]}, protocol=2)[:-3],
        b"",
        b"not a pickle",
    ],
)
def test_foreign_pickles_are_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(FormatError, match="hostile or foreign"):
        read_pickle(tmp_path / "file")


def test_matrix_that_points_outside_is_refused(tmp_path):
    matrix = csr_matrix(np.eye(3, dtype=np.float32))
    matrix.indices[1] = 99
    save(tmp_path / "file", matrix)
    with pytest.raises(FormatError):
        read_pickle(tmp_path / "file")


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.arange(4, dtype=">i4")]
)
def test_arrays_come_back_as_they_were(tmp_path, array):
    save(tmp_path / "file", array)
    assert np.array_equal(read_pickle(tmp_path / "file"), array)
