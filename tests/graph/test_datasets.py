import subprocess
import sys

import numpy as np
import pytest

from gamlp.errors import FormatError, InputError, MissingFileError, SettingsError
from gamlp.graph.graph import Adjacency, Graph
from gamlp.graph.readers import debian, planetoid
from gamlp.graph.readers.datasets import DATASETS, describe_datasets, load_dataset, read_graph
from gamlp.graph.store import save_graph


def save_photo(root):
    """Two nodes of two classes, joined by an edge, in the layout of Amazon Photo."""
    (root / "Photo/raw").mkdir(parents=True)
    content = {"labels": np.array([0, 1])}
    for prefix, ends in (("adj", [1]), ("attr", [0])):
        content |= {f"{prefix}_data": np.ones(1, np.float32), f"{prefix}_indices": np.array(ends)}
        content |= {f"{prefix}_indptr": np.array([0, 1, 1]), f"{prefix}_shape": np.array([2, 2])}
    np.savez(root / "Photo/raw/amazon_electronics_photo.npz", **content)


def test_a_known_name_below_a_root(tmp_path):
    save_photo(tmp_path)
    for name in ("photo", "Photo", "photo-lcc"):
        graph = read_graph([name], root=tmp_path)
        assert graph.name == name.lower()
        assert graph.adjacency.entries == 2


@pytest.mark.parametrize("name", [name for name, dataset in DATASETS.items() if dataset.folders])
def test_every_data_set_says_which_of_its_files_are_missing(tmp_path, name):
    with pytest.raises(MissingFileError, match=f"{name} is not complete below") as told:
        load_dataset(name, tmp_path)
    assert all(file in str(told.value) for file in min(DATASETS[name].files, key=len))


def test_published_sizes_are_listed_without_loading(tmp_path):
    save_photo(tmp_path)
    listed = {info.name: info for info in describe_datasets(tmp_path)}
    cora = listed["cora"]
    assert (cora.nodes, cora.features, cora.classes) == (2708, 1433, 7)
    assert (cora.train, cora.valid, cora.test) == (140, 500, 1000)
    assert not cora.on_disk
    assert listed["photo"].on_disk
    assert not listed["photo"].built_in
    assert listed["debian"].built_in
    assert listed["debian"].on_disk
    products = listed["ogbn-products"]  # its three sets are all of its nodes
    assert products.train + products.valid + products.test == products.nodes == 2_449_029
    assert listed["photo"].train == 8 * 20
    assert listed["ogbn-arxiv"].place == "ogbn_arxiv"


def test_the_list_of_debian_is_true(monkeypatch):
    def blank(stored):  # the words take seconds, and only their number matters here
        return np.zeros((len(stored["labels"]), debian.DIMENSIONS), dtype=np.float32)

    monkeypatch.setattr(debian, "describe", blank)
    graph, listed = load_dataset("debian"), DATASETS["debian"]
    assert (graph.nodes, graph.adjacency.entries) == (listed.nodes, 2 * listed.edges)
    assert (graph.features.shape[1], len(graph.classes)) == (listed.features, listed.classes)
    split = graph.split_for(0)
    assert (len(split.train), len(split.valid), len(split.test)) == listed.split


def test_missing_files_are_named_with_their_place(tmp_path):
    with pytest.raises(MissingFileError, match=r"8 of its files are missing.\n.*Cora/raw/ind\.cora\.x, .*test\.index"):
        load_dataset("cora", tmp_path)
    (tmp_path / "Cora/raw").mkdir(parents=True)
    for name in planetoid.files("cora")[1:]:
        (tmp_path / "Cora/raw" / name).touch()
    with pytest.raises(MissingFileError, match=r"1 of its files are missing.\n.*: Cora/raw/ind\.cora\.x$"):
        load_dataset("cora", tmp_path)


def test_both_spellings_of_a_folder(tmp_path):
    dataset = DATASETS["ogbn-products"]
    for folder in ("ogbn-products", "ogbn_products"):
        for file in dataset.files[0]:
            (tmp_path / folder / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / file).touch()
        assert dataset.find(tmp_path) == tmp_path / folder
    assert "split/sales_ranking/train.csv.gz" in dataset.files[0]


def test_a_graph_directory(tmp_path):
    adjacency = Adjacency(np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32))
    graph = Graph(adjacency, np.eye(2, dtype=np.float32), np.array([0, 1]), ("a", "b"), name="mine")
    save_graph(graph, tmp_path / "mine")
    assert read_graph(tmp_path / "mine").name == "mine"
    with pytest.raises(SettingsError, match="label was given"):
        read_graph([tmp_path / "mine"], label="kind")
    assert read_graph([str(tmp_path / "mine")], label=None, directed=False).nodes == 2  # options left alone


def test_table_files(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n0,1\n")
    (tmp_path / "n.csv").write_text("kind,x\na,1\nb,2\n")
    graph = read_graph([tmp_path / "e.csv", str(tmp_path / "n.csv")], label="kind", directed=True)
    assert graph.classes == ("a", "b")
    assert graph.adjacency.entries == 1


def test_misspelt_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        MissingFileError, match=r"no data set, folder or file 'ogbn-product'.\nDid you mean 'ogbn-products'"
    ):
        read_graph("ogbn-product")
    with pytest.raises(MissingFileError, match="Did you mean 'pubmed'"):
        load_dataset("pubmd")
    with pytest.raises(MissingFileError, match=r"nowhere\.csv"):
        read_graph(["nowhere.csv", "n.csv"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match=r"folder without graph\.json"):
        read_graph("empty")
    for what in ([], ["a", "b", "c"]):
        with pytest.raises(InputError, match=f"{len(what)} graphs or files were named"):
            read_graph(what)


def test_importing_the_room_loads_nothing_heavy():
    code = (
        "import sys, gamlp.graph, gamlp.graph.graph, gamlp.graph.splits;"
        "heavy = {'scipy', 'pyarrow', 'torch', 'numba', 'sklearn'} & set(sys.modules); assert not heavy, heavy;"
        "from gamlp.graph import *"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
