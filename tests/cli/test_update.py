"""gamlp update: tables of changes and snapshots, against a fresh import; what is kept comes along; refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from conftest import SMALL, run_gamlp, write_files
from gamlp.graph.store import load_graph

SET = [word for one in SMALL for word in ("--set", one)]
EDGES = "op,source,target\nadd,node-1,node-40\nremove,{0},{1}\nadd,fresh,node-7\n,fresh,node-8\n"


@pytest.fixture(scope="module")
def place(make_planted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("update")
    write_files(make_planted(90), folder / "files")
    files = (folder / "files" / "edges.csv", folder / "files" / "nodes.csv")
    assert run_gamlp("import", *files, "--out", folder / "graph").code == 0
    return folder


def change_tables(place, folder):
    """Write changes, and the tables that they make of the old ones."""
    lines = (place / "files" / "nodes.csv").read_text().splitlines()
    rows = [line.replace('"', "").split(",") for line in lines[1:]]
    first = (place / "files" / "edges.csv").read_text().splitlines()[1].replace('"', "").split(",")
    width = len(rows[0]) - 3
    fresh = ["fresh", "new class", "train", *(["0.25"] * width)]
    other = [rows[5][0], rows[6][1], rows[5][2], *(["1.5"] * width)]
    head = lines[0].replace('"', "")
    (folder / "nodes.csv").write_text(
        "\n".join([f"{head},op", ",".join([*fresh, "add"]), ",".join([*other, "change"])])
        + f"\n{rows[11][0]},,,{',' * (width - 1)},remove\n"
    )
    (folder / "edges.csv").write_text(EDGES.format(*first))
    after = [row for at, row in enumerate(rows) if at not in (5, 11)]
    after.insert(5, other)
    (folder / "after-nodes.csv").write_text("\n".join([head, *(",".join(row) for row in [*after, fresh])]) + "\n")
    gone = {rows[11][0]}
    pairs = [line.replace('"', "").split(",") for line in (place / "files" / "edges.csv").read_text().splitlines()[1:]]
    kept = [pair for pair in pairs if not set(pair) & gone and set(pair) != set(first)]
    more = [["node-1", "node-40"], ["fresh", "node-7"], ["fresh", "node-8"]]
    text = "\n".join(["source,target", *(",".join(pair) for pair in [*kept, *more])]) + "\n"
    (folder / "after-edges.csv").write_text(text)


def same_graph(one, other):
    assert_array_equal(one.adjacency.indptr, other.adjacency.indptr)
    assert_array_equal(one.adjacency.indices, other.adjacency.indices)
    assert_array_equal(one.features, other.features)
    assert_array_equal(one.names, other.names)
    labels = [np.array([*graph.classes, ""])[graph.labels] for graph in (one, other)]
    assert_array_equal(*labels)
    for mine, theirs in zip(one.split.sets.values(), other.split.sets.values(), strict=True):
        assert_array_equal(np.sort(mine), np.sort(theirs))


def test_an_updated_graph_is_what_the_changed_files_give(place, tmp_path):
    """Nodes and edges added, changed and removed; then by the difference to a snapshot; its hops have the same bits."""
    change_tables(place, tmp_path)
    cache = tmp_path / "cache"
    assert run_gamlp("propagate", place / "graph", "--states", "--cache", cache, "--method", "gamlp-jk", *SET).code == 0
    tables = ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv"]
    done = run_gamlp("update", place / "graph", *tables, "--out", tmp_path / "new", "--cache", cache, "--json")
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert (facts["nodes"], facts["added"], facts["removed"], facts["states"]) == (90, 1, 1, 1)
    after = (tmp_path / "after-edges.csv", tmp_path / "after-nodes.csv")
    assert run_gamlp("import", *after, "--out", tmp_path / "fresh").code == 0
    same_graph(load_graph(tmp_path / "new"), load_graph(tmp_path / "fresh"))

    words = ["propagate", "--method", "gamlp-jk", *SET]
    made = json.loads(run_gamlp(*words, tmp_path / "new", "--cache", cache, "--json").out)
    assert run_gamlp(*words, tmp_path / "fresh", "--out", tmp_path / "hops").code == 0
    key = made["key"]
    assert (cache / key / "values.npy").read_bytes() == (tmp_path / "hops" / "values.npy").read_bytes()

    to = run_gamlp("update", place / "graph", "--to", tmp_path / "fresh", "--out", tmp_path / "again", "--json")
    assert to.code == 0, to.err
    same_graph(load_graph(tmp_path / "again"), load_graph(tmp_path / "fresh"))


def test_in_its_place_and_unchanged_files_are_linked(place, tmp_path):
    """Without --out the old version is replaced; features that no node changed are the same file."""
    assert run_gamlp("update", place / "graph", "--to", place / "graph", "--out", tmp_path / "graph").code == 0
    before = (tmp_path / "graph" / "features.npy").stat().st_ino
    assert before == (place / "graph" / "features.npy").stat().st_ino
    (tmp_path / "edges.csv").write_text("source,target\nnode-0,node-50\n")
    assert run_gamlp("update", tmp_path / "graph", "--edges", tmp_path / "edges.csv").code == 0
    assert (tmp_path / "graph" / "features.npy").stat().st_ino == before
    graph = load_graph(tmp_path / "graph")
    names = list(graph.names)
    row = graph.adjacency.indices[slice(*graph.adjacency.indptr[[names.index("node-0"), names.index("node-0") + 1]])]
    assert names.index("node-50") in row


def test_a_run_predicts_the_new_version_from_what_came_along(place, tmp_path, monkeypatch):
    """Nothing is propagated for features: the states of the new version are there, and the same numbers come out."""
    run = tmp_path / "run"
    words = ["train", place / "graph", "--method", "gamlp-jk-labels", "--seeds", 1, "--out", run, *SET]
    assert run_gamlp(*words).code == 0
    nodes = "id,label," + ",".join(f"x{at}" for at in range(12)) + "\nfresh,," + ",".join(["0.5"] * 12) + "\n"
    (tmp_path / "n.csv").write_text(nodes)
    (tmp_path / "e.csv").write_text("source,target\nfresh,node-3\n")
    assert (
        run_gamlp("predict", run, "--new", tmp_path / "e.csv", tmp_path / "n.csv", "--out", tmp_path / "p.csv").code
        == 0
    )
    tables = ["--edges", tmp_path / "e.csv", "--nodes", tmp_path / "n.csv", "--out", tmp_path / "new"]
    done = run_gamlp("update", place / "graph", *tables, "--cache", run / "hops")
    assert done.code == 0, done.err
    fresh = run_gamlp("predict", run, tmp_path / "new", "--out", tmp_path / "fresh.csv", "--probabilities")
    assert fresh.code == 0, fresh.err
    from gamlp.propagate.engines.local import LocalEngine

    monkeypatch.setattr(LocalEngine, "run", lambda *_: pytest.fail("propagated"))
    out = tmp_path / "kept.csv"
    kept = run_gamlp("predict", run, tmp_path / "new", "--out", out, "--probabilities", "--cache", run / "hops")
    assert kept.code == 0, kept.err
    assert out.read_text() == (tmp_path / "fresh.csv").read_text()


@pytest.mark.parametrize(
    ("edges", "nodes", "said"),
    [
        ("source,target\nnode-0,nobody\n", None, "names node 'nobody'"),
        ("op,source,target\nremove,node-0,node-0\n", None, "is to be removed, and is not in the graph"),
        ("op,source,target\nturn,node-0,node-1\n", None, "op is 'turn'"),
        ("op,source,target\nchange,node-0,node-1\n", None, "have no weights"),
        ("source,target,weight\nnode-0,node-1,2\n", None, "have weights"),
        (None, "op,id\nremove,nobody\n", "nobody"),
        (None, "op,id\nremove,node-1\nremove,node-1\n", "removed twice"),
        (None, "id,label,x0\nfresh,a,1\n", "no feature column"),
        ("source,target\nnode-1,node-2\n", "op,id\nremove,node-1\n", "is removed, and an edge of it is added"),
        (None, "op,id\n" + "".join(f"remove,node-{at}\n" for at in range(90)), "All nodes are removed"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(place, tmp_path, edges, nodes, said):
    words = []
    for name, text in (("edges", edges), ("nodes", nodes)):
        if text is not None:
            (tmp_path / f"{name}.csv").write_text(text)
            words += [f"--{name}", tmp_path / f"{name}.csv"]
    before = (place / "graph" / "graph.json").read_bytes()
    done = run_gamlp("update", place / "graph", *words)
    assert done.code == 2, done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert (place / "graph" / "graph.json").read_bytes() == before


def test_other_refusals(place, tmp_path):
    table = tmp_path / "edges.csv"
    table.write_text("source,target\nnode-0,node-50\n")
    for words, said in (
        (["update", place / "graph"], "Say what changes"),
        (["update", place / "graph", "--edges", table, "--to", place / "graph"], "Say what changes"),
        (["update", place / "files", "--edges", table], "is not a graph directory"),
        (["update", place / "graph", "--to", place / "files"], "is not a graph directory"),
        (
            ["update", place / "graph", "--edges", table, "--out", place / "files"],
            "exists and is not a graph directory",
        ),
        (["propagate", place / "graph", "--states", "--out", tmp_path / "hops"], "--states was given with --out"),
    ):
        done = run_gamlp(*words)
        assert done.code in (2, 3)
        assert said in done.err
