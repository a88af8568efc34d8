"""gamlp embed: one command, one JSON object, refusals without a traceback."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gamlp.cli import main
from gamlp.embed import load_embeddings, load_triples, save_triples, triples_from
from gamlp.errors import FormatError
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero
from gamlp.graph.splits import Split

QUICK = [word for pair in ("dimension=8", "steps=20", "held_out=20") for word in ("--set", pair)]


def run(*words):
    """Return the exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code or 0, out.getvalue(), err.getvalue()


def test_a_folder_of_triples(ring, tmp_path):
    save_triples(ring, tmp_path / "ring")
    code, out, err = run("embed", tmp_path / "ring", "-o", tmp_path / "made", *QUICK, "--seed", 5, "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert (result["entities"], result["triples"], result["seed"]) == (300, 1500, 5)
    assert result["scores"]["triples"] == 20
    assert result["scores"]["chance"]["hits_at_10"] == pytest.approx(10 / 300)
    made = load_embeddings(tmp_path / "made", memory_map=True)
    assert made.entities.shape == (300, 8)
    assert made.relation_names == ring.relation_names
    code, out, _ = run("embed", tmp_path / "ring", "-o", tmp_path / "made", *QUICK, "--seed", 5)
    assert code == 0
    assert "300 entities and 5 relations, 8 numbers each, from 1,500 triples" in out
    assert "chance" in out


def test_a_plain_graph_has_one_relation(planted, tmp_path):
    triples = triples_from(planted)
    assert triples.relation_names == ("edge",)
    assert len(triples) == planted.adjacency.entries // 2
    assert (triples.heads < triples.tails).all()


def test_the_relations_of_a_heterogeneous_graph():
    """Papers are nodes 0 … 2, authors 3 and 4; the relation without edges is left out."""
    split = Split(np.array([0, 1]), np.array([2]), np.zeros(0, np.int64))
    graph = assemble_hetero(
        {"author": TypeParts(2), "paper": TypeParts(3, np.eye(3), ["a", "b", "a"], split=split)},
        {
            "cites": RelationParts("paper", "paper", np.array([0, 2]), np.array([2, 1])),
            "hates": RelationParts("author", "author", np.zeros(0, int), np.zeros(0, int)),
            "writes": RelationParts("author", "paper", np.array([0, 1, 1]), np.array([0, 1, 2])),
        },
        target="paper",
    )
    triples = triples_from(graph).check()
    assert (triples.entities, triples.relation_names) == (5, ("cites", "writes"))
    assert np.stack(triples.columns, 1).tolist() == [[0, 0, 2], [2, 0, 1], [3, 1, 0], [4, 1, 1], [4, 1, 2]]


def test_saved_triples_come_back_mapped(ring, tmp_path):
    save_triples(ring, tmp_path)
    found = load_triples(tmp_path)
    assert isinstance(found.heads, np.memmap)
    for ours, theirs in zip(found.columns, ring.columns, strict=True):
        assert_array_equal(ours, theirs)
    (tmp_path / "triples.json").write_text('{"format": 1, "entities": "many"}')
    with pytest.raises(FormatError, match="lacks the number of entities"):
        load_triples(tmp_path)


def test_a_file_in_the_way_is_found_before_training(ring, tmp_path, monkeypatch):
    save_triples(ring, tmp_path / "ring")
    (tmp_path / "made").write_text("notes")
    monkeypatch.setattr("gamlp.embed.train.run", None)  # no step is taken
    code, out, err = run("embed", tmp_path / "ring", "-o", tmp_path / "made", *QUICK)
    assert (code, out) == (3, "")
    assert "cannot be made" in err
    assert (tmp_path / "made").read_text() == "notes"


def test_refusals_leave_nothing_behind(ring, tmp_path):
    save_triples(ring, tmp_path / "ring")
    np.save(tmp_path / "ring" / "heads.npy", ring.heads + 7)
    for words, said in (
        ((tmp_path / "ring",), "but there are 300 entities"),
        ((tmp_path / "ring", "--set", "dimension=9"), "is odd"),
        (("no-such-graph",), "no data set, folder or file"),
        ((), "No graph was named"),
    ):
        code, out, err = run("embed", *words, "-o", tmp_path / "made")
        assert (code, out) == (2, "")
        assert said in " ".join(err.split())
        assert "Traceback" not in err
        assert not (tmp_path / "made").exists()
