"""The commands that work on disk: import, propagate, train and synth with --memory."""

import json
import os

import numpy as np
import pytest

from gamlp.graph import load_graph
from gamlp.propagate.hops import load_hops


@pytest.fixture
def folder(gamlp, files, tmp_path):
    """A graph directory, imported within 64 MiB."""
    done = gamlp("import", files.edges, files.nodes, "--out", tmp_path / "g", "--memory", "64MiB", "--json")
    facts = json.loads(done.out)
    assert (facts["nodes"], facts["features"], facts["classes"], facts["labelled"]) == (90, 4, 3, 90)
    return tmp_path / "g"


def test_import_within_memory_is_import(gamlp, files, folder, tmp_path):
    gamlp("import", files.edges, files.nodes, "--out", tmp_path / "whole")
    one, other = load_graph(folder), load_graph(tmp_path / "whole")
    assert one.fingerprint == other.fingerprint
    assert one.names.tolist() == other.names.tolist()
    again = gamlp("import", files.edges, files.nodes, "--out", folder, "--memory", "64MiB")
    assert again.code == 3
    assert "already holds a graph" in again.err


def test_engines_write_the_same_hops(gamlp, quick, folder, tmp_path):
    for name, limit in (("memory", ()), ("disk", ("--memory", "64MiB"))):
        words = ("--engine", "local", *limit, "--out", tmp_path / name, "--json")
        facts = json.loads(gamlp("propagate", folder, *quick, *words).out)
        assert (facts["rows"], facts["hops"], facts["features"]) == (90, 2, 4)
    one, other = load_hops(tmp_path / "memory"), load_hops(tmp_path / "disk")
    assert one.key == other.key
    np.testing.assert_array_equal(one.values, other.values)


def test_wanted_rows(gamlp, quick, folder, tmp_path):
    (tmp_path / "rows.txt").write_text("7\n3\n89\n")
    np.save(tmp_path / "rows.npy", np.array([7, 3, 89]))
    whole = ("--out", tmp_path / "all", "--memory", "64MiB", "--rows", "all")
    assert gamlp("propagate", folder, *quick, *whole).code == 0
    for name in ("rows.txt", "rows.npy"):
        out = tmp_path / name.replace(".", "-")
        assert (
            gamlp("propagate", folder, *quick, "--out", out, "--memory", "64MiB", "--rows", tmp_path / name).code == 0
        )
        np.testing.assert_array_equal(load_hops(out).values, load_hops(tmp_path / "all").values[[7, 3, 89]])
        assert load_hops(out).rows.tolist() == [7, 3, 89]


def test_train_within_memory_is_train(gamlp, quick, folder, tmp_path):
    words = [*quick, "--seeds", 1, "--json"]
    plain = json.loads(gamlp("train", folder, *words, "--out", tmp_path / "plain").out)
    done = gamlp("train", folder, *words, "--out", tmp_path / "disk", "--memory", "64MiB")
    assert json.loads(done.out)["test_log_loss"] == plain["test_log_loss"]
    assert list((tmp_path / "disk" / "hops").iterdir())
    assert not (tmp_path / "plain" / "hops").exists()


