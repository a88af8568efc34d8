import gzip

import numpy as np
import pytest

from gamlp.errors import FormatError, IdError, ShapeError
from gamlp.graph.build import import_directory
from gamlp.graph.build.import_directory import import_files
from gamlp.graph.readers.datasets import find_dataset
from gamlp.graph.readers.ogb import class_numbers, open_ogb, read_ogb
from gamlp.graph.readers.source import GraphSource
from gamlp.graph.splits import Split
from gamlp.graph.store import load_graph

FILES = {
    "raw/edge.csv.gz": "0,1\n1,2\n2,1\n",
    "raw/node-feat.csv.gz": "0.5,1\n-2,3\n4,5e-1\n6,7\n",
    "raw/node-label.csv.gz": "0\n2\n1\n2\n",
    "raw/num-node-list.csv.gz": "4\n",
    "raw/num-edge-list.csv.gz": "3\n",
    "split/time/train.csv.gz": "0\n1\n",
    "split/time/valid.csv.gz": "2\n",
    "split/time/test.csv.gz": "3\n",
}


def put(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        put(tmp_path, name, text)
    return tmp_path


def check(graph):
    assert graph.adjacency.indptr.tolist() == [0, 1, 3, 4, 4]
    assert graph.adjacency.indices.tolist() == [1, 0, 2, 1]
    assert graph.features.dtype == np.float32
    assert graph.features.tolist() == [[0.5, 1], [-2, 3], [4, 0.5], [6, 7]]
    assert graph.classes == ("0", "1", "2")
    assert isinstance(graph.split, Split)
    assert [part.tolist() for part in (graph.split.train, graph.split.valid, graph.split.test)] == [[0, 1], [2], [3]]


@pytest.mark.parametrize("binary", [False, True])
def test_import_within_memory(folder, tmp_path, binary):
    if binary:
        binary_form(folder)
    facts = import_files(tmp_path / "g", open_ogb(folder, "ogbn-x", split="time"), memory=2**20)
    assert (facts["nodes"], facts["entries"], facts["features"], facts["labelled"]) == (4, 4, 2, 3 + (not binary))
    check(load_graph(tmp_path / "g"))


def test_text_form(folder):
    graph = read_ogb(folder, "ogbn-arxiv", split="time")
    check(graph)
    assert graph.labels.tolist() == [0, 2, 1, 2]
    assert graph.name == "ogbn-arxiv"


def binary_form(folder):
    for name in FILES:
        if name.startswith("raw"):
            (folder / name).unlink()
    np.savez(
        folder / "raw/data.npz",
        edge_index=np.array([[0, 1, 2], [1, 2, 1]]),
        node_feat=np.array([[0.5, 1], [-2, 3], [4, 0.5], [6, 7]], dtype=np.float16),
        num_nodes_list=np.array([4]),
        num_edges_list=np.array([3]),
    )
    np.savez(folder / "raw/node-label.npz", node_label=np.array([[0], [2], [1], [np.nan]], dtype=np.float32))


def test_binary_form_with_unknown_labels(folder):
    binary_form(folder)
    graph = read_ogb(folder, "ogbn-papers100M", split="time")
    check(graph)
    assert graph.labels.tolist() == [0, 2, 1, -1]


def test_rows_cut_off(folder):
    put(folder, "raw/node-feat.csv.gz", "0.5,1\n-2,3\n4,5e-1\n")
    with pytest.raises(ShapeError, match="3 rows of features for 4 nodes"):
        read_ogb(folder, "ogbn-arxiv", split="time")


@pytest.mark.parametrize("name", ["raw/edge.csv.gz", "raw/node-label.csv.gz", "split/time/test.csv.gz"])
def test_truncated_gzip_is_named(folder, name):
    put(folder, name, "\n".join(str(number) for number in np.random.default_rng(0).integers(0, 9, 5000)))
    raw = (folder / name).read_bytes()
    (folder / name).write_bytes(raw[: len(raw) // 2])
    with pytest.raises(FormatError, match=name.split("/")[-1]):
        read_ogb(folder, "ogbn-arxiv", split="time")


def test_words_among_numbers(folder):
    put(folder, "raw/edge.csv.gz", "0,1\n1,two\n")
    with pytest.raises(IdError, match=r"edge\.csv\.gz, line 2, names node 'two'"):
        read_ogb(folder, "ogbn-arxiv", split="time")
    put(folder, "raw/edge.csv.gz", "0,1\n1,\n")
    with pytest.raises(IdError, match=r"edge\.csv\.gz, line 2: an end of the edge is empty"):
        read_ogb(folder, "ogbn-arxiv", split="time")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("raw/node-feat.csv.gz", "1,1\n1,1\n1,1\n1,1\n"),
        ("raw/node-label.csv.gz", "0\n1\n2\n2\n"),
        ("split/time/valid.csv.gz", "3\n"),
    ],
)
def test_a_stopped_import_begins_anew_when_any_file_was_replaced(folder, tmp_path, monkeypatch, name, text):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(import_directory, "build", stop)
        with pytest.raises(KeyboardInterrupt):
            import_files(tmp_path / "g", open_ogb(folder, "ogbn-x", split="time"), memory=2**20)
    put(folder, name, text)
    if name.endswith("valid.csv.gz"):
        put(folder, "split/time/test.csv.gz", "2\n")
    import_files(tmp_path / "g", open_ogb(folder, "ogbn-x", split="time"), memory=2**20)
    assert load_graph(tmp_path / "g").fingerprints == read_ogb(folder, "ogbn-x", split="time").fingerprints


def test_no_label_at_all():
    labels, classes = class_numbers(np.full(3, np.nan))
    assert labels.tolist() == [-1, -1, -1]
    assert classes == ()


def test_a_data_set_that_is_large_for_the_memory_is_imported_beside_its_files(tmp_path):
    """ogbn-papers100M has 57 GB of features, whatever these few bytes are."""
    folder = tmp_path / "ogbn_papers100M"
    for name, text in FILES.items():
        put(folder, name, text)
    source = GraphSource.named(["ogbn-papers100M"], root=tmp_path)
    limited, whole = source.read(memory=2**30), source.read()
    check(limited)
    assert isinstance(limited.features, np.memmap)
    assert not isinstance(whole.features, np.memmap)
    assert dict(limited.fingerprints) == dict(whole.fingerprints)
    assert limited.name == "ogbn-papers100M"
    (folder / "raw" / "edge.csv.gz").write_bytes(b"")  # not looked at again
    check(source.read(memory=2**30))
    assert not find_dataset("cora").is_large(1)  # read as a whole, however little there is
