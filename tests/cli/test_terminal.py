"""What shows where: help with examples, no bars and no cut tables in a pipe, colours when they are asked for."""

import os
import subprocess
import sys

import pytest

from gamlp.cli import complete
from gamlp.cli.app import app
from gamlp.propagate.engines import ENGINES

ESCAPE = "\x1b["
START = "import sys; sys.argv[0] = 'gamlp'; from gamlp.cli import main; main()"


@pytest.fixture
def piped(files, tmp_path):
    """The command line in a process of its own, both outputs piped."""

    def run(*words, **environment):
        kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
        return subprocess.run(
            [sys.executable, "-c", START, *map(str, words)],
            env={**kept, "OMP_NUM_THREADS": "1", **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize("command", [command.name or command.callback.__name__ for command in app.registered_commands])
def test_every_help_has_an_example(gamlp, command):
    said = gamlp(command, "--help")
    assert said.code == 0
    words = " ".join(said.out.split())
    assert f": gamlp {command}" in words
    assert "Example" in words


def test_a_pipe_gets_text_alone(piped, files, quick):
    done = piped("train", files.edges, files.nodes, "--seeds", 1, "--out", "run", *quick)
    assert done.returncode == 0, done.stderr
    assert "edges: 90 nodes" in done.stderr
    assert ESCAPE not in done.stdout + done.stderr
    coloured = piped("explain", "run", "--node", "node-1", FORCE_COLOR="1")
    assert ESCAPE in coloured.stdout  # colours survive the pipe when they are asked for
    assert ESCAPE not in coloured.stderr  # and no bar is drawn where there is no terminal
    plain = piped("explain", "run", "--node", "node-1", NO_COLOR="1")
    assert ESCAPE not in plain.stdout + plain.stderr
    assert "node-1: predicted" in plain.stdout
    refused = piped("explain", "run", "--node", "node-x", FORCE_COLOR="1")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"{ESCAPE}1;31mIdError" in refused.stderr
    refused = piped("explain", "run", "--node", "node-x", FORCE_COLOR="1", NO_COLOR="1")
    assert ";31m" not in refused.stderr


def test_no_table_is_cut_in_a_pipe_or_on_a_small_terminal(piped):
    said = piped("datasets")
    assert "ogbn-papers100M" in said.stdout
    assert "…" not in said.stdout
    assert "…" not in piped("datasets", COLUMNS="80").stdout


def test_the_shell_completes_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deb-edges.csv").touch()
    (tmp_path / "deb-graph").mkdir()
    assert complete.graphs("deb") == ["debian", "debian-hetero", "deb-edges.csv", "deb-graph/"]
    assert complete.graphs("deb-graph/") == []
    assert complete.methods("sgc,gamlp-j") == ["sgc,gamlp-jk", "sgc,gamlp-jk+rlu"]
    assert "sgc+cs" in complete.methods("sgc")
    assert complete.recipes("cora") == ["cora"]
    assert complete.engines("") == list(ENGINES)
    assert complete.recipes("no/where") == []


def test_the_completion_is_wired(piped):
    asked = {"_GAMLP_COMPLETE": "complete_bash", "COMP_WORDS": "gamlp train --method gamlp-r", "COMP_CWORD": "3"}
    assert piped(**asked).stdout.split() == ["gamlp-recursive", "gamlp-recursive+rlu"]
