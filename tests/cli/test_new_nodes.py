"""predict --new and explain --new: new nodes alone, against the whole graph; everything else is refused."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv

from conftest import SMALL, run_gamlp, write_files
from gamlp.propagate import attach

SET = [word for one in SMALL for word in ("--set", one)]
NEW = 6  # the last nodes of the graph are the new ones


@pytest.fixture(scope="module")
def place(make_planted, tmp_path_factory):
    """A graph in tables, the same without its last nodes, and these with their edges in tables of their own."""
    folder = tmp_path_factory.mktemp("living")
    graph = make_planted(90)
    files = write_files(graph, folder / "whole")
    edges, nodes = csv.read_csv(files.edges), csv.read_csv(files.nodes)
    new = pa.array([f"node-{at}" for at in range(graph.nodes - NEW, graph.nodes)])
    (folder / "old").mkdir()
    (folder / "new").mkdir()
    is_new = pc.is_in(nodes["id"], new)
    joins = pc.or_(*(pc.is_in(edges[end], new) for end in ("source", "target")))
    for part, kept, ends in (("old", pc.invert(is_new), pc.invert(joins)), ("new", is_new, joins)):
        csv.write_csv(nodes.filter(kept), folder / part / "nodes.csv")
        csv.write_csv(edges.filter(ends), folder / part / "edges.csv")
    csv.write_csv(nodes.filter(is_new).drop_columns(["split"]), folder / "new" / "nodes.csv")
    return folder


def train(place, method, *more):
    out = place / f"run-{method}"
    if not out.exists():
        words = ["train", place / "old" / "edges.csv", place / "old" / "nodes.csv", "--method", method, "--seeds", 1]
        done = run_gamlp(*words, "--out", out, *SET, *more)
        assert done.code == 0, done.err
    return out


def predicted(place, run, *more, name="new.csv"):
    words = ("predict", run, "--out", place / name, "--probabilities", "--json", *more)
    done = run_gamlp(*words)
    assert done.code == 0, done.err
    table = csv.read_csv(place / name)
    shares = [column for column in table.column_names if column.startswith("probability_")]
    values = np.stack([table[column].to_numpy() for column in shares], axis=1)
    return json.loads(done.out), table["id"].to_pylist(), values


def tables(place):
    return ["--new", place / "new" / "edges.csv", place / "new" / "nodes.csv"]


@pytest.mark.parametrize(
    "method", ["gamlp-jk", "gamlp-recursive-labels", "gamlp-jk+rlu", "gamlp-smoothing", "sagn+sle", "sign"]
)
def test_new_nodes_followed_everywhere_are_those_of_the_whole_graph(place, method, monkeypatch):
    """With no share left out, `--new` says what the graph with the new nodes in it gets; `--exact` always does."""
    monkeypatch.setattr(attach, "SHARE", 0.0)
    run = train(place, method)
    result, ids, found = predicted(place, run, *tables(place))
    assert ids == [f"node-{at}" for at in range(90 - NEW, 90)]
    assert result["nodes"] == NEW
    assert 0 <= result["accuracy"] <= 1
    _, same, exact = predicted(place, run, *tables(place), "--exact", name="exact.csv")
    assert same == ids
    if "+" not in method:  # a new node that is reliable counts in later stages of the whole graph alone
        near = 0.01 if method == "gamlp-smoothing" else 2e-5  # X^(∞) of the component is that without the new nodes
        np.testing.assert_allclose(found, exact, atol=near)
    assert (run / "hops").is_dir()  # what was kept is found again


def test_exact_is_what_the_whole_graph_gets(place):
    """The same classes and probabilities as predicting the whole graph, with the labels of training known."""
    run = train(place, "gamlp-recursive-labels")
    _, _, exact = predicted(place, run, *tables(place), "--exact")
    whole = [place / "whole" / "edges.csv", place / "whole" / "nodes.csv"]
    _, ids, every = predicted(place, run, *whole, name="whole.csv")
    rows = [ids.index(f"node-{at}") for at in range(90 - NEW, 90)]
    np.testing.assert_allclose(exact, every[rows], atol=1e-6)


def train_whole(place, method):
    run, old = place / f"run-{method}", place / "old"
    words = ["--method", method, "--seeds", 1, "--set", "epochs=5"] if method == "gcn" else ["--method", method]
    done = run_gamlp("train", old / "edges.csv", old / "nodes.csv", *words, "--out", run)
    assert done.code == 0, done.err
    return run


def test_methods_that_need_all_nodes_say_so_and_do_it_exactly(place):
    for method, words in (("gamlp-jk+cs", "corrects and smooths"), ("gcn", "reads whole graphs")):
        run = train_whole(place, method) if method == "gcn" else train(place, method)
        refused = run_gamlp("predict", run, *tables(place), "--out", place / "x.csv")
        assert refused.code == 2
        assert words in refused.err
        result, ids, _ = predicted(place, run, *tables(place), "--exact")
        assert result["exact"]
        assert len(ids) == NEW


def test_labels_spread_to_new_nodes(place):
    """The neighbours' votes are those of the graph before: nearly what spreading over the whole graph gives."""
    run = train_whole(place, "label-propagation")
    _, ids, near = predicted(place, run, *tables(place))
    _, same, exact = predicted(place, run, *tables(place), "--exact")
    assert ids == same
    assert (near.argmax(axis=1) == exact.argmax(axis=1)).mean() >= 0.8