def test_a_changed_graph_is_told_and_the_old_hops_stay(gamlp, quick, small, folder, files, tmp_path):
    out = ("--out", tmp_path / "hops", "--memory", "64MiB")
    gamlp("propagate", folder, *quick, *out)
    before = load_hops(tmp_path / "hops").key
    text = files.edges.read_text().splitlines()
    (tmp_path / "fewer.csv").write_text("\n".join(text[:100]))
    gamlp("import", tmp_path / "fewer.csv", files.nodes, "--out", folder, "--memory", "64MiB", "--overwrite")
    refused = gamlp("propagate", folder, *quick, *out)
    assert refused.code == 3
    assert "of this one before it changed" in refused.err
    assert load_hops(tmp_path / "hops").key == before
    assert gamlp("propagate", folder, *quick, *out, "--overwrite").code == 0
    assert load_hops(tmp_path / "hops").key != before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Name one place"),
        (("--out", "a", "--cache", "b"), "Name one place"),
        (("--out", "a", "--engine", "tape"), "no engine 'tape'"),
        (("--out", "a", "--engine", "disk"), "no engine 'disk'"),
        (("--cache", "a", "--overwrite"), "--overwrite was given without --out"),
        (("--out", "a", "--memory", "much"), "no amount of memory"),
        (("--out", "a", "--memory", "100KiB"), "too little memory"),
        (("--out", "a", "--rows", "nowhere.txt"), "there is no such file"),
    ],
)
def test_what_is_refused(gamlp, quick, folder, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = gamlp("propagate", folder, *quick, *words)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not (tmp_path / "a").exists()


def test_memory_is_for_files(gamlp, folder, tmp_path):
    done = gamlp("import", folder, "--out", tmp_path / "h", "--memory", "1GiB")
    assert done.code == 2
    assert "neither a file of edges" in " ".join(done.err.split())
    assert gamlp("import", folder, "--out", tmp_path / "h", "--self-loops").code == 2


def test_a_damaged_graph_is_one_message(gamlp, quick, folder, tmp_path):
    path = folder / "indices.npy"
    raw = bytearray(path.read_bytes())
    raw[-4] ^= 1
    path.write_bytes(raw)
    done = gamlp("propagate", folder, *quick, "--out", tmp_path / "hops", "--memory", "64MiB")
    assert done.code == 3
    assert "indices.npy has changed since it was written" in " ".join(done.err.split())
    path.write_bytes(raw[:-40])
    assert gamlp("propagate", folder, *quick, "--out", tmp_path / "hops", "--memory", "64MiB").code == 2
    assert not (tmp_path / "hops").exists()


def test_synth_makes_a_graph_to_train_on(gamlp, quick, tmp_path):
    words = ("--nodes", 400, "--edges", 2000, "--features", 5, "--seed", 2, "--out", tmp_path / "g", "--json")
    facts = json.loads(gamlp("synth", "products", *words).out)
    assert (facts["nodes"], facts["features"], facts["classes"]) == (400, 5, 47)
    assert load_graph(tmp_path / "g").name == "synth-products"
    assert gamlp("synth", "fish", "--out", tmp_path / "h").code == 2
    assert gamlp("synth", "mag", "--scale", "-1", "--out", tmp_path / "h").code == 2


@pytest.mark.parametrize(
    "option", [["--directed"], ["--column", "label=x"], ["--features", "x.npy"]], ids=lambda option: option[0]
)
def test_options_for_tables_are_refused_for_data_sets(gamlp, tmp_path, option):
    for memory in ([], ["--memory", "1GiB"]):
        done = gamlp("import", "ogbn-arxiv", "--root", tmp_path, "--out", tmp_path / "g", *option, *memory)
        assert done.code == 2
        assert "was given for 'ogbn-arxiv', which is not a file" in done.err


def test_a_folder_called_like_a_data_set_does_not_hide_it(gamlp, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cora").mkdir()
    assert "cora is not complete" in gamlp("import", "cora", "--out", "g").err
    assert "a folder without graph.json" in gamlp("import", "./cora", "--out", "g").err


def test_escape_sequences_in_files_do_not_reach_the_terminal(gamlp, tmp_path):
    (tmp_path / "e.csv").write_text("0,1\n")
    (tmp_path / "n.csv").write_text("x,split\n1,\x1b[31mred\n2,train\n")
    done = gamlp("import", tmp_path / "e.csv", tmp_path / "n.csv", "--out", tmp_path / "g")
    assert done.code == 2
    assert "\x1b" not in done.err
    assert r"\x1b[31mred" in done.err


def test_paths_that_are_not_utf8_are_refused_with_one_message(gamlp, files, tmp_path):
    name = os.fsdecode(b"\xff")
    for words in ((files.edges, files.nodes, "--out", tmp_path / name), (tmp_path / name, "--out", tmp_path / "g")):
        done = gamlp("import", *words)
        assert done.code == 2
        assert r"\udcff is not UTF-8" in done.err
