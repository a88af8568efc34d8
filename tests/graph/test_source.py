"""A source that was named is the same source when its words are read again."""

import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gamlp.errors import InputError, SettingsError
from gamlp.graph.readers.datasets import read_graph
from gamlp.graph.readers.source import GraphSource


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text("from,to,w\n0,1,2\n1,2,3\n")
    Path("n.csv").write_text("x,genre\n1,a\n2,b\n3,a\n")
    np.save("x.npy", np.eye(3, dtype=np.float32))
    return tmp_path


def parsed(words: list[str]) -> GraphSource:
    """Read words as the command line does."""
    import typer

    from gamlp.cli.options import GraphOptions, spelled_out

    found = []

    def one(graph: GraphOptions) -> None:
        found.append(graph.source())

    one.__annotations__ = {"graph": GraphOptions}
    app = typer.Typer()
    app.command()(spelled_out(one))
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return found[0]


@pytest.mark.parametrize(
    ("what", "options"),
    [
        (["cora"], {"root": Path("sets")}),
        (["debian"], {}),
        (["./debian"], {}),
        (["e.csv"], {"features": Path("x.npy")}),
        (["e.csv", "n.csv"], {"columns": {"label": "genre", "weight": "w"}, "directed": True}),
    ],
)
def test_words_name_the_same_source_again(files, monkeypatch, what, options):
    Path("debian").mkdir()
    source = GraphSource.named(what, **options)
    monkeypatch.chdir("/")
    assert parsed(source.words()) == source
    assert GraphSource.model_validate_json(source.model_dump_json()) == source


def test_it_reads_what_was_named(files, monkeypatch):
    source = GraphSource.named(["e.csv", "n.csv"], columns={"label": "genre", "weight": "w"}, directed=True)
    monkeypatch.chdir("/")
    graph = source.read()
    assert graph.classes == ("a", "b")
    assert graph.adjacency.indptr.tolist() == [0, 1, 2, 2]
    assert graph.adjacency.weights.tolist() == [2, 3]
    assert source.title == "e.csv n.csv"


def test_a_name_means_the_data_set_and_a_path_the_folder(files):
    Path("debian").mkdir()
    assert GraphSource.named(["debian"]).what == ("debian",)
    assert GraphSource.named(["./debian"]).what == (str(files / "debian"),)
    with pytest.raises(InputError, match="a folder without"):
        GraphSource.named(["./debian"]).read()
    Path("cora").write_text("0,1\n")
    with pytest.raises(InputError, match="cora is not complete"):
        read_graph("cora", root=files / "nowhere")


def test_words_that_name_nothing(files):
    with pytest.raises(SettingsError, match="No graph was named"):
        GraphSource.named([])
    with pytest.raises(SettingsError, match="no such role"):
        GraphSource.named(["e.csv"], columns={"lable": "genre"})


def test_names_that_are_not_utf8_are_refused(files):
    name = os.fsdecode(b"e-\xff.csv")
    Path(name).write_text("0,1\n")
    with pytest.raises(InputError, match=r"e-\\udcff\.csv is not UTF-8"):
        GraphSource.named([name, "n.csv"])