def test_a_new_node_is_explained(place):
    run = train(place, "gamlp-jk")
    done = run_gamlp("explain", run, *tables(place), "--node", "node-89", "--json")
    assert done.code == 0, done.err
    story = json.loads(done.out)
    nodes = csv.read_csv(place / "new" / "edges.csv")
    ends = {
        pair for pair in zip(nodes["source"].to_pylist(), nodes["target"].to_pylist(), strict=True) if "node-89" in pair
    }
    assert story["name"] == "node-89"
    assert story["degree"] == len({one for pair in ends for one in pair} - {"node-89"})
    assert story["rings"][1]["nodes"] == story["degree"]
    old = run_gamlp("explain", run, *tables(place), "--node", "node-3")
    assert old.code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--new", "{new}/edges.csv", "{old}/nodes.csv"], "is in"),
        (["--new", "{old}/edges.csv", "{new}/nodes.csv"], "joins two nodes that are in the graph already"),
        (["--new", "{whole}/edges.csv", "{new}/narrow.csv"], "no feature column"),
        (["{old}/edges.csv", "--new", "{new}/edges.csv", "{new}/nodes.csv"], "leave it out"),
        (["--new", "{new}/edges.csv", "{new}/nodes.csv", "--embeddings"], "leave it out"),
        (["{whole}/edges.csv", "{whole}/nodes.csv", "--exact"], "without --new"),
        (["--new", "{new}/strangers.csv", "{new}/nodes.csv"], "names node 'nobody'"),
        (["--new", "{new}/weighted.csv", "{new}/nodes.csv"], "have weights"),
        (["--new", "{new}/edges.csv", "{new}/missing.csv"], "missing.csv"),
    ],
)
def test_what_cannot_be_is_refused(place, words, said):
    new = place / "new"
    nodes, edges = csv.read_csv(new / "nodes.csv"), csv.read_csv(new / "edges.csv")
    csv.write_csv(nodes.drop_columns(["x0"]), new / "narrow.csv")
    (new / "strangers.csv").write_text("source,target\nnode-89,nobody\n")
    csv.write_csv(edges.append_column("weight", [[1.0] * edges.num_rows]), new / "weighted.csv")
    run = train(place, "gamlp-jk")
    folders = {name: place / name for name in ("new", "old", "whole")}
    done = run_gamlp("predict", run, *(word.format(**folders) for word in words), "--out", place / "x.csv")
    assert done.code == 2, done.err
    assert said in done.err
    assert "Traceback" not in done.err


def test_explain_needs_to_know_which(place):
    done = run_gamlp("explain", train(place, "gamlp-jk"), *tables(place))
    assert done.code == 2
    assert "without --node" in done.err


def test_graphs_whose_new_nodes_cannot_be_told_alone_are_refused(place, tmp_path):
    """Several types of nodes, or features that are those of the structure."""
    from gamlp.errors import SettingsError
    from gamlp.graph.readers.datasets import read_graph
    from gamlp.methods.hop_network import check_living

    with pytest.raises(SettingsError, match="came without features"):
        check_living(read_graph([place / "old" / "edges.csv"]))
    (tmp_path / "hetero.toml").write_text(
        'target = "a"\n[nodes.a]\nfile = "a.csv"\n[nodes.b]\ncount = 2\n'
        '[relations.r]\nfile = "r.csv"\nsource = "a"\ntarget = "b"\n'
    )
    (tmp_path / "a.csv").write_text("id,label,x\n0,u,1\n1,v,2\n")
    (tmp_path / "r.csv").write_text("source,target\n0,0\n1,1\n")
    with pytest.raises(SettingsError, match="2 types of nodes"):
        check_living(read_graph(tmp_path))
